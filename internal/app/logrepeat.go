package app

import (
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"headroom/internal/redisconn"
)

// repeatPeriod is how often one complaint about Redis is logged while it lasts.
const repeatPeriod = time.Minute

// A repeatCore logs what parts of the process complain about while Redis refuses
// them, the same again only once a minute and with the number of those left out.
// There are dozens a second: each loop of Asynq's servers and of the scheduler asks
// Redis again and again. All else passes.
type repeatCore struct {
	zapcore.Core
	seen *repeats
}

func newRepeatCore(core zapcore.Core) zapcore.Core {
	return &repeatCore{core, &repeats{last: map[string]*repeat{}}}
}

// repeats is what was logged of complaints about Redis, by complaint. There are as
// many as places in the code that log them.
type repeats struct {
	mu   sync.Mutex
	last map[string]*repeat
}

type repeat struct {
	at      time.Time
	skipped int
}

// With implements [zapcore.Core].
func (c *repeatCore) With(fields []zapcore.Field) zapcore.Core {
	return &repeatCore{c.Core.With(fields), c.seen}
}

// Check implements [zapcore.Core].
func (c *repeatCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

// Write implements [zapcore.Core].
func (c *repeatCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	cause := ""
	if e.Level >= zapcore.WarnLevel {
		cause = redisComplaint(e.Message, fields)
	}
	if cause == "" {
		return c.Core.Write(e, fields)
	}
	skipped, ok := c.seen.log(cause+"\x00"+e.LoggerName+"\x00"+complaint(e.Message), e.Time)
	if !ok {
		return nil
	}
	fields = append(fields[:len(fields):len(fields)], zap.String("cause", cause))
	if skipped > 0 {
		fields = append(fields, zap.Int("repeated", skipped))
	}
	return c.Core.Write(e, fields)
}

// log reports whether a complaint is to be logged, and how many of its kind were not.
func (r *repeats) log(kind string, at time.Time) (skipped int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last[kind]
	if last == nil {
		r.last[kind] = &repeat{at: at}
		return 0, true
	}
	if at.Sub(last.at) < repeatPeriod {
		last.skipped++
		return 0, false
	}
	skipped = last.skipped
	*last = repeat{at: at}
	return skipped, true
}

// redisComplaint is why Redis refuses what an entry complains about, "" if the
// entry is about something else.
func redisComplaint(message string, fields []zapcore.Field) string {
	if cause := redisconn.Refusal(message); cause != "" { // Asynq's entries have no fields
		return cause
	}
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && f.Type == zapcore.ErrorType {
			if cause := redisconn.Refusal(err.Error()); cause != "" {
				return cause
			}
		}
	}
	return ""
}

// complaint is the part of a message that does not tell one task from another.
func complaint(message string) string {
	words := strings.Fields(message)
	return strings.Join(words[:min(3, len(words))], " ")
}
