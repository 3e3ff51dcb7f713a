package app

import (
	"fmt"
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"headroom/config"
	"headroom/internal/term"
)

// NewLog returns a logger that writes to w by the settings. With format auto it
// writes text if w is a terminal, and JSON otherwise. Complaints
// about a Redis that refuses are not repeated more than once a minute.
func NewLog(c config.Log, w io.Writer) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(c.Level)
	if err != nil {
		return nil, fmt.Errorf("log.level: %w", err)
	}
	return zap.New(newRepeatCore(zapcore.NewCore(encoder(c.Format, w), zapcore.Lock(zapcore.AddSync(w)), level))), nil
}

func encoder(format string, w io.Writer) zapcore.Encoder {
	if format == "console" || format == "auto" && term.IsTerminal(w) {
		c := zap.NewDevelopmentEncoderConfig()
		c.EncodeTime = zapcore.TimeEncoderOfLayout("15:04:05.000")
		return zapcore.NewConsoleEncoder(c)
	}
	c := zap.NewProductionEncoderConfig()
	c.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	c.EncodeDuration = zapcore.SecondsDurationEncoder
	return zapcore.NewJSONEncoder(c)
}
