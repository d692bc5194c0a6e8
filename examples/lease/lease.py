"""IDs of flake that this process makes itself, on a worker number that the database leases to it. docs/how-to/applications.md
says when to use it."""

import os
import threading
import time
from collections import namedtuple

Row = namedtuple("Row", "worker tick_from tick_until shift low count epoch tick now until wait")
QUERY = f"SELECT {', '.join(Row._fields)} FROM flake_lease(%s, %s, %s)"
SECOND = 1_000_000


def lease_from(connect):
    """Asks a database in a connection of its own: `Ids("twitter", lease_from(lambda: psycopg.connect(...)))`."""

    def lease(*arguments):
        with connect() as db:
            return Row(*db.execute(QUERY, arguments).fetchone())

    return lease


class Window:
    """What the server has granted, and how much of it is used. Instants are microseconds, of the steady and of the wall clock."""

    def __init__(self):
        self.row, self.came, self.wall, self.due, self.last = None, 0, 0, 0, (0, 0)
        # The worker and the end of the window that is to be continued, or another worker.
        self.ask = (None, None)

    def id(self, steady, wall):
        """The next ID, or None if there is none now."""
        row = self.row
        if row is None:
            return None
        # The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
        tick, (last, n) = (row.now + steady - self.came - row.epoch) // row.tick, self.last
        if tick > last:
            n = -1
            if self._parted(steady, wall()):
                return None
        else:
            tick = last
        n += 1
        made = tick << row.shift | row.low + n
        # Whatever happened meanwhile, an ID of this window belongs to nobody else.
        if n >= row.count or not row.tick_from <= made >> row.shift < row.tick_until:
            return None
        self.last = tick, n
        return made if made < 2**63 else made - 2**64

    def asks(self, steady, wall):
        """How the lease is to be renewed now, or None."""
        self._parted(steady, wall)
        return self.ask if steady >= self.due else None

    def answered(self, row, sent, came, wall):
        """Returns the reason if the answer grants no lease, else None."""
        if row.wait:
            self.due = came + min(5 * SECOND, row.wait)
            return f"the database grants none for {row.wait / SECOND} s"
        if came - sent > 2 * SECOND:
            # The process may have stood still: what the answer says of the clock is old.
            self.failed(came)
            return "the answer took more than 2 s"
        self.ask, self.due = (row.worker, row.until), sent + min(5 * SECOND, (row.until - row.now) // 2)
        if self.row and (self.row.worker, self.row.tick_until) == (row.worker, row.tick_from):
            row = row._replace(tick_from=self.row.tick_from)
        if row.tick_until <= self.last[0]:
            # The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
            self.last = 0, 0
        self.row, self.came, self.wall = row, came, wall
        return None

    def failed(self, steady):
        """An answer that was lost may have been a renewal, which nobody can continue then."""
        self.ask, self.due = (None, None), steady + SECOND

    def _parted(self, steady, wall):
        """Whether the machine was suspended since the answer, or a clock was set."""
        parted = self.row is not None and abs((wall - self.wall) - (steady - self.came)) > SECOND
        if parted:
            self.row, self.ask, self.due = None, (None, None), steady
        return parted


def steady():
    return time.monotonic_ns() // 1000


def wall():
    return time.time_ns() // 1000


class Ids:
    """For all threads of a process, and for what it forks: a child takes a lease of its own."""

    def __init__(self, layout, lease, patience=5):
        self.layout, self.lease, self.patience = layout, lease, patience
        self._begin()
        os.register_at_fork(after_in_child=self._begin)

    def _begin(self):
        self.lock, self.window, self.renewing, self.problem = threading.Lock(), Window(), None, None

    def next(self):
        began = None
        while True:
            with self.lock:
                now = steady()
                made = self.window.id(now, wall)
                if made is None and not self.renewing:
                    self.renewing = threading.Thread(target=self._renew, daemon=True)
                    self.renewing.start()
            if made is not None:
                return made
            began = began or now
            if now - began > self.patience * SECOND:
                raise RuntimeError("no lease of a worker number") from self.problem
            time.sleep(0.001)

    def _renew(self):
        while True:
            with self.lock:
                ask = self.window.asks(steady(), wall())
            if ask is not None:
                sent = steady()
                try:
                    row = self.lease(self.layout, *ask)
                    came = steady()
                    with self.lock:
                        # A renewal of a window that was given up begins when that one ends.
                        is_of_use = ask == self.window.ask
                        reason = self.window.answered(row, sent, came, wall()) if is_of_use else "a clock was set"
                        self.problem = RuntimeError(reason) if reason else None
                except Exception as problem:  # noqa: BLE001 - any may be gone a second later, and next() raises it
                    with self.lock:
                        self.problem = problem
                        self.window.failed(steady())
            time.sleep(0.05)
