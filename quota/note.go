package quota

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// NoteKind says what a [Note] tells of.
type NoteKind string

// The kinds of notes.
const (
	NoteAdmitted NoteKind = "admitted" // calls were charged
	NoteRefused  NoteKind = "refused"  // calls did not fit then
	NoteNever    NoteKind = "never"    // calls cost more than can ever fit
	NoteGoogle   NoteKind = "google"   // Google refused calls that were charged
	NoteAway     NoteKind = "away"     // Redis did not answer, and the calls were not made
	NoteLocal    NoteKind = "local"    // people's calls went on while Redis did not answer
)

// A Note tells of like decisions about one account that followed each other
// closely. What a kind of note has nothing to say about is zero.
type Note struct {
	At      time.Time     `json:"at"`   // the first of them, on the clock of Redis
	Last    time.Time     `json:"last"` // the last of them
	API     string        `json:"api"`
	Kind    NoteKind      `json:"kind"`
	Lane    Lane          `json:"lane"`
	Calls   int64         `json:"calls"`
	Units   int64         `json:"units,omitempty"`   // charged for all of them
	Cost    int64         `json:"cost,omitempty"`    // that the last of them asked for
	Limit   string        `json:"limit,omitempty"`   // that bound
	Bound   Bound         `json:"bound,omitempty"`   // which part of it
	Used    int64         `json:"used,omitempty"`    // of the limit, when the last of them was refused
	Ceiling int64         `json:"ceiling,omitempty"` // up to which the lane might fill the limit then
	Wait    time.Duration `json:"-"`                 // the longest that one of them was told to wait
	Until   time.Time     `json:"until,omitzero"`    // the latest moment that one was told to wait for, or the end of Google's cool-down
	Waits   bool          `json:"waits,omitempty"`   // the calls waited in place, and were not sent away
	Scope   Scope         `json:"scope,omitempty"`   // of Google's refusal
	Reason  string        `json:"reason,omitempty"`  // Google's
	Feature string        `json:"feature,omitempty"` // of Google's that was refused; "": all calls
	Words   string        `json:"words,omitempty"`   // Google's, of the last of them
	Process string        `json:"process,omitempty"` // that decided; "" if several did
}

// MarshalJSON adds the wait in seconds.
func (n Note) MarshalJSON() ([]byte, error) {
	type plain Note
	return json.Marshal(struct {
		plain
		WaitSeconds float64 `json:"wait_seconds,omitempty"`
	}{plain(n), n.Wait.Seconds()})
}

// noteRow is a note as Redis keeps it: some hundred bytes.
type noteRow struct {
	At      int64  `json:"a"` // us
	Took    int64  `json:"t,omitempty"`
	Kind    string `json:"k"`
	Lane    Lane   `json:"l"`
	Calls   int64  `json:"n"`
	Units   int64  `json:"u,omitempty"`
	Cost    int64  `json:"c,omitempty"`
	Limit   string `json:"i,omitempty"`
	Bound   Bound  `json:"b,omitempty"`
	Used    int64  `json:"d,omitempty"`
	Ceiling int64  `json:"g,omitempty"`
	Wait    int64  `json:"w,omitempty"`
	Until   int64  `json:"e,omitempty"`
	Waits   bool   `json:"p,omitempty"`
	Scope   Scope  `json:"s,omitempty"`
	Reason  string `json:"r,omitempty"`
	Feature string `json:"f,omitempty"`
	Words   string `json:"x,omitempty"`
	Process string `json:"o,omitempty"`
}

func (n Note) encode() string {
	row := noteRow{
		At: n.At.UnixMicro(), Took: n.Last.Sub(n.At).Microseconds(), Kind: string(n.Kind), Lane: n.Lane, Calls: n.Calls, Units: n.Units,
		Cost: n.Cost, Limit: n.Limit, Bound: n.Bound, Used: n.Used, Ceiling: n.Ceiling, Wait: n.Wait.Microseconds(),
		Waits: n.Waits, Scope: n.Scope, Reason: n.Reason, Feature: n.Feature, Words: n.Words, Process: n.Process,
	}
	if !n.Until.IsZero() {
		row.Until = n.Until.UnixMicro()
	}
	text, err := json.Marshal(row)
	if err != nil {
		panic(err) // numbers and strings
	}
	return string(text)
}

func decodeNote(text string) (Note, error) {
	var r noteRow
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Note{}, fmt.Errorf("read a note: %w", err)
	}
	n := Note{
		At: time.UnixMicro(r.At), Kind: NoteKind(r.Kind), Lane: r.Lane, Calls: r.Calls, Units: r.Units,
		Cost: r.Cost, Limit: r.Limit, Bound: r.Bound, Used: r.Used, Ceiling: r.Ceiling, Wait: time.Duration(r.Wait) * time.Microsecond,
		Waits: r.Waits, Scope: r.Scope, Reason: r.Reason, Feature: r.Feature, Words: r.Words, Process: r.Process,
	}
	n.Last = n.At.Add(time.Duration(r.Took) * time.Microsecond)
	if r.Until != 0 {
		n.Until = time.UnixMicro(r.Until)
	}
	return n, nil
}

// subject is what like notes share.
func (n Note) subject() Note {
	return Note{Kind: n.Kind, Lane: n.Lane, Limit: n.Limit, Bound: n.Bound, Waits: n.Waits, Scope: n.Scope, Reason: n.Reason, Feature: n.Feature}
}

// add takes up a like note that is not older.
func (n *Note) add(next Note) {
	if next.Last.After(n.Last) {
		n.Last = next.Last
	}
	n.Calls += next.Calls
	n.Units += next.Units
	n.Cost, n.Used, n.Ceiling = next.Cost, next.Used, next.Ceiling
	n.Wait = max(n.Wait, next.Wait)
	n.Words = next.Words
	if next.Until.After(n.Until) {
		n.Until = next.Until
	}
	if n.Process != next.Process {
		n.Process = ""
	}
}

// joinWithin is how closely like notes follow each other to become one.
const joinWithin = 3 * time.Second

// joined sorts notes by time and makes one of like ones that follow each other
// closely, whatever happened between. A run ends when it began span ago.
func joined(notes []Note, span time.Duration) []Note {
	slices.SortStableFunc(notes, func(a, b Note) int { return a.At.Compare(b.At) })
	var runs []Note
	latest := map[Note]int{}
	for _, n := range notes {
		i, seen := latest[n.subject()]
		if seen && n.At.Sub(runs[i].Last) <= joinWithin && n.Last.Sub(runs[i].At) <= span {
			runs[i].add(n)
			continue
		}
		latest[n.subject()] = len(runs)
		runs = append(runs, n)
	}
	slices.SortStableFunc(runs, func(a, b Note) int { return a.Last.Compare(b.Last) })
	return runs
}
