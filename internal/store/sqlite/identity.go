package sqlite

import (
	"context"
	"fmt"
	"os"
)

// An Identity tells a store from others that share a queue with it by mistake.
type Identity struct {
	ID   string // made with the store; a copy or backup has the same
	Path string // of the database, absolute
	File string // of the database on its disk, "" where the system does not tell: a copy has another
}

// Identity returns what tells this store from others.
func (s *Store) Identity(ctx context.Context) (Identity, error) {
	i := Identity{Path: s.path}
	if err := s.reader.QueryRowContext(ctx, "SELECT id FROM store_id").Scan(&i.ID); err != nil {
		return Identity{}, fmt.Errorf("read the store's id: %w", err)
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return Identity{}, fmt.Errorf("read the store's file: %w", err)
	}
	i.File = fileOf(info)
	return i, nil
}
