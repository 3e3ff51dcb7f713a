package calendar

import (
	"encoding/binary"
	"net/http"

	"headroom/internal/lab/fakegoogle/page"
	"headroom/internal/lab/fakegoogle/wire"
)

// A syncToken names the state of a list that its owner knows, and the question.
type syncToken struct {
	list       uint64 // whose list
	generation uint32
	binding    uint64 // the parameters that may not change
	rev        int64
}

func (t syncToken) encode() string {
	b := binary.BigEndian.AppendUint64(nil, t.list)
	b = binary.BigEndian.AppendUint32(b, t.generation)
	b = binary.BigEndian.AppendUint64(b, t.binding)
	b = binary.BigEndian.AppendUint64(b, uint64(t.rev))
	return tokenEncoding.EncodeToString(b)
}

// takeSyncToken reads a sync token of a list: 400 where it is none or the
// question is another one now, 410 where it has expired.
func takeSyncToken(text string, want syncToken, state *tokenState) (rev int64, bad *wire.Error) {
	b, err := tokenEncoding.DecodeString(text)
	if err != nil || len(b) != 28 || binary.BigEndian.Uint64(b) != want.list {
		return 0, badRequest("invalid", "Invalid sync token value.", "syncToken") // unverified
	}
	if state.expired || binary.BigEndian.Uint32(b[8:]) != want.generation {
		e, _ := wire.NamedError("fullSyncRequired")
		return 0, e
	}
	if binary.BigEndian.Uint64(b[12:]) != want.binding {
		return 0, badRequest("badRequest", "Sync token cannot be used with other query parameters than those of the initial request.", "syncToken") // unverified
	}
	return int64(binary.BigEndian.Uint64(b[20:])), nil
}

// forbidParams refuses parameters that must not come with a sync token.
func forbidParams(q page.Request, names ...string) *wire.Error {
	for _, name := range names {
		if q.Has(name) {
			return badRequest("badRequest", "Sync token cannot be used with the parameter "+name+".", name) // unverified
		}
	}
	return nil
}

// forbidFalse refuses parameters that would leave out what a sync needs.
func forbidFalse(q page.Request, names ...string) *wire.Error {
	for _, name := range names {
		if q.Has(name) && (q.Get(name) == "false" || q.Get(name) == "0") {
			return badRequest("badRequest", "Sync token cannot be used with "+name+"=false.", name) // unverified
		}
	}
	return nil
}

// gone is the answer to a call whose answer cannot be made up any more.
func gone(reason string) *wire.Error {
	if e, ok := wire.NamedError(reason); ok {
		return e
	}
	return wire.NewError(http.StatusGone, "global", reason, reason)
}
