package gauge_test

import (
	"strings"
	"testing"

	"headroom/internal/control/quotaview"
	"headroom/internal/gauge"
	"headroom/internal/term"
)

func TestTheLegendFitsItsTerminal(t *testing.T) {
	for _, colours := range []bool{false, true} {
		p := &term.Page{Width: 80, Colours: colours}
		gauge.WriteState(p, quotaview.QuotaState{Project: "main"})
		text := p.String()
		text = strings.ReplaceAll(text, "\x1b[0m", "")
		for _, colour := range []string{"31", "32", "33", "34", "35", "36"} {
			text = strings.ReplaceAll(text, "\x1b["+colour+"m", "")
		}
		if !strings.HasSuffix(text, "x to nobody\n") {
			t.Errorf("the legend does not end the page: %q", text)
		}
		for line := range strings.Lines(text) {
			if n := len(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("a line has %d columns: %q", n, line)
			}
		}
	}
}
