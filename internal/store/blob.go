package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headroom/jobs"
)

// blobs is a folder of files that are named after the SHA-256 of their content:
// ab/cd/abcd… below root. Files are written in root/tmp and moved into place
// whole, so a file that has its name has its content.
type blobs struct{ root string }

// abandoned is the age from which a file in tmp is a dead process's.
const abandoned = time.Hour

// clear rids the folder of files that killed processes left.
func (b blobs) clear() error {
	entries, err := os.ReadDir(b.tmp())
	if err != nil {
		return fmt.Errorf("read the blob folder: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || time.Since(info.ModTime()) < abandoned {
			continue // finished meanwhile, or being written
		}
		if err := os.Remove(filepath.Join(b.tmp(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("clear the blob folder: %w", err)
		}
	}
	return nil
}

func (b blobs) tmp() string { return filepath.Join(b.root, "tmp") }

func (b blobs) path(sha string) string { return filepath.Join(b.root, sha[:2], sha[2:4], sha) }

// put stores raw unless it is there. A file of the right name but another
// length is what a disk made of a crash, and is replaced.
func (b blobs) put(raw []byte) (sha string, err error) {
	sum := sha256.Sum256(raw)
	sha = hex.EncodeToString(sum[:])
	path := b.path(sha)
	if info, err := os.Stat(path); err == nil && info.Size() == int64(len(raw)) {
		return sha, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	name, err := b.writeTemp(raw)
	if err != nil {
		return "", err
	}
	if err := os.Rename(name, path); err != nil {
		return "", errors.Join(err, os.Remove(name))
	}
	return sha, syncDir(filepath.Dir(path))
}

// writeTemp writes raw to a new file in tmp, down to the disk.
func (b blobs) writeTemp(raw []byte) (name string, err error) {
	f, err := os.CreateTemp(b.tmp(), "put-")
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err := f.Write(raw); err != nil {
		return "", err
	}
	return f.Name(), f.Sync()
}

// syncDir makes a new name in a folder survive a crash of the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// PutBlob stores a raw message and returns its SHA-256 in lower-case hex. It is
// on the disk when PutBlob returns. What is there already is not written again;
// concurrent calls for equal content are fine. Raw is not kept.
func (s *Store) PutBlob(ctx context.Context, raw []byte) (sha string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	if sha, err = s.blobs.put(raw); err != nil {
		return "", fmt.Errorf("store a blob of %d bytes: %w", len(raw), err)
	}
	return sha, nil
}

// Blob opens a raw message by the SHA-256 that [Store.PutBlob] returned; the
// caller closes it. The error is [jobs.ErrNotFound] when there is none.
func (s *Store) Blob(ctx context.Context, sha string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := validHash(sha); err != nil {
		return nil, err
	}
	f, err := os.Open(s.blobs.path(sha))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", sha, jobs.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("open blob: %w", err)
	}
	return f, nil
}

// validHash refuses what is not a SHA-256 in lower-case hex.
func validHash(sha string) error {
	if len(sha) != hex.EncodedLen(sha256.Size) || strings.Trim(sha, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is not a SHA-256 in lower-case hex", sha)
	}
	return nil
}
