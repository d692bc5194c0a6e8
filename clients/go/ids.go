// Package flakeids has IDs of flake for a program that needs them before it inserts the rows, from a buffer. This file is to be copied.
// docs/how-to/applications.md says when to use it, and clients/README.md has its rules.
package flakeids

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand"
	"sync"
	"time"
)

// Source is a database. It is asked outside of any transaction. A request whose context has ended closes its connection.
type Source interface {
	// Batch returns what SELECT flake_batch(layout, count) has returned.
	Batch(ctx context.Context, layout string, count int) ([]int64, error)
}

// From asks a pool with any driver of PostgreSQL that closes a connection whose context has ended, such as pgx.
func From(db *sql.DB) Source { return pool{db} }

type pool struct{ *sql.DB }

func (db pool) Batch(ctx context.Context, layout string, count int) (ids []int64, err error) {
	rows, err := db.QueryContext(ctx, "SELECT flake_batch($1, $2)", layout, count)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for ids = make([]int64, 0, count); rows.Next(); {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// ErrClosed is what Next returns after Close.
var ErrClosed = errors.New("flake: closed")

var errNoAnswer = errors.New("no answer yet")

// UnavailableError says that there was no ID in time, and that it is worth trying again. It is both the error of the context, if that
// has ended, and what the database said.
type UnavailableError struct{ Context, Cause error }

func (e *UnavailableError) Error() string { return fmt.Sprintf("flake: no ID in time: %v", e.Cause) }
func (e *UnavailableError) Unwrap() error { return e.Cause }
func (e *UnavailableError) Is(target error) bool {
	return e.Context != nil && errors.Is(e.Context, target)
}

// RefusedError says that somebody has to mend something: a privilege, the name of a layout, the extension, the login.
type RefusedError struct{ Cause error }

func (e *RefusedError) Error() string { return fmt.Sprintf("flake: refused: %v", e.Cause) }
func (e *RefusedError) Unwrap() error { return e.Cause }

func isPermanent(err error) bool {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		switch state.SQLState() {
		case "42501", "42883", "22023", "2200H", "3D000", "28000", "28P01":
			return true
		}
	}
	return false
}

// Options need not be given.
type Options struct {
	MaxAge   time.Duration // IDs that were fetched so long ago are thrown away; 1 second by default. A negative one keeps them.
	Most     int           // how many IDs one statement fetches at most; 10,000 by default
	Patience time.Duration // how long an ID is waited for, if its context does not end before; 5 seconds by default
}

const (
	limit = 2 * time.Second // of a request
	never = time.Duration(math.MaxInt64)
)

// The IDs of one answer, the next one at the end. Times are those since the start of the IDs.
type batch struct {
	ids               []int64
	sent, until, soon time.Duration
	low               int // when so few are left, or when it is soon, the next batch is fetched
	hasAsked          bool
}

// IDs is for all goroutines of a process.
type IDs struct {
	layout  string
	source  Source
	options Options
	start   time.Time

	mutex   sync.Mutex
	batches []batch
	// How many IDs are waited for, by how many goroutines, and how many of these have an answer and have not looked at it yet.
	waited, waiting, woken int
	changed                chan struct{} // closed at each answer
	runsLow, isAsking      bool
	closed                 chan struct{}
	problem                error
	failed, used           int
	retryAt, ratedAt       time.Duration
	rate                   float64 // how many IDs were used in the last MaxAge, at the last request
}

// New asks the database when the first ID is wanted.
func New(layout string, source Source, options Options) *IDs {
	if options.MaxAge == 0 {
		options.MaxAge = time.Second
	}
	if options.Most <= 0 {
		options.Most = 10000
	}
	if options.Patience == 0 {
		options.Patience = 5 * time.Second
	}
	return &IDs{layout: layout, source: source, options: options, start: time.Now(), problem: errNoAnswer,
		changed: make(chan struct{}), closed: make(chan struct{})}
}

func (ids *IDs) now() time.Duration { return time.Since(ids.start) }

// Next returns an ID. It waits until the context or the patience ends, and not where waiting is of no use.
func (ids *IDs) Next(ctx context.Context) (int64, error) {
	ids.mutex.Lock()
	if len(ids.batches) > 0 {
		b := &ids.batches[0]
		if n := len(b.ids) - 1; n >= b.low && ids.now() < b.soon {
			id := b.ids[n]
			b.ids = b.ids[:n]
			ids.used++
			ids.mutex.Unlock()
			return id, nil
		}
	}
	ids.mutex.Unlock()
	taken, err := ids.taken(ctx, 1, ids.options.Patience)
	if err != nil {
		return 0, err
	}
	return taken[0], nil
}

// TryNext returns an ID of the buffer, or false if there is none now.
func (ids *IDs) TryNext() (int64, bool) {
	taken, err := ids.taken(context.Background(), 1, 0)
	if err != nil {
		return 0, false
	}
	return taken[0], true
}

// Take returns so many IDs, or an error as Next does.
func (ids *IDs) Take(ctx context.Context, count int) ([]int64, error) {
	return ids.taken(ctx, count, ids.options.Patience)
}

// Close ends the wait of all who wait. The Source stays as it is.
func (ids *IDs) Close() {
	ids.mutex.Lock()
	defer ids.mutex.Unlock()
	if ids.problem != ErrClosed {
		ids.problem, ids.batches = ErrClosed, nil
		close(ids.closed)
		ids.wake()
	}
}

func (ids *IDs) taken(ctx context.Context, count int, patience time.Duration) (taken []int64, err error) {
	ids.mutex.Lock()
	defer ids.mutex.Unlock()
	since, hasWaited := ids.now(), false
	var timer *time.Timer
	for {
		now := ids.now()
		if ids.problem == ErrClosed {
			return nil, ErrClosed
		}
		// What others wait for is not taken.
		if hasWaited || ids.waiting+ids.woken == 0 {
			taken = ids.take(taken, count, now, since)
		}
		ids.askAhead(now)
		if len(taken) == count {
			return taken, nil
		}
		if refused := (*RefusedError)(nil); errors.As(ids.problem, &refused) && now < ids.retryAt {
			return nil, &RefusedError{refused.Cause}
		}
		if ctx.Err() != nil || now-since >= patience {
			return nil, &UnavailableError{ctx.Err(), ids.problem}
		}
		if timer == nil {
			timer = time.NewTimer(patience)
			defer timer.Stop()
		}
		ids.wait(ctx, count-len(taken), timer)
		hasWaited = true
	}
}

// Waits for an answer, the timer or the context, without the mutex.
func (ids *IDs) wait(ctx context.Context, lacks int, timer *time.Timer) {
	changed := ids.changed
	ids.waited, ids.waiting = ids.waited+lacks, ids.waiting+1
	ids.ask()
	ids.mutex.Unlock()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	ids.mutex.Lock()
	if changed == ids.changed {
		ids.waited, ids.waiting = ids.waited-lacks, ids.waiting-1
	} else {
		ids.woken--
	}
}

// Removes IDs until there are so many. Those that are too old are for a goroutine that waited already when they were asked for: on a
// slow connection, it would get none otherwise.
func (ids *IDs) take(taken []int64, count int, now, since time.Duration) []int64 {
	before := len(taken)
	for len(ids.batches) > 0 && len(taken) < count {
		b := &ids.batches[0]
		if now < b.until || since <= b.sent {
			for len(b.ids) > 0 && len(taken) < count {
				taken = append(taken, b.ids[len(b.ids)-1])
				b.ids = b.ids[:len(b.ids)-1]
			}
		} else {
			b.ids = nil
		}
		if len(taken) < count {
			ids.batches = ids.batches[1:]
		}
	}
	ids.used += len(taken) - before
	return taken
}

// Fetches the next batch if the last one says so, which it says once.
func (ids *IDs) askAhead(now time.Duration) {
	if len(ids.batches) == 0 {
		return
	}
	b := &ids.batches[len(ids.batches)-1]
	if !b.hasAsked && (len(b.ids) <= b.low || now >= b.soon) {
		b.hasAsked, b.low, b.soon, ids.runsLow = true, 0, b.until, true
		ids.ask()
	}
}

// How many IDs to ask for. This is called once before each request.
func (ids *IDs) wanted(now time.Duration) int {
	span := ids.options.MaxAge
	if span < 0 {
		span = time.Second
	}
	spans := math.Max(1e-9, float64(now-ids.ratedAt)/float64(span))
	ids.rate = ids.rate*math.Max(0, 1-spans) + float64(ids.used)*math.Min(1, 1/spans)
	ids.ratedAt, ids.used = now, 0
	wanted := math.Max(float64(ids.waited), math.Round(ids.rate))
	return int(math.Max(1, math.Min(wanted, float64(ids.options.Most))))
}

func (ids *IDs) wake() {
	ids.woken += ids.waiting
	ids.waited, ids.waiting = 0, 0
	close(ids.changed)
	ids.changed = make(chan struct{})
}

// Begins to fetch, unless that has begun.
func (ids *IDs) ask() {
	if !ids.isAsking {
		ids.isAsking = true
		go ids.fetch()
	}
}

// Fetches IDs as long as they are wanted.
func (ids *IDs) fetch() {
	ids.mutex.Lock()
	defer ids.mutex.Unlock()
	defer func() { ids.isAsking = false }()
	for ids.problem != ErrClosed && (ids.waited > 0 || ids.runsLow) {
		now := ids.now()
		isAhead := ids.waited == 0
		ids.runsLow = false
		if pause := ids.retryAt - now; pause > 0 {
			if isAhead {
				return
			}
			ids.mutex.Unlock()
			select {
			case <-time.After(pause):
			case <-ids.closed:
			}
			ids.mutex.Lock()
			continue
		}
		count := ids.wanted(now)
		// A single ID that was fetched ahead would be too old when it is used.
		if isAhead && count == 1 {
			return
		}
		ids.mutex.Unlock()
		made, sent, err := ids.asked(count)
		ids.mutex.Lock()
		if ids.problem != ErrClosed {
			ids.answered(made, sent, err)
		}
	}
}

func (ids *IDs) asked(count int) (made []int64, sent time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	sent = ids.now()
	made, err = ids.source.Batch(ctx, ids.layout, count)
	if err == nil && len(made) != count {
		err = fmt.Errorf("flake_batch has returned %d IDs instead of %d", len(made), count)
	}
	return made, sent, err
}

func (ids *IDs) answered(made []int64, sent time.Duration, err error) {
	switch now := ids.now(); {
	case err == nil:
		ids.problem, ids.failed = errNoAnswer, 0
		for i, j := 0, len(made)-1; i < j; i, j = i+1, j-1 {
			made[i], made[j] = made[j], made[i]
		}
		until, soon, low := never, never, len(made)/4
		if age := ids.options.MaxAge; age > 0 {
			until, soon = sent+age, sent+age*3/4
		}
		if low == 0 {
			low = 1
		}
		ids.batches = append(ids.batches, batch{made, sent, until, soon, low, false})
	case isPermanent(err):
		ids.problem, ids.retryAt = &RefusedError{err}, now+time.Second
	default:
		pause := time.Duration(100<<ids.failed) * time.Millisecond
		if pause >= time.Second {
			pause = time.Second
		} else {
			ids.failed++
		}
		ids.problem, ids.retryAt = err, now+pause/2+time.Duration(rand.Int63n(int64(pause)))
	}
	ids.wake()
}
