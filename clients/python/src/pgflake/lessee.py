"""Gets leases and renews them in the background, for each process that has a copy of this."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
import weakref
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from .database import Connect, Database
from .errors import PERMANENT, Closed, NoLease, Refused, sqlstate
from .window import SECOND, Row, Window

# A renewal thread that has not been seen for so long is dead, or hangs in a driver.
SILENT = 10 * SECOND


def steady() -> int:
    return time.monotonic_ns() // 1000


def wall() -> int:
    return time.time_ns() // 1000


@dataclass(frozen=True)
class Options:
    layout: str
    connect: Connect
    patience: float
    bridge: int
    lease: str
    release: str
    log: Callable[[int, str, BaseException | None], None]


class Process:
    """What one process has. `lock` is held for moments only, never while the database is asked."""

    def __init__(self, options: Options, counters: Counter[str]) -> None:
        self.options, self.counters = options, counters
        self.pid, self.lock, self.window = os.getpid(), threading.Lock(), Window()
        self.changed, self.turn = threading.Condition(self.lock), threading.Lock()
        self.thread: threading.Thread | None = None
        self.seen, self.generation, self.waiting, self.closed = -SILENT * 2, 0, 0, False
        self.problem: BaseException | None = None
        self.reason: str | None = None
        self.batch: deque[tuple[int, int]] = deque()
        self.watching: list[Callable[[], object]] = []

    # Those who want an ID. They hold the lock.

    def id(self) -> int | None:
        now = steady()
        if now - self.seen > SILENT:
            self._start(now)
        made = self.window.id(now, wall)
        if made is None and self.batch:
            made = self._of_batch(now)
        return made

    def pause(self, deadline: int) -> float:
        """How many seconds to wait for `changed`; raises an error where that is of no use."""
        now, pause = steady(), self.window.pause(steady())
        if self.closed:
            raise Closed("close() was called")
        if pause is None:
            if self.thread is None or not self.thread.is_alive():
                self._start(now)
            # The thread may have to get a lease, or a batch, sooner than it has thought.
            self.changed.notify_all()
            if isinstance(self.problem, Refused) and not self.batch:
                raise self.refusal()
        if now >= deadline:
            raise self.none()
        return min(deadline - now, SECOND, SECOND if pause is None else max(pause, 50)) / SECOND

    def none(self) -> NoLease:
        none = NoLease(f"no lease of a worker of {self.options.layout}: {self.problem or 'no answer yet'}", self.reason)
        none.__cause__ = self.problem
        return none

    def refusal(self) -> Refused:
        refused = Refused(f"{self.options.layout} cannot be leased: {self.problem}")
        refused.__cause__ = self.problem.__cause__ if self.problem else None
        return refused

    def waits(self, more: int) -> None:
        with self.lock:
            self.waiting += more

    def _of_batch(self, now: int) -> int | None:
        while self.batch:
            came, made = self.batch.popleft()
            if now - came <= SECOND:
                return made
        return None

    def _start(self, now: int) -> None:
        if self.closed:
            return
        if self.generation:
            self.counters["restarts"] += 1
            self._log(logging.WARNING, "the thread that renews leases is dead or hangs; another one is started", None)
        self.generation += 1
        self.seen = now
        self.thread = threading.Thread(target=self._renew, args=[self.generation], name="pgflake", daemon=True)
        try:
            self.thread.start()
        except RuntimeError as problem:
            # No thread can be started now. The next ID tries again.
            self.thread, self.seen, self.problem = None, now - SILENT + SECOND // 10, problem

    # The thread that renews.

    def _renew(self, mine: int) -> None:
        database = Database(self.options.connect, self.options.lease, self.options.release)
        try:
            while self._step(mine, database):
                pass
        finally:
            database.close()

    def _step(self, mine: int, database: Database) -> bool:
        """Waits for what is to be done, and does it. Returns whether to go on."""
        with self.changed:
            while not self.closed and mine == self.generation and not self._has_to_ask():
                self.seen = steady()
                self.changed.wait(min(0.5, max(0.001, (self.window.due - steady()) / SECOND)))
            if mine != self.generation:
                return False
            self.seen = steady()
            is_due, token = self.window.asks(steady(), wall()), self.window.token
        if self.closed:
            self._release(database)
            return False
        try:
            if is_due:
                self._ask(mine, database, token)
            else:
                self._bridge(database)
        except BaseException as problem:
            self._failed(mine, problem)
            # Others, such as a timeout of gevent, end this thread, and the next ID starts another one.
            if not isinstance(problem, Exception):
                raise
        return True

    def _has_to_ask(self) -> bool:
        return self.window.asks(steady(), wall()) or self._has_to_bridge()

    def _has_to_bridge(self) -> bool:
        is_wanted = self.options.bridge and self.waiting and not self.batch and self.window.pause(steady()) is None
        return bool(is_wanted) and isinstance(self.problem, NoLease)

    def _ask(self, mine: int, database: Database, token: int | None) -> None:
        self.counters["requests"] += 1
        sent = steady()
        row = database.lease(self.options.layout, token)
        came = steady()
        with self.changed:
            if mine != self.generation:
                return
            # A renewal of a window that was given up begins when that one ends.
            reason = self.window.answered(row, sent, came, wall()) if token == self.window.token else "clock"
            self.counters["leases" if reason is None else reason] += 1
            self.reason, self.problem = reason, None
            if reason is not None:
                self.problem = NoLease(f"{reason}, for {row.wait / SECOND:.0f} s", reason)
                self.window.due += random.randrange(max(1, (self.window.due - came) // 4))
            self._wake()
        self._tell(row, reason)

    def _bridge(self, database: Database) -> None:
        made = database.batch(self.options.layout, self.options.bridge)
        with self.changed:
            self.counters["bridged"] += len(made)
            self.batch.extend((steady(), one) for one in made)
            self._wake()

    def _failed(self, mine: int, problem: BaseException) -> None:
        with self.changed:
            if mine != self.generation:
                return
            self.counters["failures"] += 1
            is_permanent = sqlstate(problem) in PERMANENT or isinstance(problem, Refused)
            pause = 30 * SECOND if is_permanent else SECOND // 2 + random.randrange(SECOND)
            if is_permanent:
                refused = Refused(str(problem))
                refused.__cause__ = problem
                self.problem = refused
            else:
                self.problem = problem
            self.reason = None
            self.window.failed(steady(), pause)
            self._wake()
        self._log(logging.ERROR if is_permanent else logging.WARNING, "a request for a lease has failed", problem)

    def _release(self, database: Database) -> None:
        with self.lock:
            token, last = self.window.release()
        if token is not None:
            try:
                database.release(self.options.layout, token, last)
            except Exception as problem:  # noqa: BLE001 - the lease ends by itself
                self._log(logging.INFO, "a lease could not be released", problem)

    def _wake(self) -> None:
        self.changed.notify_all()
        watching, self.watching = self.watching, []
        for wake in watching:
            wake()

    def _tell(self, row: Row, reason: str | None) -> None:
        if reason is None:
            self._log(logging.DEBUG, f"worker {row.worker} is leased for {(row.until - row.now) / SECOND:.0f} s", None)
        else:
            self._log(logging.INFO, f"there is no lease: {reason}", None)

    def _log(self, level: int, message: str, problem: BaseException | None) -> None:
        self.options.log(level, f"{self.options.layout}: {message}", problem)

    def close(self) -> None:
        with self.changed:
            self.closed = True
            self._wake()
            thread = self.thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(5)


class Lessee:
    """A child that a fork makes has its own lease. Some servers, such as uWSGI, fork without Python's hooks, so the ID of the
    process is compared; that of a grandchild may be one that was used before, so there is a hook too."""

    def __init__(self, options: Options) -> None:
        self.options, self.counters = options, Counter[str]()
        self.processes: dict[int, Process] = {}
        # Closing what a parent has opened would end the parent's connection.
        self.inherited: list[dict[int, Process]] = []
        self.closed = False
        this = weakref.ref(self)

        def after_in_child() -> None:
            lessee = this()
            if lessee is not None:
                lessee._forked()

        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=after_in_child)

    def _forked(self) -> None:
        self.inherited.append(self.processes)
        self.processes = {}

    def process(self) -> Process:
        pid = os.getpid()
        of = self.processes.get(pid)
        if of is None:
            if self.closed:
                raise Closed("close() was called")
            of = self.processes.setdefault(pid, Process(self.options, self.counters))
        return of

    def close(self) -> None:
        self.closed = True
        of = self.processes.pop(os.getpid(), None)
        if of is not None:
            of.close()
