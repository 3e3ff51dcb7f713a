package gmail

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// separator is a line that begins a message of an mbox file:
// "From ADDRESS  Www Mmm DD HH:MM:SS YYYY", with one space or more between
// address and date. Nothing looser will do: lines of a body begin with "From "
// too.
var separator = regexp.MustCompile(`^From .*\S +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) ` +
	`(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ 0-3]\d \d\d:\d\d:\d\d \d{4}[ \t]*$`)

// SplitMbox returns the messages of an mbox file: the bytes between separator
// lines, line ends kept and nothing unescaped. Bytes before the first separator
// are a message of their own unless they are blank; so is a whole file without
// separators. The slices share mbox's memory.
func SplitMbox(mbox []byte) [][]byte {
	var messages [][]byte
	start, begun := 0, false // of the message being read
	end := func(at int) {
		if begun || len(bytes.TrimSpace(mbox[start:at])) > 0 {
			messages = append(messages, mbox[start:at:at])
		}
	}
	for at := 0; at < len(mbox); {
		line, rest := cutLine(mbox[at:])
		next := len(mbox) - len(rest)
		if bytes.HasPrefix(line, []byte("From ")) && separator.Match(line) {
			end(at)
			start, begun = next, true
		}
		at = next
	}
	end(len(mbox))
	return messages
}

// ReadMailbox returns the raw messages of path, byte for byte. A file whose name
// ends in .eml is one message, a leading "From " line included; any other file
// is an mbox (see [SplitMbox]). Of a folder it reads every file, subfolders too,
// in the order of their paths, but for those that begin with a dot or end in
// .json or .md.
func ReadMailbox(path string) ([][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read mailbox: %w", err)
	}
	if !info.IsDir() {
		return readMailFile(path)
	}
	var messages [][]byte
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case file != path && strings.HasPrefix(entry.Name(), "."):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular() || strings.HasSuffix(file, ".json") || strings.HasSuffix(file, ".md"):
			return nil
		}
		more, err := readMailFile(file)
		messages = append(messages, more...)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read mailbox %s: %w", path, err)
	}
	if len(messages) == 0 {
		return nil, fmt.Errorf("read mailbox %s: no mbox or eml file with a message is there", path)
	}
	return messages, nil
}

func readMailFile(path string) ([][]byte, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read mailbox: %w", err)
	}
	if strings.EqualFold(filepath.Ext(path), ".eml") {
		return [][]byte{b}, nil
	}
	return SplitMbox(b), nil
}
