package meter

import "time"

// An entry of the log takes some 80 bytes (names are interned). The newest
// million are kept: more than a test makes, and within what a host can spare.
// The figures of [Report] count all.
const (
	logPiece  = 1 << 10 // entries
	logPieces = 1_000
)

// arrivalLog keeps arrivals by their running number. The meter's lock guards it.
type arrivalLog struct {
	pieces        []*[logPiece]logEntry
	dropped, next int // the oldest number that is kept, and that of the next arrival
	names         map[string]uint32
	byName        []string
}

type logEntry struct {
	at                            time.Duration
	units                         int64
	id                            string
	project, user, method, format uint32
	account, calendar             uint32
	inFlight                      int32
	status                        int16
	over                          bool
	refused                       Refusal
}

// add returns the number of the arrival.
func (l *arrivalLog) add(c Call, e logEntry) int {
	e.id = c.ID
	e.project, e.user, e.method, e.format = l.intern(c.Project), l.intern(c.User), l.intern(c.Method), l.intern(c.Format)
	e.account, e.calendar = l.intern(c.Account), l.intern(c.Calendar)
	if l.next%logPiece == 0 {
		if len(l.pieces) == logPieces {
			l.pieces[0] = nil
			l.pieces = l.pieces[1:]
			l.dropped += logPiece
		}
		l.pieces = append(l.pieces, new([logPiece]logEntry))
	}
	l.next++
	*l.at(l.next - 1) = e
	return l.next - 1
}

// at finds an arrival that is kept.
func (l *arrivalLog) at(number int) *logEntry {
	return &l.pieces[(number-l.dropped)/logPiece][number%logPiece]
}

// answered notes the status of an answer, if its arrival is still kept.
func (l *arrivalLog) answered(number, status int) {
	if number >= l.dropped {
		l.at(number).status = int16(status)
	}
}

func (l *arrivalLog) intern(name string) uint32 {
	if n, ok := l.names[name]; ok {
		return n
	}
	if l.names == nil {
		l.names = map[string]uint32{}
	}
	n := uint32(len(l.byName))
	l.names[name] = n
	l.byName = append(l.byName, name)
	return n
}
