package app

import (
	"fmt"
	"io"
	"os"

	"headroom/config"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"golang.org/x/term"
)

// NewLog returns a logger that writes to w as the settings say. With format
// auto it writes for people when w is a terminal, and JSON otherwise. Complaints
// about a Redis that refuses are not repeated more than once a minute.
func NewLog(c config.Log, w io.Writer) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(c.Level)
	if err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	return zap.New(newRepeatCore(zapcore.NewCore(encoder(c.Format, w), zapcore.Lock(zapcore.AddSync(w)), level))), nil
}

func encoder(format string, w io.Writer) zapcore.Encoder {
	if format == "console" || format == "auto" && IsTerminal(w) {
		c := zap.NewDevelopmentEncoderConfig()
		c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		return zapcore.NewConsoleEncoder(c)
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	c.EncodeDuration = zapcore.SecondsDurationEncoder
	return zapcore.NewJSONEncoder(c)
}

// IsTerminal reports whether w is a terminal that can show something. Some
// pseudo-terminals have no rows.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0 && height > 0
}
