package fakegoogle

import (
	"fmt"
	"strings"
)

// AddMailbox makes an empty mailbox, or returns the one of that address. The
// first one made is the mailbox of calls without authorization.
func (s *Server) AddMailbox(email string) *Mailbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := mailboxKey(email)
	if box, ok := s.mailboxes[key]; ok {
		return box
	}
	box := newMailbox(email, s.publisher)
	s.mailboxes[key] = box
	s.inOrder = append(s.inOrder, box)
	return box
}

// Mailbox returns the mailbox of an address in any case; nil where there is none.
func (s *Server) Mailbox(email string) *Mailbox {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.mailboxes[mailboxKey(email)]
}

func (s *Server) firstMailbox() *Mailbox {
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
	box := s.mailboxes[mailboxKey(email)]
	if box == nil {
		return fmt.Errorf("no mailbox %s", email)
	}
	if other := s.mailboxes[mailboxKey(alias)]; other != nil && other != box || mailboxKey(alias) == "" {
		return fmt.Errorf("alias %q is the address of another mailbox, or none", alias)
	}
	s.mailboxes[mailboxKey(alias)] = box
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
	fill, err := ReadSpec(email, spec, s.opts.Seed)
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

// diary returns the calendars of an account.
func (s *Server) diary(box *Mailbox) *diary {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := mailboxKey(box.email)
	if s.diaries[key] == nil {
		s.diaries[key] = newDiary(box.email, s.channels)
	}
	return s.diaries[key]
}

// AddCalendar makes an empty calendar of an account, and the account if need be,
// or returns the one of that id.
func (s *Server) AddCalendar(email string, info CalendarInfo) (*Calendar, error) {
	return s.diary(s.AddMailbox(email)).Add(info)
}

// Calendar returns a calendar of an account by its id or as "primary"; nil where
// there is none.
func (s *Server) Calendar(email, id string) *Calendar {
	box := s.Mailbox(email)
	if box == nil {
		return nil
	}
	return s.diary(box).Calendar(id)
}

// Calendars returns the calendars of an account in the order of its list.
func (s *Server) Calendars(email string) []*Calendar {
	box := s.Mailbox(email)
	if box == nil {
		return nil
	}
	return s.diary(box).Calendars()
}

// LoadCalendars fills the calendars of an account, making it if need be. spec is
// generate:N for N made-up events in the primary calendar, generate:CxN for N in
// each of C calendars, an ics file, or a folder of them, a calendar each. A file's
// name without .ics is the calendar's id, and @group.calendar.google.com after it
// unless it has an @; primary.ics fills the primary calendar. What could not be
// read as it stands is returned, file by file; an error means that nothing was.
func (s *Server) LoadCalendars(email, spec string) ([]CalendarProblem, error) {
	if !isAddress(email) {
		return nil, fmt.Errorf("load calendars of %q: an address such as ann@example.com is needed", email)
	}
	return s.diary(s.AddMailbox(email)).Load(spec, s.opts.Seed)
}

// ExpireListTokens is [Calendar.ExpireTokens] for the list of an account's calendars.
func (s *Server) ExpireListTokens(email string, always bool) {
	s.diary(s.AddMailbox(email)).ExpireListTokens(always)
}

// SetNotifyHabits changes how channels tell of what happens from now on.
func (s *Server) SetNotifyHabits(h NotifyHabits) error { return s.channels.setHabits(h) }

// CloseChannels lets every channel lapse without a word, as expiry does.
func (s *Server) CloseChannels() { s.channels.lapse() }

// Notifications says which channels are open and what they were told.
func (s *Server) Notifications() NotifyReport { return s.channels.report() }
