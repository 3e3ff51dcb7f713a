package term

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	xterm "golang.org/x/term"
)

// An Output is where a command writes. It cleans the text and remembers the first write
// that failed, so that a command whose result was lost does not succeed. It is safe for
// concurrent use.
type Output struct {
	mu   sync.Mutex
	w    io.Writer
	err  error
	rest []byte // the first bytes of a character that is not complete yet
}

// NewOutput returns an output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write cleans p, except for line breaks and tabs, and writes it.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text := append(o.rest, p...)
	whole := len(text)
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if last := text[len(text)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				whole -= i
			}
			break
		}
	}
	o.rest = append([]byte(nil), text[whole:]...)
	if err := o.write([]byte(CleanLines(string(text[:whole])))); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (o *Output) write(p []byte) error {
	if o.err != nil || len(p) == 0 {
		return o.err
	}
	_, o.err = o.w.Write(p)
	return o.err
}

// Err returns the first error of a write.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) > 0 { // the last character is not complete
		_ = o.write([]byte(string(utf8.RuneError)))
		o.rest = nil
	}
	return o.err
}

// Raw returns a writer to the same destination that does not clean. It is for the bytes
// of files, and for text that was cleaned before.
func (o *Output) Raw() io.Writer {
	if f, ok := o.w.(*os.File); ok && IsTerminal(f) {
		return f // bars ask for its size
	}
	return rawOutput{o}
}

type rawOutput struct{ o *Output }

func (r rawOutput) Write(p []byte) (int, error) {
	r.o.mu.Lock()
	defer r.o.mu.Unlock()
	if err := r.o.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Raw returns [Output.Raw] of w, or w itself if it is no [Output].
func Raw(w io.Writer) io.Writer {
	if o, ok := w.(*Output); ok {
		return o.Raw()
	}
	return w
}

// Err returns [Output.Err] of w; nil if it is no [Output].
func Err(w io.Writer) error {
	if o, ok := w.(*Output); ok {
		return o.Err()
	}
	return nil
}

// unwrap returns what w writes to, if it is an [Output].
func unwrap(w io.Writer) io.Writer {
	switch o := w.(type) {
	case *Output:
		return o.w
	case rawOutput:
		return o.o.w
	}
	return w
}

// IsTerminal reports whether w is a terminal with a size.
func IsTerminal(w io.Writer) bool { return Width(w) > 0 }

// Width returns the number of columns of the terminal w; 0 if w is no terminal, or one
// without rows, as some pseudo-terminals are.
func Width(w io.Writer) int {
	f, ok := unwrap(w).(*os.File)
	if !ok {
		return 0
	}
	width, height, err := xterm.GetSize(int(f.Fd()))
	if err != nil || height <= 0 {
		return 0
	}
	return max(0, width)
}
