package quota

import (
	"slices"
	"time"
)

// spending is units by the bucket in which they were spent, oldest first. The
// windows of a scope share it: they differ in how far they look back.
type spending []spent

type spent struct{ bucket, units int64 }

func (s *spending) add(bucket, units int64) {
	if n := len(*s); n > 0 && (*s)[n-1].bucket >= bucket {
		(*s)[n-1].units += units
		return
	}
	*s = append(*s, spent{bucket, units})
}

// forget drops what was spent before a bucket.
func (s *spending) forget(oldest int64) {
	*s = slices.DeleteFunc(*s, func(e spent) bool { return e.bucket < oldest })
}

// since returns what was spent in a bucket and after it.
func (s spending) since(oldest int64) (units int64) {
	for _, e := range s {
		if e.bucket >= oldest {
			units += e.units
		}
	}
	return units
}

// pay takes units away, the oldest first.
func (s *spending) pay(units int64) {
	for i := range *s {
		part := min(units, (*s)[i].units)
		(*s)[i].units -= part
		units -= part
	}
	*s = slices.DeleteFunc(*s, func(e spent) bool { return e.units == 0 })
}

// localWindows are what the interactive calls of this process have spent of one
// project's limits, whether Redis or the process itself let them in: sliding
// windows of the same shape as those in Redis, on the local clock. They say what
// may go on while Redis does not answer, and remember what it has not been told.
//
// They belong to a [breaker] and are guarded by its mutex. The zero value is ready
// for use but for width and kept.
type localWindows struct {
	width   time.Duration // of a bucket
	kept    int64         // buckets that the longest window looks back
	project localScope
	users   map[string]*localScope
	swept   int64 // the bucket in which idle users left last
}

// localScope is a project or a user.
type localScope struct {
	spent spending
	owed  spending // the part of spent that Redis has not been told
	hold  localHold
}

// localHold is a cool-down as far as this process knows.
type localHold struct {
	until  time.Time
	untold bool // Redis has not been told
	learn  learning
	about  Cooldown // its moment is on the clock of Redis
}

// user returns the scope of a user, who is there from now on.
func (w *localWindows) user(name string) *localScope {
	name = lower(name)
	u := w.users[name]
	if u == nil {
		u = &localScope{}
		if w.users == nil {
			w.users = map[string]*localScope{}
		}
		w.users[name] = u
	}
	return u
}

// scope returns the scope of a user, or the project's if there is no name.
func (w *localWindows) scope(user string) *localScope {
	if user == "" {
		return &w.project
	}
	return w.user(user)
}

// note records units that were spent. Users who have spent nothing for a whole
// window leave, so that memory is bounded by those who call.
func (w *localWindows) note(user string, bucket, units int64, owed bool) {
	if bucket > w.swept+w.kept {
		w.sweep(bucket)
	}
	u := w.user(user)
	for _, s := range []*localScope{&w.project, u} {
		s.spent.forget(bucket - w.kept)
		s.spent.add(bucket, units)
	}
	if owed {
		u.owed.forget(bucket - w.kept)
		u.owed.add(bucket, units)
	}
}

func (w *localWindows) sweep(bucket int64) {
	w.swept = bucket
	now := time.Now()
	for name, u := range w.users {
		if u.spent.forget(bucket - w.kept); len(u.spent) == 0 && !u.hold.until.After(now) {
			delete(w.users, name)
		}
	}
}

// localDenial is a call that does not fit locally: what bound, and for how long.
type localDenial struct {
	usage Usage
	bound Bound
	wait  time.Duration // negative: it never fits
	about *Cooldown     // that refused; nil: none
}

// check tells whether a call fits into the local windows of an interactive plan,
// and how full they are then. At is the time since the windows began, now the
// clock of the holds.
func (w *localWindows) check(p *plan, share float64, user string, cost int64, at time.Duration, now time.Time) ([]Usage, *localDenial) {
	usage := make([]Usage, 0, len(p.windows))
	var denied *localDenial
	longer := func(d localDenial) {
		if denied == nil || denied.wait >= 0 && (d.wait < 0 || d.wait > denied.wait) {
			denied = &d
		}
	}
	for _, scope := range []struct {
		*localScope
		windows []window
	}{{&w.project, p.project.windows}, {w.user(user), p.user.windows}} {
		for _, win := range scope.windows {
			u := Usage{Limit: win.limit, Units: win.units, Ceiling: win.local(share)}
			u.Used = scope.spent.since(int64(at/w.width) - win.buckets)
			if left := scope.hold.until.Sub(now); left > 0 {
				about := scope.hold.about
				longer(localDenial{u, BoundHold, left, &about})
			}
			switch missing := u.Used + cost - u.Ceiling; {
			case cost > u.Ceiling:
				longer(localDenial{u, BoundLocal, -1, nil})
			case missing > 0:
				longer(localDenial{u, BoundLocal, scope.spent.leaves(missing, win.buckets, at, w.width), nil})
			}
			u.Used += cost
			usage = append(usage, u)
		}
	}
	return usage, denied
}

// leaves returns how long it takes until so many units have left a window.
func (s spending) leaves(units, buckets int64, at, width time.Duration) time.Duration {
	oldest := int64(at/width) - buckets
	for _, e := range s {
		if e.bucket < oldest {
			continue
		}
		if units -= e.units; units <= 0 {
			return time.Duration(e.bucket+buckets+1)*width - at
		}
	}
	return 0 // the window holds less than that
}

// local is how far the process' own interactive calls may fill the window while
// Redis does not answer: the share that was set, and never more than what the
// background lanes' ceilings leave, since they may have filled theirs right before.
func (w window) local(share float64) int64 {
	return min(int64(float64(w.units)*share), w.reserve)
}
