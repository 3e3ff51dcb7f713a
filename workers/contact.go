package workers

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"headroom/jobs"
)

// contact looks at the address by which a mailbox names itself. Where that was not
// known and is another than the account's, the account is an alias: this is logged,
// and the slice ends, since the mailbox has one quota, under its own address, and
// only the next slice's calls are counted there. What is no address names nobody.
func (s *slice) contact(ctx context.Context, p jobs.Profile) *ending {
	if p.Email == "" {
		return nil
	}
	address, err := jobs.ParseAddress(p.Email)
	if err != nil {
		s.log.Warn("the mailbox names itself by what is no address; the account's own counts", append(logJob(s.job), zap.Error(err))...)
		return nil
	}
	if address == s.user.Mailbox {
		return nil
	}
	others, err := s.opts.Store.NoteMailbox(ctx, s.ref, address)
	if err != nil {
		return breaks(fmt.Errorf("note the address of mailbox %s: %w", s.job.Account, err))
	}
	if address != s.user.Email {
		s.log.Warn("the account is another name of a mailbox; its quota is counted under the mailbox's own address",
			append(logJob(s.job), zap.String("account", s.job.Account), zap.String("mailbox", address))...)
	}
	if len(others) > 0 {
		s.log.Warn("several accounts are one mailbox: its messages are stored for each, and they share its quota",
			append(logJob(s.job), zap.String("account", s.job.Account), zap.String("mailbox", address), zap.Strings("others", others))...)
	}
	counted := s.user.QuotaUser()
	if s.user.Mailbox = address; counted != address {
		return &ending{how: goesOn}
	}
	return nil
}

// firstContact asks a mailbox for its address, where no call has yet.
func (s *slice) firstContact(ctx, calls context.Context) *ending {
	if s.user.Mailbox != "" {
		return nil
	}
	profile, end := s.askProfile(ctx, calls)
	if end != nil {
		return end
	}
	return s.contact(ctx, profile)
}
