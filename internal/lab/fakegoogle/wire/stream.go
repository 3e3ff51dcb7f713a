package wire

import (
	"encoding/base64"
	"io"
)

// A Stream is data that an answer holds as base64 in one of its strings, and that
// is made while the answer is sent.
type Stream struct {
	Size int // bytes, before base64
	Open func() io.Reader
}

// StreamMark stands in an answer where the stream belongs.
const StreamMark = "fake-google-stream-5d1c9e77"

// Streamed is an answer with a stream in it.
type Streamed struct {
	Answer any
	Stream Stream
}

// length is how long the stream is in an answer.
func (s Stream) length() int { return base64.URLEncoding.EncodedLen(s.Size) }

func (s Stream) write(w io.Writer) error {
	encoder := base64.NewEncoder(base64.URLEncoding, w)
	if _, err := io.Copy(encoder, s.Open()); err != nil {
		return err
	}
	return encoder.Close()
}
