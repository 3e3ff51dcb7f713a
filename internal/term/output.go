package term

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	xterm "golang.org/x/term"
)

// An Output is where a command writes for people. It cleans what is written, and
// remembers the first write that failed, so that no command can end well whose
// result nobody got. Several goroutines may write at once.
type Output struct {
	mu   sync.Mutex
	w    io.Writer
	err  error
	rest []byte // the beginning of a character whose end is still to come
}

// NewOutput returns an output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write cleans p, but for line breaks and tabs, and writes it.
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

// Err is the first error of a write; nil if there was none.
func (o *Output) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.rest) > 0 { // it ended within a character
		_ = o.write([]byte(string(utf8.RuneError)))
		o.rest = nil
	}
	return o.err
}

// Raw writes to the same place byte for byte. It is for files that go to stdout, and
// for bars, whose texts are cleaned before.
func (o *Output) Raw() io.Writer {
	if f, ok := o.w.(*os.File); ok && IsTerminal(f) {
		return f // its size is asked for
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

// Raw is where w writes byte for byte, if w is an [Output]; otherwise w.
func Raw(w io.Writer) io.Writer {
	if o, ok := w.(*Output); ok {
		return o.Raw()
	}
	return w
}

// Err is the error of what was written to w so far, if w is an [Output].
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

// IsTerminal reports whether w is a terminal that can show something.
func IsTerminal(w io.Writer) bool { return Width(w) > 0 }

// Width is how many columns the terminal w has; 0 if it is none. Some
// pseudo-terminals have no rows, and show nothing.
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
