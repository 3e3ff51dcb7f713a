package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"headroom/jobs"
)

// bodied is the condition for a message that a listing finds known, so that its
// body is not fetched again.
func bodied(f jobs.Format) string { return body(f) + " <> '' AND deleted_at = 0" }

// body is the column that holds the body which a format brings.
func body(f jobs.Format) string {
	if f == jobs.FormatFull {
		return "full_sha256"
	}
	return "sha256"
}

// Bodies are the messages of an account whose bodies are stored. Sizes are those of
// the raw messages, in every format.
type Bodies struct {
	Count   int64
	Bytes   int64
	Squares float64 // the sum of their squared sizes, which tells how far these spread
}

// Bodies counts the stored bodies of an account in a format: those with a label if one is
// named, and none in spam or trash unless they are asked for. It reads all rows of
// the account.
func (s *Store) Bodies(ctx context.Context, account string, f jobs.Format, label string, spamTrash bool) (Bodies, error) {
	where, args := "account = ? AND "+bodied(f), []any{normal(account)}
	add := func(condition, label string) error {
		// A label in the JSON array, quotes and all. LIKE would fold case in SQLite.
		text, err := json.Marshal(label)
		if err != nil {
			return fmt.Errorf("encode label %q: %w", label, err)
		}
		where, args = where+" AND REPLACE(labels, ?, '') "+condition+" labels", append(args, string(text))
		return nil
	}
	if label != "" {
		if err := add("<>", label); err != nil {
			return Bodies{}, err
		}
	}
	if !spamTrash {
		for _, hidden := range []string{"SPAM", "TRASH"} {
			if err := add("=", hidden); err != nil {
				return Bodies{}, err
			}
		}
	}
	var b Bodies
	err := s.reader.QueryRowContext(ctx, "SELECT COUNT(*), COALESCE(SUM(size), 0), COALESCE(SUM(1.0 * size * size), 0.0) FROM messages WHERE "+where, args...).
		Scan(&b.Count, &b.Bytes, &b.Squares)
	if err != nil {
		return Bodies{}, fmt.Errorf("count bodies of %s: %w", account, err)
	}
	return b, nil
}

// knownAtOnce bounds the ids in one statement.
const knownAtOnce = 500

// KnownAmong returns which of some ids are stored with their bodies in a format.
func (s *Store) KnownAmong(ctx context.Context, account string, f jobs.Format, ids []string) (map[string]bool, error) {
	known := map[string]bool{}
	for len(ids) > 0 {
		some := ids[:min(len(ids), knownAtOnce)]
		ids = ids[len(some):]
		args := []any{normal(account)}
		for _, id := range some {
			args = append(args, id)
		}
		found, err := list(ctx, s, func(scan func(...any) error, id *string) error { return scan(id) },
			"SELECT id FROM messages WHERE account = ? AND "+bodied(f)+" AND id IN (?"+strings.Repeat(", ?", len(some)-1)+")", args...)
		if err != nil {
			return nil, fmt.Errorf("known ids of %s: %w", account, err)
		}
		for _, id := range found {
			known[id] = true
		}
	}
	return known, nil
}

// FindJobs lists the jobs that a filter chooses by id, from those after afterID,
// at most limit ([DefaultPage] if zero or less).
func (s *Store) FindJobs(ctx context.Context, f jobs.JobFilter, afterID string, limit int) ([]jobs.Job, error) {
	where, args := "WHERE id > ?", []any{afterID}
	add := func(condition string, arg any) { where, args = where+" AND "+condition, append(args, arg) }
	if f.Kind != "" {
		add("kind = ?", f.Kind)
	}
	if f.Account != "" {
		add("account = ?", normal(f.Account))
	}
	if f.State != "" {
		add("state = ?", f.State)
	}
	return list(ctx, s, scanJob, selectJob+where+" ORDER BY id LIMIT ?", append(args, page(limit))...)
}

// FindMessages lists the stored messages of an account that a filter chooses by
// id, from those after afterID, at most limit ([DefaultPage] if zero or less).
// Deleted ones and stubs are not among them.
func (s *Store) FindMessages(ctx context.Context, account string, f jobs.MessageFilter, afterID string, limit int) ([]jobs.Message, error) {
	where, args, err := found(account, f)
	if err != nil {
		return nil, err
	}
	all, err := list(ctx, s, scanMessage, selectMessage+where+" AND id > ? ORDER BY id LIMIT ?", append(args, afterID, page(limit))...)
	if err != nil {
		return nil, err
	}
	return all, s.nameLabels(ctx, account, all)
}

// CountFound counts the messages that [Store.FindMessages] lists, and their bytes.
// It reads all rows of the account.
func (s *Store) CountFound(ctx context.Context, account string, f jobs.MessageFilter) (n, bytes int64, err error) {
	where, args, err := found(account, f)
	if err != nil {
		return 0, 0, err
	}
	err = s.reader.QueryRowContext(ctx, "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM messages "+where, args...).Scan(&n, &bytes)
	if err != nil {
		return 0, 0, fmt.Errorf("count messages of %s: %w", account, err)
	}
	return n, bytes, nil
}

// found is the condition on messages that a filter stands for.
func found(account string, f jobs.MessageFilter) (where string, args []any, err error) {
	where, args = "WHERE account = ? AND "+stored, []any{normal(account)}
	if f.Label != "" {
		// A label in the JSON array, quotes and all. LIKE would fold case in SQLite.
		text, err := json.Marshal(f.Label)
		if err != nil {
			return "", nil, fmt.Errorf("encode label %q: %w", f.Label, err)
		}
		where, args = where+" AND REPLACE(labels, ?, '') <> labels", append(args, string(text))
	}
	if !f.After.IsZero() {
		where, args = where+" AND internal_date >= ?", append(args, f.After.UnixMilli())
	}
	if !f.Before.IsZero() {
		where, args = where+" AND internal_date < ? AND internal_date <> ?", append(args, f.Before.UnixMilli(), noDate)
	}
	return where, args, nil
}
