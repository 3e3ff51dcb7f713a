package quota

import (
	"context"
	"errors"
)

// Publish makes live settings hold in every process, with its next decision,
// unless settings of the same or a higher revision hold already. It returns those
// that hold.
func (l *Ledger) Publish(ctx context.Context, project, api string, live Live) (Live, error) {
	return Live{}, errors.New("not built yet")
}

// Live returns the live settings that hold.
func (l *Ledger) Live(ctx context.Context, project, api string) (Live, error) {
	return Live{}, errors.New("not built yet")
}
