package fakegoogle

import (
	"fmt"
	"strings"

	"headroom/internal/lab/fakegoogle/calendar"
	"headroom/internal/lab/fakegoogle/gmail"
	"headroom/internal/lab/fakegoogle/wire"
)

// AddMailbox makes an empty mailbox, or returns the one of that address. The
// first one made is the mailbox of calls without authorization.
func (s *Server) AddMailbox(email string) *gmail.Mailbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := wire.AddressKey(email)
	if box, ok := s.mailboxes[key]; ok {
		return box
	}
	box := gmail.NewMailbox(email, s.publisher)
	s.mailboxes[key] = box
	s.inOrder = append(s.inOrder, box)
	return box
}

// Mailbox returns the mailbox of an address in any case; nil where there is none.
func (s *Server) Mailbox(email string) *gmail.Mailbox {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mailboxes[wire.AddressKey(email)]
}

func (s *Server) firstMailbox() *gmail.Mailbox {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.inOrder) == 0 {
		return nil
	}
	return s.inOrder[0]
}

// AddAlias gives a mailbox another address, by which it can be asked for. It names
// itself by its own, and its meter is one.
func (s *Server) AddAlias(email, alias string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	box := s.mailboxes[wire.AddressKey(email)]
	if box == nil {
		return fmt.Errorf("no mailbox %s", email)
	}
	if other := s.mailboxes[wire.AddressKey(alias)]; other != nil && other != box || wire.AddressKey(alias) == "" {
		return fmt.Errorf("alias %q is the address of another mailbox, or none", alias)
	}
	s.mailboxes[wire.AddressKey(alias)] = box
	return nil
}

// Load fills the mailbox of email, making it if need be. spec is generate:N, for
// N made-up messages that depend on Options.Seed and the address, or
// generate:N:SIZE for N large ones of SIZE bytes each (35MB; see
// [Mailbox.AddLarge]), or the path of an mbox file, an eml file or a folder of them
// (see [ReadMailbox]). Nothing is added when there is an error.
func (s *Server) Load(email, spec string) error {
	if !isAddress(email) {
		return fmt.Errorf("load mailbox %q: an address such as ann@example.com is needed", email)
	}
	fill, err := gmail.ReadSpec(email, spec, s.opts.Seed)
	if err != nil {
		return err
	}
	fill(s.AddMailbox(email))
	return nil
}

func isAddress(email string) bool {
	at := strings.LastIndex(email, "@")
	return at > 0 && at < len(email)-1
}

// account returns the calendars of an account.
func (s *Server) account(box *gmail.Mailbox) *calendar.Account {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := wire.AddressKey(box.Email())
	if s.calendars[key] == nil {
		s.calendars[key] = calendar.NewAccount(box.Email(), s.channels)
	}
	return s.calendars[key]
}

// AddCalendar makes an empty calendar of an account, and the account if need be,
// or returns the one of that id.
func (s *Server) AddCalendar(email string, info calendar.Info) (*calendar.Calendar, error) {
	return s.account(s.AddMailbox(email)).Add(info)
}

// Calendar returns a calendar of an account by its id or as "primary"; nil where
// there is none.
func (s *Server) Calendar(email, id string) *calendar.Calendar {
	box := s.Mailbox(email)
	if box == nil {
		return nil
	}
	return s.account(box).Calendar(id)
}

// Calendars returns the calendars of an account in the order of its list.
func (s *Server) Calendars(email string) []*calendar.Calendar {
	box := s.Mailbox(email)
	if box == nil {
		return nil
	}
	return s.account(box).Calendars()
}

// LoadCalendars fills the calendars of an account, making it if need be. spec is
// generate:N for N made-up events in the primary calendar, generate:CxN for N in
// each of C calendars, an ics file, or a folder of them, a calendar each. A file's
// name without .ics is the calendar's id, and @group.calendar.google.com after it
// unless it has an @; primary.ics fills the primary calendar. What could not be
// read as it stands is returned, file by file; an error means that nothing was.
func (s *Server) LoadCalendars(email, spec string) ([]calendar.Problem, error) {
	if !isAddress(email) {
		return nil, fmt.Errorf("load calendars of %q: an address such as ann@example.com is needed", email)
	}
	return s.account(s.AddMailbox(email)).Load(spec, s.opts.Seed)
}

// ExpireListTokens is [Calendar.ExpireTokens] for the list of an account's calendars.
func (s *Server) ExpireListTokens(email string, always bool) {
	s.account(s.AddMailbox(email)).ExpireListTokens(always)
}

// SetNotifyProfile changes how channels notify from now on.
func (s *Server) SetNotifyProfile(h calendar.NotifyProfile) error { return s.channels.SetProfile(h) }

// CloseChannels lets every channel end without a notification, as expiry does.
func (s *Server) CloseChannels() { s.channels.Lapse() }

// Notifications lists the open channels and counts their notifications.
func (s *Server) Notifications() calendar.NotifyReport { return s.channels.Report() }
