package sqlite

import (
	"context"
	"fmt"
)

// A Body is the body of a message, or of one of its attachments, that a row refers to.
type Body struct {
	Account string `json:"account"`
	Message string `json:"message"`
	Format  string `json:"format"`         // raw or full
	Part    string `json:"part,omitempty"` // of an attachment
	SHA256  string `json:"sha256"`
}

// allBodies lists what rows refer to.
const allBodies = `SELECT account, id AS message, 'raw' AS format, '' AS part, sha256 AS sha FROM messages WHERE sha256 <> ''
	UNION ALL SELECT account, id, 'full', '', full_sha256 FROM messages WHERE full_sha256 <> ''
	UNION ALL SELECT account, message, 'full', part, sha256 FROM attachments`

// BodySums returns the SHA-256 of every body that a row refers to, in order, each once.
func (s *Store) BodySums(ctx context.Context) ([]string, error) {
	sums, err := list(ctx, s, func(scan func(...any) error, sum *string) error { return scan(sum) },
		"SELECT DISTINCT sha FROM ("+allBodies+") AS bodies ORDER BY sha")
	if err != nil {
		return nil, fmt.Errorf("list the bodies: %w", err)
	}
	return sums, nil
}

// BodiesOf returns the bodies of some sums, one for each row that refers to it.
func (s *Store) BodiesOf(ctx context.Context, of func(sum string) bool) ([]Body, error) {
	rows, err := s.reader.QueryContext(ctx, allBodies)
	if err != nil {
		return nil, fmt.Errorf("list the bodies: %w", err)
	}
	defer rows.Close()
	var found []Body
	for rows.Next() {
		var b Body
		if err := rows.Scan(&b.Account, &b.Message, &b.Format, &b.Part, &b.SHA256); err != nil {
			return nil, fmt.Errorf("list the bodies: %w", err)
		}
		if of(b.SHA256) {
			found = append(found, b)
		}
	}
	return found, rows.Err()
}
