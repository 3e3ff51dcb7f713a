package sqlite

import (
	"context"
	"fmt"
	"maps"

	"headroom/jobs"
)

// SaveLabels records the labels that a mailbox has now, in place of those before.
func (s *Store) SaveLabels(ctx context.Context, ref jobs.TaskRef, labels []jobs.Label) error {
	_, err := s.owned(ctx, inLine, ref, "save labels", func(ctx context.Context, x *tx, r *row) error {
		before, err := labelNames(ctx, x, r.Account)
		if err != nil {
			return err
		}
		now := map[string]string{}
		for _, l := range labels {
			now[l.ID] = clean(l.Name)
		}
		if maps.Equal(before, now) {
			return nil
		}
		if _, err := x.ExecContext(ctx, "DELETE FROM labels WHERE account = ?", r.Account); err != nil {
			return err
		}
		for id, name := range now {
			if _, err := x.ExecContext(ctx, "INSERT INTO labels (account, id, name) VALUES (?, ?, ?)", r.Account, id, name); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// Labels returns the names of a mailbox's labels by their ids, as the last backfill
// or sync read them.
func (s *Store) Labels(ctx context.Context, account string) (map[string]string, error) {
	names, err := labelNames(ctx, s.reader, normal(account))
	if err != nil {
		return nil, fmt.Errorf("labels of %s: %w", account, err)
	}
	return names, nil
}

func labelNames(ctx context.Context, q querier, account string) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, "SELECT id, name FROM labels WHERE account = ?", account)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	names := map[string]string{}
	for rows.Next() {
		var id, name string
		if err := rows.Scan(&id, &name); err != nil {
			return nil, err
		}
		names[id] = name
	}
	return names, rows.Err()
}

// nameLabels gives messages of an account the names of their labels. A message of
// which no label's name is known gets none.
func (s *Store) nameLabels(ctx context.Context, account string, messages []jobs.Message) error {
	if len(messages) == 0 {
		return nil
	}
	names, err := s.Labels(ctx, account)
	if err != nil || len(names) == 0 {
		return err
	}
	for i := range messages {
		m := &messages[i]
		for _, id := range m.Labels {
			m.LabelNames = append(m.LabelNames, names[id])
		}
	}
	return nil
}
