package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headroom/jobs"
)

// Checked is what a check of the store has found. A body is what one row of a message
// or attachment refers to.
type Checked struct {
	Blobs        int64             `json:"blobs"` // that rows refer to
	Bytes        int64             `json:"bytes"` // that were read
	Missing      []LostBody        `json:"missing"`
	Damaged      []LostBody        `json:"damaged"`
	Unreferenced []StrayBlob       `json:"unreferenced"`
	lost         map[string]string // hash to why
}

// Sound reports whether nothing is wrong.
func (c Checked) Sound() bool { return len(c.Missing)+len(c.Damaged)+len(c.Unreferenced) == 0 }

// A LostBody is a body that a row refers to and that cannot be served.
type LostBody struct {
	Account string `json:"account"`
	Message string `json:"message"`
	Format  string `json:"format"`         // raw or full
	Part    string `json:"part,omitempty"` // of an attachment
	SHA256  string `json:"sha256"`
}

// A StrayBlob is a file that no row refers to.
type StrayBlob struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
}

// bodiesOf lists what rows refer to.
const bodiesOf = `SELECT account, id AS message, 'raw' AS format, '' AS part, sha256 AS sha FROM messages WHERE sha256 <> ''
	UNION ALL SELECT account, id, 'full', '', full_sha256 FROM messages WHERE full_sha256 <> ''
	UNION ALL SELECT account, message, 'full', part, sha256 FROM attachments`

// Check reads all blobs and holds them to the rows. It takes 100 bytes of memory for
// each, and as long as reading them does; others may use the store meanwhile. What is
// younger than an hour may be without a row. Progress, if not nil, is told how many of
// the blobs that rows refer to were read, and of how many.
func (s *Store) Check(ctx context.Context, progress func(done, all int64)) (c Checked, err error) {
	c = Checked{Missing: []LostBody{}, Damaged: []LostBody{}, Unreferenced: []StrayBlob{}, lost: map[string]string{}}
	hashes, err := list(ctx, s, func(scan func(...any) error, sha *string) error { return scan(sha) },
		"SELECT DISTINCT sha FROM ("+bodiesOf+") AS bodies ORDER BY sha")
	if err != nil {
		return c, fmt.Errorf("list the bodies: %w", err)
	}
	c.Blobs = int64(len(hashes))
	for i, sha := range hashes {
		size, err := s.blobs.check(ctx, sha)
		switch {
		case ctx.Err() != nil:
			return c, ctx.Err()
		case errors.Is(err, jobs.ErrNotFound):
			c.lost[sha] = "missing"
		case errors.Is(err, jobs.ErrDamaged):
			c.lost[sha] = "damaged"
		case err != nil:
			return c, err
		}
		c.Bytes += size
		if progress != nil {
			progress(int64(i+1), c.Blobs)
		}
	}
	if err := s.nameLost(ctx, &c); err != nil {
		return c, err
	}
	c.Unreferenced, err = s.strays(ctx, hashes)
	return c, err
}

// check reads one blob.
func (b blobs) check(ctx context.Context, sha string) (int64, error) {
	if err := validHash(sha); err != nil {
		return 0, fmt.Errorf("%w: %w", jobs.ErrDamaged, err)
	}
	f, err := os.Open(b.path(sha))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, jobs.ErrNotFound
	}
	if err != nil {
		return 0, fmt.Errorf("open blob: %w", err)
	}
	defer f.Close()
	return verify(ctx, f, sha)
}

// nameLost finds the rows of blobs that cannot be served.
func (s *Store) nameLost(ctx context.Context, c *Checked) error {
	if len(c.lost) == 0 {
		return nil
	}
	rows, err := s.reader.QueryContext(ctx, bodiesOf)
	if err != nil {
		return fmt.Errorf("list the bodies: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var b LostBody
		if err := rows.Scan(&b.Account, &b.Message, &b.Format, &b.Part, &b.SHA256); err != nil {
			return fmt.Errorf("list the bodies: %w", err)
		}
		switch c.lost[b.SHA256] {
		case "missing":
			c.Missing = append(c.Missing, b)
		case "damaged":
			c.Damaged = append(c.Damaged, b)
		}
	}
	return rows.Err()
}

// strays lists the files of blobs that are not among hashes, which are sorted.
func (s *Store) strays(ctx context.Context, hashes []string) ([]StrayBlob, error) {
	found := []StrayBlob{}
	err := filepath.WalkDir(s.blobs.root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return nil // it was removed meanwhile
		case err != nil:
			return err
		case d.IsDir():
			if dir := filepath.Dir(path); dir == s.blobs.root && !isShard(d.Name()) {
				return fs.SkipDir // tmp, and what is none of ours
			}
			return nil
		}
		if _, ok := slices.BinarySearch(hashes, d.Name()); ok && path == s.blobs.path(d.Name()) {
			return nil
		}
		info, err := d.Info()
		if err == nil && filepath.Dir(path) != s.blobs.root && time.Since(info.ModTime()) >= abandoned {
			found = append(found, StrayBlob{Path: path, Bytes: info.Size()})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the blobs: %w", err)
	}
	return found, nil
}

// isShard reports whether a name is that of a folder of blobs by their hash.
func isShard(name string) bool {
	return len(name) == 2 && strings.Trim(name, "0123456789abcdef") == ""
}
