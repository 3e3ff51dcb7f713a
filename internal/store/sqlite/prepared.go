package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
)

// polls reads by statements that are asked again and again, however little there
// is to be found, and keeps them prepared: to prepare one takes SQLite longer than
// to find nothing. There are as many as have a text of their own in this package.
type polls struct {
	db         *sql.DB
	mu         sync.Mutex
	statements map[string]*sql.Stmt
}

func (p *polls) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stmt := p.statements[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := p.db.PrepareContext(ctx, query)
	if err == nil {
		if p.statements == nil {
			p.statements = map[string]*sql.Stmt{}
		}
		p.statements[query] = stmt
	}
	return stmt, err
}

func (p *polls) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, stmt := range p.statements {
		errs = append(errs, stmt.Close())
	}
	p.statements = nil
	return errors.Join(errs...)
}

// poll reads all rows of a statement that is kept prepared.
func poll[T any](ctx context.Context, s *Store, scan func(func(...any) error, *T) error, query string, args ...any) (all []T, err error) {
	err = pollUntil(ctx, s, scan, func(one *T) bool { all = append(all, *one); return true }, query, args...)
	return all, err
}

// pollUntil hands the rows of a statement that is kept prepared to a function until
// that reports false.
func pollUntil[T any](ctx context.Context, s *Store, scan func(func(...any) error, *T) error, more func(*T) bool, query string, args ...any) error {
	stmt, err := s.polls.prepared(ctx, query)
	if err != nil {
		return fmt.Errorf("query the store: %w", err)
	}
	found, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return fmt.Errorf("query the store: %w", err)
	}
	defer found.Close()
	for found.Next() {
		var one T
		if err := scan(found.Scan, &one); err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		if !more(&one) {
			return nil
		}
	}
	if err := found.Err(); err != nil {
		return fmt.Errorf("query the store: %w", err)
	}
	return nil
}

// querier is what a transaction's statements run on.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// session is a connection that keeps its statements prepared, since to prepare
// one takes SQLite longer than to run it. There are as many as this package has
// texts of statements. It is not safe for concurrent use.
type session struct {
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

func newSession(ctx context.Context, db *sql.DB) (*session, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &session{conn: conn, statements: map[string]*sql.Stmt{}}, nil
}

func (s *session) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt := s.statements[query]; stmt != nil {
		return stmt, nil
	}
	stmt, err := s.conn.PrepareContext(ctx, query)
	if err == nil {
		s.statements[query] = stmt
	}
	return stmt, err
}

// ExecContext implements querier.
func (s *session) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// QueryContext implements querier.
func (s *session) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// QueryRowContext implements querier.
func (s *session) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	stmt, err := s.prepared(ctx, query)
	if err != nil {
		return s.conn.QueryRowContext(ctx, query, args...) // fails in the same way
	}
	return stmt.QueryRowContext(ctx, args...)
}

// close gives the connection back, and closes its statements.
func (s *session) close() error {
	var errs []error
	for _, stmt := range s.statements {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, s.conn.Close())...)
}
