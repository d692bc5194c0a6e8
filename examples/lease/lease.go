// Package lease makes IDs of flake in this process, on a worker number that the database leases to it.
// docs/how-to/applications.md says when to use it.
package lease

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Row is an answer. Where Wait is not 0, the other columns are NULL, and 0 here.
type Row struct{ Worker, TickFrom, TickUntil, Shift, Low, Count, Epoch, Tick, Now, Until, Wait int64 }

// Ask names the window that is to be continued, or another worker where the pointers are nil.
type Ask struct{ Worker, Until *int64 }

// From asks a database, by any driver of PostgreSQL.
func From(db *sql.DB) func(layout string, ask Ask) (Row, error) {
	const query = `SELECT coalesce(worker, 0), coalesce(tick_from, 0), coalesce(tick_until, 0), coalesce(shift, 0), coalesce(low, 0),
		coalesce(count, 0), coalesce(epoch, 0), coalesce(tick, 0), now, coalesce(until, 0), wait FROM flake_lease($1, $2, $3)`
	return func(layout string, ask Ask) (r Row, err error) {
		err = db.QueryRow(query, layout, ask.Worker, ask.Until).Scan(&r.Worker, &r.TickFrom, &r.TickUntil, &r.Shift, &r.Low,
			&r.Count, &r.Epoch, &r.Tick, &r.Now, &r.Until, &r.Wait)
		return r, err
	}
}

const second = 1_000_000

// Window is what the server has granted, and how much of it is used. Instants are microseconds, of the steady clock and the wall clock.
type Window struct {
	row                              Row
	granted                          bool
	came, wall, due, lastTick, lastN int64
	ask                              Ask
}

// ID returns the next one, or false if there is none now.
func (w *Window) ID(steady int64, wall func() int64) (int64, bool) {
	if !w.granted {
		return 0, false
	}
	// The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
	tick, n := (w.row.Now+steady-w.came-w.row.Epoch)/w.row.Tick, int64(0)
	if tick <= w.lastTick {
		tick, n = w.lastTick, w.lastN+1
	} else if w.parted(steady, wall()) {
		return 0, false
	}
	id := tick<<w.row.Shift | (w.row.Low + n)
	// Whatever happened meanwhile, an ID of this window belongs to nobody else.
	of := int64(uint64(id) >> w.row.Shift)
	if n >= w.row.Count || of < w.row.TickFrom || of >= w.row.TickUntil {
		return 0, false
	}
	w.lastTick, w.lastN = tick, n
	return id, true
}

// Asks tells whether the lease is to be renewed now, and how.
func (w *Window) Asks(steady, wall int64) (Ask, bool) {
	w.parted(steady, wall)
	return w.ask, steady >= w.due
}

// Answered takes an answer, and returns the reason if it grants no lease, else nil.
func (w *Window) Answered(row Row, sent, came, wall int64) error {
	if row.Wait > 0 {
		w.due = came + min(5*second, row.Wait)
		return fmt.Errorf("the database grants none for %v", time.Duration(row.Wait)*time.Microsecond)
	}
	// The process may have stood still: what the answer says of the clock is old.
	if came-sent > 2*second {
		w.Failed(came)
		return errors.New("the answer took more than 2 s")
	}
	w.ask, w.due = Ask{&row.Worker, &row.Until}, sent+min(5*second, (row.Until-row.Now)/2)
	if w.granted && w.row.Worker == row.Worker && w.row.TickUntil == row.TickFrom {
		row.TickFrom = w.row.TickFrom
	}
	// The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
	if row.TickUntil <= w.lastTick {
		w.lastTick = 0
	}
	w.row, w.granted, w.came, w.wall = row, true, came, wall
	return nil
}

// Failed says that there was no answer. One that was lost may have been a renewal, which nobody can continue then.
func (w *Window) Failed(steady int64) { w.ask, w.due = Ask{}, steady+second }

// Whether the machine was suspended since the answer, or a clock was set.
func (w *Window) parted(steady, wall int64) bool {
	apart := (wall - w.wall) - (steady - w.came)
	if !w.granted || -second <= apart && apart <= second {
		return false
	}
	w.granted, w.ask, w.due = false, Ask{}, steady
	return true
}

func min(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}

// IDs is for all goroutines of a process.
type IDs struct {
	mutex    sync.Mutex
	window   Window
	problem  error
	start    time.Time
	patience time.Duration
}

func (ids *IDs) steady() int64 { return int64(time.Since(ids.start)) / 1000 }

func wall() int64 { return time.Now().UnixMicro() }

// New begins to ask for a lease, and renews it until the end of the process. Next waits for it up to patience.
func New(layout string, patience time.Duration, lease func(string, Ask) (Row, error)) *IDs {
	ids := &IDs{start: time.Now(), patience: patience}
	go func() {
		for ; ; time.Sleep(50 * time.Millisecond) {
			ids.mutex.Lock()
			ask, due := ids.window.Asks(ids.steady(), wall())
			ids.mutex.Unlock()
			if !due {
				continue
			}
			sent := ids.steady()
			row, err := lease(layout, ask)
			came := ids.steady()
			ids.mutex.Lock()
			if ids.problem = err; err != nil {
				ids.window.Failed(came)
			} else if ask != ids.window.ask {
				// A renewal of a window that was given up begins when that one ends.
				ids.problem = errors.New("a clock was set")
			} else {
				ids.problem = ids.window.Answered(row, sent, came, wall())
			}
			ids.mutex.Unlock()
		}
	}()
	return ids
}

// Next returns an ID.
func (ids *IDs) Next() (int64, error) {
	for began := int64(-1); ; time.Sleep(time.Millisecond) {
		ids.mutex.Lock()
		steady := ids.steady()
		id, made := ids.window.ID(steady, wall)
		problem := ids.problem
		ids.mutex.Unlock()
		if made {
			return id, nil
		}
		if began < 0 {
			began = steady
		} else if steady-began > int64(ids.patience)/1000 {
			return 0, fmt.Errorf("no lease of a worker number: %v", problem)
		}
	}
}
