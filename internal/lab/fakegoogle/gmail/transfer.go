package gmail

import (
	"bytes"
	"encoding/base64"
	"io"
	"mime/quotedprintable"
	"strings"
)

// decodeTransfer undoes a transfer encoding as far as the data allows.
func decodeTransfer(b []byte, encoding string) []byte {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "quoted-printable":
		decoded, err := io.ReadAll(quotedprintable.NewReader(bytes.NewReader(b)))
		if err != nil && len(decoded) == 0 {
			return b
		}
		return decoded
	case "base64":
		return decodeBase64(b)
	case "x-uuencode", "x-uue", "uuencode":
		return decodeUU(b)
	}
	return b
}

// decodeBase64 passes over all that is no base64.
func decodeBase64(b []byte) []byte {
	kept := make([]byte, 0, len(b))
	for _, c := range b {
		if c == '+' || c == '/' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			kept = append(kept, c)
		}
	}
	if len(kept)%4 == 1 {
		kept = kept[:len(kept)-1]
	}
	decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(kept)))
	n, _ := base64.RawStdEncoding.Decode(decoded, kept)
	return decoded[:n]
}

// decodeUU decodes the lines between "begin MODE NAME" and "end"; data without
// such a beginning is returned as it is. A line names its length first and has
// four characters for three bytes, of which spaces at its end may be lost.
func decodeUU(b []byte) []byte {
	rest, ok := afterBegin(b)
	if !ok {
		return b
	}
	decoded := []byte{}
	for len(rest) > 0 {
		var line []byte
		line, rest = cutLine(rest)
		if len(line) == 0 || string(line) == "end" {
			break
		}
		length, bytesOfLine := int(sixBits(line[0])), []byte(nil)
		for line = line[1:]; len(bytesOfLine) < length; line = line[min(4, len(line)):] {
			var four [4]byte
			for i := range min(4, len(line)) {
				four[i] = sixBits(line[i])
			}
			bytesOfLine = append(bytesOfLine, four[0]<<2|four[1]>>4, four[1]<<4|four[2]>>2, four[2]<<6|four[3])
		}
		decoded = append(decoded, bytesOfLine[:length]...)
	}
	return decoded
}

// afterBegin returns what follows the first line that begins uuencoded data.
func afterBegin(b []byte) (rest []byte, ok bool) {
	for len(b) > 0 {
		var line []byte
		line, b = cutLine(b)
		if fields := bytes.Fields(line); len(fields) >= 2 && string(fields[0]) == "begin" && len(bytes.Trim(fields[1], "01234567")) == 0 {
			return b, true
		}
	}
	return nil, false
}

// sixBits is what a character of uuencoded data stands for; a space and a
// backquote are both 0.
func sixBits(c byte) byte { return (c - ' ') & 0x3f }
