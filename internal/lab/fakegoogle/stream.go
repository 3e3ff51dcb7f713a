package fakegoogle

import (
	"encoding/base64"
	"io"
)

// A stream is data that an answer holds as base64 in one of its strings, and that
// is made while the answer is sent.
type stream struct {
	size int // bytes, before base64
	open func() io.Reader
}

// streamMark stands in an answer where the stream belongs.
const streamMark = "fake-google-stream-5d1c9e77"

// streamed is an answer with a stream in it.
type streamed struct {
	answer any
	stream stream
}

// length is how long the stream is in an answer.
func (s stream) length() int { return base64.URLEncoding.EncodedLen(s.size) }

func (s stream) write(w io.Writer) error {
	encoder := base64.NewEncoder(base64.URLEncoding, w)
	if _, err := io.Copy(encoder, s.open()); err != nil {
		return err
	}
	return encoder.Close()
}
