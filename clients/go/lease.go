// Package pgflake makes IDs of flake in this process, on a worker that the database leases to it. This file is to be copied.
// docs/how-to/applications.md says when to use it.
package pgflake

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"time"
)

// Row is an answer. Where Reason is not empty there is no lease, and what follows Wait is 0, but Now.
type Row struct {
	Reason                                                                                     string
	Wait, Token, Worker, TickFrom, TickUntil, Shift, Low, Step, Count, Epoch, Tick, Now, Until int64
}

// Lessor is a database. Token 0 asks for another lease, and a last tick of 0 says that none was used.
type Lessor interface {
	Lease(ctx context.Context, layout string, token int64) (Row, error)
	Release(ctx context.Context, layout string, token, last int64) error
	Close() error
}

// From asks with any driver of PostgreSQL that closes a connection whose context has ended, such as pgx. The sql.DB is for this alone, so
// that it waits for nobody else: it is limited to one connection, and closed with the IDs.
func From(db *sql.DB) Lessor {
	db.SetMaxOpenConns(1)
	return database{db}
}

type database struct{ *sql.DB }

func (db database) Lease(ctx context.Context, layout string, token int64) (r Row, err error) {
	const query = `SELECT protocol, coalesce(reason, ''), wait, coalesce(token, 0), coalesce(worker, 0), coalesce(tick_from, 0),
		coalesce(tick_until, 0), coalesce(shift, 0), coalesce(low, 0), coalesce(step, 0), coalesce(count, 0), coalesce(epoch, 0),
		coalesce(tick, 0), now, coalesce(until, 0) FROM flake_lease($1, nullif($2::bigint, 0))`
	var protocol int
	err = db.QueryRowContext(ctx, query, layout, token).Scan(&protocol, &r.Reason, &r.Wait, &r.Token, &r.Worker, &r.TickFrom,
		&r.TickUntil, &r.Shift, &r.Low, &r.Step, &r.Count, &r.Epoch, &r.Tick, &r.Now, &r.Until)
	if err == nil && protocol != 1 {
		err = &RefusedError{fmt.Errorf("the server speaks protocol %d of leases", protocol)}
	}
	return r, err
}

func (db database) Release(ctx context.Context, layout string, token, last int64) error {
	_, err := db.ExecContext(ctx, "SELECT flake_release($1, $2::bigint, nullif($3::bigint, 0))", layout, token, last)
	return err
}

// ErrClosed is what Next returns after Close.
var ErrClosed = errors.New("pgflake: closed")

// NoLeaseError says that there was no lease before the context ended. It is both the error of the context and what the database said.
type NoLeaseError struct{ Context, Cause error }

func (e *NoLeaseError) Error() string {
	return fmt.Sprintf("pgflake: no lease of a worker: %v (%v)", e.Cause, e.Context)
}
func (e *NoLeaseError) Unwrap() error        { return e.Cause }
func (e *NoLeaseError) Is(target error) bool { return errors.Is(e.Context, target) }

// RefusedError says that somebody has to mend something: a privilege, the name of a layout, a layout that cannot lease.
type RefusedError struct{ Cause error }

func (e *RefusedError) Error() string { return fmt.Sprintf("pgflake: refused: %v", e.Cause) }
func (e *RefusedError) Unwrap() error { return e.Cause }

func isPermanent(err error) bool {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return errors.As(err, new(*RefusedError))
	}
	switch state.SQLState() {
	case "42501", "42883", "0A000", "22023", "3D000", "28000", "28P01":
		return true
	}
	return false
}

const second = 1_000_000

// Window is what the server has granted, and how much of it is used. Instants are microseconds, of the steady and of the wall clock.
type Window struct {
	row                                   Row
	came, wall, due, lastTick, lastN, ask int64
}

// ID returns the next one, or false if there is none now.
func (w *Window) ID(steady int64, wall func() int64) (int64, bool) {
	if w.row.Count == 0 {
		return 0, false
	}
	// The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
	tick, n := (w.row.Now+steady-w.came-w.row.Epoch)/w.row.Tick, int64(0)
	if tick <= w.lastTick {
		tick, n = w.lastTick, w.lastN+1
	} else if w.parted(steady, wall()) {
		return 0, false
	}
	id := tick<<w.row.Shift + w.row.Low + n<<w.row.Step
	// Whatever happened meanwhile, an ID of this window belongs to nobody else.
	of := int64(uint64(id) >> w.row.Shift)
	if n >= w.row.Count || of < w.row.TickFrom || of >= w.row.TickUntil {
		return 0, false
	}
	w.lastTick, w.lastN = tick, n
	return id, true
}

// Pause returns in how many microseconds there may be another ID, or false if that takes another lease.
func (w *Window) Pause(steady int64) (int64, bool) {
	if w.row.Count == 0 {
		return 0, false
	}
	now := w.row.Now + steady - w.came - w.row.Epoch
	tick := max(now/w.row.Tick, w.row.TickFrom)
	if tick <= w.lastTick {
		tick = w.lastTick + 1
	}
	return max(0, tick*w.row.Tick-now), tick < w.row.TickUntil
}

// Asks tells whether to ask now, and with which token.
func (w *Window) Asks(steady, wall int64) (token int64, due bool) {
	w.parted(steady, wall)
	return w.ask, steady >= w.due
}

