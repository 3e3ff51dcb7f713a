package sqlite

import (
	"context"
	"database/sql"
	"errors"
)

// A Connection is one that a store uses.
type Connection struct {
	query func(ctx context.Context, query string, n *int) error
}

// QueryRow runs a query that answers with one number.
func (c Connection) QueryRow(ctx context.Context, query string) (n int, err error) {
	return n, c.query(ctx, query, &n)
}

// Connections are the kinds of connections of a store, by name.
func Connections(s *Store) map[string]Connection {
	return map[string]Connection{
		"reader": {func(ctx context.Context, query string, n *int) error {
			return s.reader.QueryRowContext(ctx, query).Scan(n)
		}},
		"writer": {func(ctx context.Context, query string, n *int) error {
			err := s.write(ctx, func(ctx context.Context, x *tx) error { return x.QueryRowContext(ctx, query).Scan(n) })
			if errors.Is(err, sql.ErrNoRows) {
				return nil
			}
			return err
		}},
	}
}
