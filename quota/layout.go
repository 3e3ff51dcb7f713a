package quota

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
)

// A record is a run of little-endian numbers in a string that Go and Lua both read.
type record struct {
	name   string
	fields []number
}

type number struct {
	name string
	size int // in bytes
}

// records is the layout of everything that the scripts keep and receive: written
// here and nowhere else. A script names an offset RECORD.FIELD and a length
// RECORD.SIZE, and newScript puts the numbers in.
//
// The value of a scope's key is a PREAMBLE, a HEADER per window, for the project its
// DAY, and per window a ring of buckets: n+1 numbers of 4 bytes, bucket i in slot
// i % (n+1). Change any of that together with layoutVersion.
var records = []record{
	{"PREAMBLE", []number{
		{"COOLDOWN", 6}, // until when the scope is closed, in ms; 0: it is open
		{"NEWEST", 4},   // low bits of the number of the newest bucket, now_us / width_us
		{"SHAPES", 1},   // how many shapes of keys share the project's limits; of a user: 2 if its calls in flight or bytes need a closer look, else 1
		{"UNKNOWN", 6},  // until when the project's windows are unknown, in ms; 0: they are known
		{"SHARE", 1},    // of the limits that may be used since Google refused a call, in 1/255; 0: all
		{"SINCE", 6},    // when the share began to grow again, in ms; 0: it waits for a probe
		{"REVISION", 4}, // of the project's live settings; of a user's, as it was lately
		{"SERVER", 12},  // the server that counted last: its run id and evictions
		{"BURST", 4},    // when lending: units of interactive calls in the last seconds
		{"PEAK", 4},     // when lending: the largest burst of the last minutes
	}},
	{"HEADER", []number{
		{"REST", 4},          // units in the older live buckets
		{"SYNC_PAID", 4},     // when lane sync's pace is paid off, in us since PACE.CARRY
		{"BACKFILL_PAID", 4}, // buckets before the newest one began; 0: long ago
		{"CURRENT", 4},       // units in the newest bucket; they move to the ring when it ends
	}},
	{"DAY", []number{
		{"ENDS", 4}, // when the day ends in which the units were spent, in s
		{"UNITS", 4},
	}},
	// A request to acquire.lua: this, then for the project and for the user a SCOPE
	// with a WINDOW for each of its windows.
	{"REQUEST", []number{
		{"COST", 4},      // units to charge; 0: only look
		{"BUDGET", 4},    // units that the lane may bring the project's day to
		{"WIDTH", 4},     // of a bucket, in us
		{"IN_FLIGHT", 4}, // calls in flight up to which the lane may go
		{"BYTES", 4},     // of a day, up to which the lane may go on; 0: no limit
		{"HOUR", 4},      // length of an hour of quota time, in us
		{"LEARNED", 4},   // a cap as high as this, if learned, would bind no lane
		{"LANE", 1},      // 0 interactive, 1 sync, 2 backfill
		{"LENDING", 1},   // 1: the background's ceilings follow what interactive calls ask for
		{"FRESH", 1},     // 1: a missing project means that nothing was spent
		{"SPENT", 1},     // 1: the units are spent already: charge them whatever stands in the way
		{"REVISION", 4},  // of the live settings that the request was made by
		{"YESTERDAY", 4}, // when it ends, in s; likewise
		{"TODAY", 4},
		{"TOMORROW", 4},
	}},
	{"SCOPE", []number{
		{"WINDOWS", 1},
		{"LIFE", 4}, // of the key, in s; 0: for ever
	}},
	{"WINDOW", []number{
		{"CEILING", 4},  // units up to which the lane may fill the window
		{"SYNC", 4},     // time that lane sync's pace pays for a unit, whoever spends it,
		{"BACKFILL", 4}, // in 1/256 us, and lane backfill's; 0: no pace
		{"BUCKETS", 4},  // n: a unit counts in its own bucket and in n more
		{"RESERVE", 4},  // the ceiling while the windows are unknown
		{"LIMIT", 4},    // Google's
		{"LEAST", 4},    // units that lane backfill may fill when lending, at least
		{"MOST", 4},     // and at most
	}},
	// What is told of a cool-down to processes whose keys have another shape: this,
	// then what is known of it, as text.
	{"TOLD", []number{
		{"UNTIL", 6}, // in ms
		{"AT", 6},    // in ms
		{"SHARE", 1},
	}},
}

// constants are the numbers that several scripts share.
var constants = map[string]string{
	"PACE.CARRY":    "5",                                                                   // buckets for which unused pace may be made up
	"LENDING.BURST": "10",                                                                  // buckets in which interactive calls of the last seconds are forgotten
	"LENDING.PEAK":  "300",                                                                 // and their largest burst
	"SHARE.PROBE":   "2",                                                                   // buckets that a call after a cool-down goes ahead of the others
	"SHARE.RAMP":    "120",                                                                 // buckets in which a share grows from nothing to all
	"COMMON.PAID":   strconv.Itoa(offsets["PREAMBLE.SIZE"] + offsets["HEADER.SYNC_PAID"]),  // where the first SYNC_PAID stands
	"COMMON.LAST":   strconv.Itoa(offsets["PREAMBLE.SIZE"] + 4*offsets["HEADER.SIZE"] - 1), // byte that a common call reads: three windows, the day and more
	"SLOT.KEPT":     strconv.FormatInt(3*slotLife.Milliseconds(), 10),                      // ms that slots are kept that nobody renews
	"SLOT.LIFE":     strconv.FormatInt(slotLife.Microseconds(), 10),                        // us that a slot counts that nobody renews
}

// offsets has the number for each name that a script may use.
var offsets = func() map[string]int {
	all := map[string]int{}
	for _, r := range records {
		at := 0
		for _, f := range r.fields {
			all[r.name+"."+f.name] = at
			at += f.size
		}
		all[r.name+".SIZE"] = at
	}
	return all
}()

var layoutName = regexp.MustCompile(`\b[A-Z]+\.[A-Z_]+\b`)

// withNumbers puts the numbers in place of their names.
func withNumbers(source string) string {
	return layoutName.ReplaceAllStringFunc(source, func(name string) string {
		if offset, ok := offsets[name]; ok {
			return strconv.Itoa(offset)
		}
		if value, ok := constants[name]; ok {
			return value
		}
		panic("a script names " + name + ", which layout.go does not know")
	})
}

// pack appends the numbers of a record, in the order of its fields.
func pack(b []byte, name string, values ...int64) []byte {
	for _, r := range records {
		if r.name != name {
			continue
		}
		if len(values) != len(r.fields) {
			panic(fmt.Sprintf("%d values for the %d fields of %s", len(values), len(r.fields), name))
		}
		var bytes [8]byte
		for i, f := range r.fields {
			binary.LittleEndian.PutUint64(bytes[:], uint64(values[i]))
			b = append(b, bytes[:f.size]...)
		}
		return b
	}
	panic("no record " + name)
}
