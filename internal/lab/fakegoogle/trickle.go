package fakegoogle

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// errLength says that a body was not as long as its header told.
var errLength = errors.New("the length told is not that of the body")

// send sends an answer at the pace, and with the length, that the oddity says.
func (odd Oddity) send(life context.Context, w http.ResponseWriter, r *http.Request, a reply) error {
	if odd.LengthOff != 0 {
		length := max(a.length()+odd.LengthOff, 0)
		a.header = withHeader(a.header, "Content-Length", strconv.Itoa(length))
	}
	a.writeHead(w)
	var err error
	if odd.BytesPerSecond > 0 {
		err = a.writeBody(&trickle{life: life, w: w, gone: r.Context().Done(), perSecond: odd.BytesPerSecond})
	} else {
		err = a.writeBody(w)
	}
	if err == nil && odd.LengthOff != 0 {
		err = errLength
	}
	return err
}

// trickleStep is how long a [trickle] gathers bytes where there is more than one.
const trickleStep = 50 * time.Millisecond

// A trickle passes bytes on at a pace.
type trickle struct {
	life      context.Context
	w         http.ResponseWriter
	gone      <-chan struct{} // closed when the client goes
	perSecond int
}

func (t *trickle) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		piece := min(max(t.perSecond*int(trickleStep)/int(time.Second), 1), len(p)-written)
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
		pause(t.life, time.Duration(piece)*time.Second/time.Duration(t.perSecond), t.gone)
	}
	return written, nil
}