// Answered takes an answer, and returns the reason if it is of no use.
func (w *Window) Answered(row Row, sent, came, wall int64) error {
	if row.Reason == "lost" {
		w.ask = 0
	}
	if row.Reason != "" {
		w.due = came + min(5*second, row.Wait)
		return fmt.Errorf("the database grants none for %v: %s", time.Duration(row.Wait)*time.Microsecond, row.Reason)
	}
	// The process may have stood still: what the answer says of the clock is old.
	if came-sent > 2*second {
		w.ask, w.due = 0, came+second
		return errors.New("the answer took more than 2 s")
	}
	w.ask, w.due = row.Token, sent+min(5*second, (row.Until-row.Now)/2)
	if w.row.Low == row.Low && w.row.TickUntil == row.TickFrom {
		row.TickFrom = w.row.TickFrom
	}
	// The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
	if row.TickUntil <= w.lastTick {
		w.lastTick, w.lastN = 0, 0
	}
	w.row, w.came, w.wall = row, came, wall
	return nil
}

// Failed says that there was no answer. The same token is tried again, because the server knows whether it was used.
func (w *Window) Failed(steady, pause int64) { w.due = steady + pause }

// Release returns the token and the last tick that was used. There is no ID afterwards.
func (w *Window) Release() (token, last int64) {
	token, w.ask, w.row = w.ask, 0, Row{}
	return token, w.lastTick
}

// Whether the machine was suspended since the answer, or a clock was set.
func (w *Window) parted(steady, wall int64) bool {
	apart := (wall - w.wall) - (steady - w.came)
	if w.row.Count == 0 || -second <= apart && apart <= second {
		return false
	}
	w.row, w.ask, w.due = Row{}, 0, steady
	return true
}

func min(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}

func max(a, b int64) int64 { return -min(-a, -b) }

// IDs is for all goroutines of a process.
type IDs struct {
	mutex   sync.Mutex
	window  Window
	problem error
	changed chan struct{} // closed at each answer
	turn    chan struct{} // one waits for the time or an answer, the others for their turn
	start   time.Time
	end     context.CancelFunc
	done    chan struct{}
}

func (ids *IDs) steady() int64 { return int64(time.Since(ids.start)) / 1000 }

func wall() int64 { return time.Now().UnixMicro() }

// New begins to ask for a lease, and renews it until Close.
func New(layout string, lessor Lessor) *IDs {
	ctx, end := context.WithCancel(context.Background())
	ids := &IDs{start: time.Now(), end: end, changed: make(chan struct{}), turn: make(chan struct{}, 1), done: make(chan struct{})}
	ids.problem = errors.New("no answer yet")
	go ids.renew(ctx, layout, lessor)
	return ids
}

// Next returns an ID. It waits for a lease until the context ends, and not where waiting is of no use.
func (ids *IDs) Next(ctx context.Context) (int64, error) {
	if id, made, _, _, _ := ids.take(); made {
		return id, nil
	}
	select {
	case ids.turn <- struct{}{}:
		defer func() { <-ids.turn }()
	case <-ctx.Done():
	}
	for {
		id, made, pause, changed, err := ids.take()
		if made {
			return id, nil
		}
		if errors.Is(err, ErrClosed) {
			return 0, err
		}
		if pause < 0 && isPermanent(err) {
			return 0, &RefusedError{err}
		}
		if pause < 0 {
			pause = second
		}
		timer := time.NewTimer(time.Duration(max(50, pause)) * time.Microsecond)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		if timer.Stop(); ctx.Err() != nil {
			return 0, &NoLeaseError{ctx.Err(), err}
		}
	}
}

func (ids *IDs) take() (id int64, made bool, pause int64, changed chan struct{}, err error) {
	ids.mutex.Lock()
	defer ids.mutex.Unlock()
	steady := ids.steady()
	if id, made = ids.window.ID(steady, wall); made {
		return id, made, 0, nil, nil
	}
	pause, isGranted := ids.window.Pause(steady)
	if !isGranted {
		pause = -1
	}
	return 0, false, pause, ids.changed, ids.problem
}

// Close releases the lease, so that another process has the worker at once.
func (ids *IDs) Close() {
	ids.end()
	<-ids.done
}

func (ids *IDs) renew(ctx context.Context, layout string, lessor Lessor) {
	defer close(ids.done)
	defer lessor.Close()
	for ctx.Err() == nil {
		ids.mutex.Lock()
		token, due := ids.window.Asks(ids.steady(), wall())
		pause := min(second/2, max(1000, ids.window.due-ids.steady()))
		ids.mutex.Unlock()
		if due {
			ids.ask(ctx, layout, lessor, token)
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(pause) * time.Microsecond):
		}
	}
	ids.mutex.Lock()
	token, last := ids.window.Release()
	ids.tell(ErrClosed)
	ids.mutex.Unlock()
	if token != 0 {
		limited, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = lessor.Release(limited, layout, token, last) // or the lease ends by itself
	}
}

func (ids *IDs) ask(ctx context.Context, layout string, lessor Lessor, token int64) {
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	sent := ids.steady()
	row, err := lessor.Lease(limited, layout, token)
	came := ids.steady()
	ids.mutex.Lock()
	defer ids.mutex.Unlock()
	switch {
	case isPermanent(err):
		ids.window.Failed(came, 30*second)
	case err != nil:
		ids.window.Failed(came, second/2+rand.Int63n(second))
	case token != ids.window.ask:
		// A renewal of a window that was given up begins when that one ends.
		err = errors.New("a clock was set")
	default:
		if err = ids.window.Answered(row, sent, came, wall()); err != nil {
			ids.window.due += rand.Int63n(1 + max(0, ids.window.due-came)/4)
		}
	}
	ids.tell(err)
}

func (ids *IDs) tell(err error) {
	ids.problem = err
	close(ids.changed)
	ids.changed = make(chan struct{})
}
