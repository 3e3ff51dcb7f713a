package gmail

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// A content is the raw bytes of a message. Those of a large made-up one are not
// held: its filling is made whenever it is read.
type content struct {
	head []byte // the message; of a large one what comes before the filling
	fill int    // blocks of filling
	tail []byte
}

// size returns the raw bytes there are.
func (c content) size() int { return len(c.head) + c.fill*fillingBlock + len(c.tail) }

// reader reads the raw bytes from the start.
func (c content) reader() io.Reader {
	if c.fill == 0 && len(c.tail) == 0 {
		return bytes.NewReader(c.head)
	}
	return io.MultiReader(bytes.NewReader(c.head), &filling{blocks: c.fill}, bytes.NewReader(c.tail))
}

// start returns what is read of a message where not all of it is needed: the
// headers, and text enough for a snippet.
func (c content) start() []byte { return c.head[:min(len(c.head), snippetSource)] }

// payload returns the tree of parts; see [fullPayload].
func (c content) payload(key string) *payload {
	p := fullPayload(key, c.short())
	if c.fill > 0 {
		p.Parts[largeAttachment].Body.Size = c.fill * fillingDecoded
	}
	return p
}

// short is the message without its filling: the whole of any but a large one.
func (c content) short() []byte {
	if len(c.tail) == 0 {
		return c.head
	}
	return append(bytes.Clone(c.head), c.tail...)
}

// sha256 returns the hash of the raw bytes, in hex.
func (c content) sha256() string {
	h := sha256.New()
	_, _ = io.Copy(h, c.reader()) // neither a hash nor memory fails
	return hex.EncodeToString(h.Sum(nil))
}
