package sqlite

import (
	"context"

	"headroom/jobs"
)

// notedAtOnce bounds how many noted items become pending in one transaction.
const notedAtOnce = 2_000

const nextPass = `UPDATE items SET state = 'pending', attempts = 0, not_before = 0 WHERE job = ? AND id IN
	(SELECT id FROM items WHERE job = ? AND state = 'noted' ORDER BY seq LIMIT ?)`

// NextPass makes the next of the noted items pending, for their bodies to be
// brought, and reports whether there were any.
func (s *Store) NextPass(ctx context.Context, ref jobs.TaskRef) (more bool, err error) {
	_, err = s.owned(ctx, inLine, ref, "begin the next pass", func(ctx context.Context, x *tx, r *row) error {
		res, err := x.ExecContext(ctx, nextPass, r.num, r.num, notedAtOnce)
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		more = n > 0
		return err
	})
	return more, err
}
