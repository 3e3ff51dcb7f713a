package fault

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"headroom/internal/lab/fakegoogle/wire"
)

// errLength reports that a body was not as long as its header said.
var errLength = errors.New("the body is not as long as its header says")

// Send sends an answer at the pace, and with the length, that the quirk asks for.
func (quirk Quirk) Send(life context.Context, w http.ResponseWriter, r *http.Request, a wire.Reply) error {
	if quirk.LengthOff != 0 {
		length := max(a.Length()+quirk.LengthOff, 0)
		a.Header = wire.WithHeader(a.Header, "Content-Length", strconv.Itoa(length))
	}
	a.WriteHead(w)
	var err error
	if quirk.BytesPerSecond > 0 {
		err = a.WriteBody(&slowBody{life: life, w: w, gone: r.Context().Done(), perSecond: quirk.BytesPerSecond})
	} else {
		err = a.WriteBody(w)
	}
	if err == nil && quirk.LengthOff != 0 {
		err = errLength
	}
	return err
}

// slowStep is how long a [slowBody] gathers bytes where there is more than one.
const slowStep = 50 * time.Millisecond

// A slowBody passes bytes on at a pace.
type slowBody struct {
	life      context.Context
	w         http.ResponseWriter
	gone      <-chan struct{} // closed when the client goes
	perSecond int
}

func (t *slowBody) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		piece := min(max(t.perSecond*int(slowStep)/int(time.Second), 1), len(p)-written)
		n, err := t.w.Write(p[written : written+piece])
		written += n
		if err == nil {
			// What cannot flush, as a part of a batch, keeps its bytes together.
			if err = http.NewResponseController(t.w).Flush(); errors.Is(err, http.ErrNotSupported) {
				err = nil
			}
		}
		if err != nil {
			return written, err
		}
		wire.Pause(t.life, time.Duration(piece)*time.Second/time.Duration(t.perSecond), t.gone)
	}
	return written, nil
}
