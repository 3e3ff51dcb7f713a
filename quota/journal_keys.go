package quota

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// journalKeys name what a journal keeps of an account. They have the hash tag of
// the ledger's own keys.
type journalKeys struct{ base, user string }

func (l *Ledger) journalKeys(project, api, user string) (journalKeys, error) {
	p, err := l.plan(Caller{Project: project, User: user, Lane: Interactive}, api)
	if err != nil {
		return journalKeys{}, err
	}
	return journalKeys{p.base + "journal:", lower(user)}, nil
}

// sheet is a hash of what an account spent in some buckets, by bucket and lane;
// projectSheet the same of all accounts of the project.
func (k journalKeys) sheet(n int64) string        { return fmt.Sprintf("%sunits:%d:%s", k.base, n, k.user) }
func (k journalKeys) projectSheet(n int64) string { return fmt.Sprintf("%sunits:%d", k.base, n) }

// top is a sorted set of the accounts by what they spent in the buckets of a
// sheet, seen one by the bucket in which they spent last.
func (k journalKeys) top(n int64) string { return fmt.Sprintf("%stop:%d", k.base, n) }
func (k journalKeys) seen() string       { return k.base + "seen" }

// refusals are a list of notes of our own refusals, which may be many, and notes
// one of the rest.
func (k journalKeys) refusals() string { return k.base + "refusals:" + k.user }
func (k journalKeys) notes() string    { return k.base + "notes:" + k.user }

// sheetLife is how long sheets live: longer than units count.
func (l *Ledger) sheetLife() time.Duration {
	return max(10*time.Second, 4*time.Minute/time.Duration(l.scale))
}

// What stands in a sheet under the fields of a bucket and lane.
const (
	unitsField = 'u'
	callsField = 'c'
)

// field names a number in a sheet, for instance "37u2": units of lane backfill in
// the bucket at place 37.
func field(place int64, lane Lane, what byte) string {
	return strconv.FormatInt(place, 10) + string(what) + strconv.Itoa(slices.Index(Lanes, lane))
}

// readField takes a field's name apart.
func readField(name string) (place int64, lane Lane, what byte, ok bool) {
	if len(name) < 3 {
		return 0, "", 0, false
	}
	end := len(name) - 2
	place, err := strconv.ParseInt(name[:end], 10, 64)
	i := int(name[end+1] - '0')
	if err != nil || i < 0 || i >= len(Lanes) {
		return 0, "", 0, false
	}
	return place, Lanes[i], name[end], true
}
