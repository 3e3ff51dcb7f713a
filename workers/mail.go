package workers

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"headroom/jobs"
)

// A mailRun is what a backfill and a live sync have in common: they list messages of a
// mailbox, each in its own way, and then fetch what is on the list.
type mailRun struct {
	*slice
	lister  lister
	box     Mailbox
	patient Mailbox // the same, for calls that may wait longer in place
	access  *access // of the account, which answers about single items may blame
	threads int     // get a whole thread for at least so many of its messages; 0: never
	labels  []jobs.Label

	unlisted result // why the listing did not end; what it brought is fetched first
}

// A lister finds what a run is to fetch.
type lister interface {
	// list brings the list of what is to be fetched to its end, unless it returns a
	// reason to stop.
	list(ctx context.Context) result
	// relist continues a list that has not ended although all that it holds is done.
	// It reports whether there may be more to fetch.
	relist(ctx context.Context) (more bool, r result)
	// between does other work while no item can be fetched, and reports whether it
	// had any.
	between(ctx context.Context) (worked bool, r result)
}

// open opens the mailbox.
func (m *mailRun) open(ctx context.Context) result {
	err := m.call(nil, func(ctx context.Context) (err error) {
		if m.box, err = m.opts.Google.Mailbox(ctx, m.account, m.lane, inPlace); err != nil {
			return err
		}
		if m.job.Filter.Bodies() == jobs.FormatFull {
			m.patient, err = m.opts.Google.Mailbox(ctx, m.account, m.lane, attachmentWait)
		}
		return err
	})
	if err != nil {
		return m.resultOfCall(ctx, fmt.Errorf("open mailbox %s: %w", m.account.Email, err))
	}
	m.access = newAccess(func(ctx context.Context) error { _, err := m.box.Profile(ctx); return err })
	m.threads = ThreadsFrom(m.opts.PricesFunc(m.account.Project), m.job.Filter.Format)
	return result{}
}

func (m *mailRun) profile(ctx context.Context) (jobs.Profile, result) {
	profile, err := get(m.slice, nil, m.box.Profile)
	if err != nil {
		return profile, m.resultOfCall(ctx, fmt.Errorf("profile of %s: %w", m.job.Account, err))
	}
	return profile, result{}
}

// saveLabels records the mailbox's labels, whose names users see. Without them they see
// ids until the next sync, so a fault does not stop the run.
func (m *mailRun) saveLabels(ctx context.Context) {
	if r := m.loadLabels(ctx); r.stops() {
		m.log.Debug("labels not read", m.logJob(zap.String("reason", r.why))...)
		return
	}
	if err := m.opts.Store.SaveLabels(ctx, m.ref, m.labels); err != nil {
		m.log.Debug("labels not saved", m.logJob(zap.Error(err))...)
	}
}

// loadLabels reads the list of labels, unless this run has it.
func (m *mailRun) loadLabels(ctx context.Context) result {
	if m.labels != nil {
		return result{}
	}
	labels, err := get(m.slice, nil, m.box.Labels)
	if err != nil {
		return m.resultOfCall(ctx, fmt.Errorf("labels of %s: %w", m.job.Account, err))
	}
	m.labels = labels
	return result{}
}

// checkAddress compares the address by which a mailbox names itself with the account's.
// Where the mailbox's address was not known and is a different one, the account is an
// alias: this is logged, and the slice ends, since the mailbox has one quota, under its
// own address, and only the next slice's calls are counted there. An address that is
// none is ignored.
func (m *mailRun) checkAddress(ctx context.Context, p jobs.Profile) result {
	if p.Email == "" {
		return result{}
	}
	address, err := jobs.ParseAddress(p.Email)
	if err != nil {
		m.log.Warn("the mailbox names itself by what is no address; the account's own counts", m.logJob(zap.Error(err))...)
		return result{}
	}
	if address == m.account.Mailbox {
		return result{}
	}
	others, err := m.opts.Store.NoteMailbox(ctx, m.ref, address)
	if err != nil {
		return failed(fmt.Errorf("note the address of mailbox %s: %w", m.job.Account, err))
	}
	names := m.logJob(zap.String("account", m.job.Account), zap.String("mailbox", address))
	if address != m.account.Email {
		m.log.Warn("the account is another name of a mailbox; its quota is counted under the mailbox's own address", names...)
	}
	if len(others) > 0 {
		m.log.Warn("several accounts are one mailbox: its messages are stored for each, and they share its quota",
			append(names, zap.Strings("others", others))...)
	}
	counted := m.account.QuotaUser()
	if m.account.Mailbox = address; counted != address {
		return result{reason: timeUp}
	}
	return result{}
}
