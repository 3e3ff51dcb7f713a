package api

import (
	"errors"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// A moment is one that a query names: by RFC 3339, or by a date, which begins in UTC
// as it does for commands that are given no zone.
type moment struct{ time.Time }

// UnmarshalText reads either way of writing.
func (m *moment) UnmarshalText(text []byte) error {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if t, err := time.Parse(layout, string(text)); err == nil {
			m.Time = t
			return nil
		}
	}
	return errors.New("expected a moment such as 2026-01-31T12:00:00Z (a + is written %2B) or a date such as 2026-01-31")
}

// Schema describes both forms.
func (moment) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, AnyOf: []*huma.Schema{
		{Type: huma.TypeString, Format: "date-time"}, {Type: huma.TypeString, Format: "date"},
	}}
}
