package sqlite

import (
	"context"
	"encoding/json"
	"fmt"

	"headroom/jobs"
)

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
