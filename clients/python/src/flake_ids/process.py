"""What one process has: its buffer, those who wait for an ID, and the thread that fetches."""

from __future__ import annotations

import contextlib
import logging
import mmap
import os
import random
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from .buffer import Buffer, now
from .database import LIMIT, Connect, Database
from .errors import Closed, FlakeError, Refused, Unavailable, is_permanent

# A thread that had nothing to do for so long ends, and closes its connection.
IDLE = 10
WIPE_ON_FORK = 18  # MADV_WIPEONFORK of Linux


@dataclass(frozen=True)
class Options:
    layout: str
    connect: Connect
    max_age: float | None
    most: int
    patience: float
    log: Callable[[int, str, BaseException | None], None]

    def __post_init__(self) -> None:
        if self.max_age is not None and not self.max_age > 0:
            raise ValueError("max_age is a number of seconds above 0, or None")
        if not 0 < self.most < 2**31:
            raise ValueError("most is a number from 1 to 2147483647")
        if not self.patience >= 0:
            raise ValueError("patience is a number of seconds")


class _Pid:
    def __init__(self) -> None:
        self.pid = os.getpid()

    def __getitem__(self, _: int) -> bool:
        return os.getpid() == self.pid


def _page() -> mmap.mmap | _Pid:
    """Its first item is true in the process that has made it, and false in a child. Linux empties a page at each fork. So a
    process notices also a fork that Python does not hear of, such as one of uWSGI, and faster than by asking for its number."""
    if sys.platform == "linux":
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        with contextlib.suppress(OSError):
            page.madvise(WIPE_ON_FORK)
            page[0] = 1
            return page
    return _Pid()


class Waiter:
    """Somebody who waits for `count` IDs. `wake` is called once, with all of them or with an error in place."""

    def __init__(self, count: int, taken: list[int], patience: float, wake: Callable[[], object]) -> None:
        self.count, self.ids, self.wake, self.since = count, taken, wake, now()
        self.deadline = self.since + patience
        self.problem: FlakeError | None = None

    @property
    def lacks(self) -> int:
        return self.count - len(self.ids)


class Process:
    """`lock` is held for moments only, never while the database is asked. A signal handler may want an ID too, so that the thread
    that has the lock can take it again."""

    def __init__(self, options: Options, parent: Process | None = None) -> None:
        # Collecting what a parent has opened could end the parent's connection.
        self.options, self.parent = options, parent
        self.page, self.lock, self.counters = _page(), threading.RLock(), Counter[str]()
        self.changed = threading.Condition(self.lock)
        self.buffer = Buffer(options.max_age, options.most, now())
        self.waiters: deque[Waiter] = deque()
        self.thread: threading.Thread | None = None
        self.runs_low = False
        self.closed: bool = parent is not None and parent.closed
        self.problem: BaseException | None = None
        self.failed, self.retry_at = 0, 0.0

    # Those who want IDs.

    def take(self, count: int) -> list[int]:
        """IDs of the buffer, at most this many. What others wait for is not taken."""
        with self.lock:
            if self.closed:
                raise Closed("close() was called")
            at = now()
            ids = [] if self.waiters else self.buffer.take(count, at)
            if self.buffer.runs_low(at):
                self.runs_low = True
                self._want()
            return ids

    def wait(self, count: int, taken: list[int], wake: Callable[[], object]) -> Waiter:
        """Begins to wait. Raises an error where that is of no use."""
        with self.lock:
            if self.closed:
                raise Closed("close() was called")
            if isinstance(self.problem, Refused) and now() < self.retry_at:
                raise self._refusal()
            waiter = Waiter(count, taken, self.options.patience, wake)
            self.waiters.append(waiter)
            self._want()
            if self.thread is None:
                self.waiters.remove(waiter)
                raise self._none()
        return waiter

    def ended(self, waiter: Waiter) -> list[int]:
        """What somebody who has waited got. Raises what has come in place, or Unavailable after the patience."""
        with self.lock:
            if waiter in self.waiters:
                self.waiters.remove(waiter)
            if waiter.problem is not None:
                raise waiter.problem
            if waiter.lacks:
                raise self._none()
        return waiter.ids

    def leave(self, waiter: Waiter) -> None:
        with self.lock, contextlib.suppress(ValueError):
            self.waiters.remove(waiter)

    def close(self) -> None:
        with self.lock:
            self.closed, thread = True, self.thread
            self.buffer.clear()
            self._fail(lambda: Closed("close() was called"))
            self.changed.notify()
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * LIMIT)

    def _none(self) -> Unavailable:
        none = Unavailable(f"no ID of {self.options.layout} in time: {self.problem or 'no answer yet'}")
        none.__cause__ = self.problem
        return none

    def _refusal(self) -> Refused:
        refused = Refused(f"no IDs of {self.options.layout}: {self.problem}")
        refused.__cause__ = self.problem.__cause__ if self.problem else None
        return refused

    def _fail(self, problem: Callable[[], FlakeError]) -> None:
        while self.waiters:
            waiter = self.waiters.popleft()
            waiter.problem = problem()
            waiter.wake()

    def _want(self) -> None:
        if self.thread is None or not self.thread.is_alive():
            self.thread = threading.Thread(target=self._run, name="flake-ids", daemon=True)
            try:
                self.thread.start()
            except RuntimeError as problem:  # no thread can be started now
                self.thread, self.problem = None, problem
        self.changed.notify()

    # The thread that fetches.

    def _run(self) -> None:
        database = Database(self.options.connect)
        try:
            while (count := self._wanted()) is not None:
                self._fetch(database, count)
        finally:
            database.close()
            with self.lock:
                if self.waiters:
                    self.thread = None
                    self.counters["restarts"] += 1
                    self._want()

    def _wanted(self) -> int | None:
        """Waits until IDs are wanted, and returns how many. Returns None when this thread has to end."""
        idle_at = now() + IDLE
        with self.changed:
            while not self.closed:
                at = now()
                if self.waiters and at >= self.retry_at:
                    return self.buffer.wanted(sum(waiter.lacks for waiter in self.waiters), at)
                if self.runs_low:
                    self.runs_low = False
                    # A single ID would be too old when it is used.
                    if at >= self.retry_at and (count := self.buffer.wanted(0, at)) > 1:
                        return count
                if not self.waiters and at >= idle_at:
                    break
                self.changed.wait((self.retry_at if self.waiters else idle_at) - at)
            self.thread = None
        return None

    def _fetch(self, database: Database, count: int) -> None:
        self.counters["requests"] += 1
        was_used, sent = database.is_used, now()
        try:
            ids = database.batch(self.options.layout, count)
        except BaseException as problem:
            self._failed(problem, was_used)
            # Others, such as a timeout of gevent, end this thread, and the next ID starts another one.
            if not isinstance(problem, Exception):
                raise
            return
        with self.lock:
            self.counters["ids"] += count
            self.problem, self.failed, self.retry_at = None, 0, 0.0
            self.buffer.fetched += count
            came = now()
            ids = self._serve(ids, came < sent + self.buffer.max_age, sent)
            self.buffer.add(ids, sent, came)
            self.counters["expired"] = self.buffer.expired

    def _serve(self, ids: list[int], are_fresh: bool, sent: float) -> list[int]:
        """Gives IDs to those who wait, in their order, and returns the rest. IDs that are not fresh are for those who waited
        already when they were asked for: on a slow connection, there would be none otherwise."""
        given = 0
        while self.waiters and given < len(ids):
            waiter = self.waiters[0]
            if not are_fresh and waiter.since > sent:
                break
            more = ids[given : given + waiter.lacks]
            waiter.ids += more
            given += len(more)
            if not waiter.lacks:
                self.waiters.popleft()
                waiter.wake()
        return ids[given:]

    def _failed(self, problem: BaseException, was_used: bool) -> None:
        with self.lock:
            self.counters["failures"] += 1
            self.problem = problem
            if permanent := is_permanent(problem):
                self.problem = Refused(str(problem))
                self.problem.__cause__ = problem
                self.retry_at = now() + 1
                self._fail(self._refusal)
            else:
                pause = 0 if was_used and not self.failed else min(1, 0.1 * 2**self.failed) * (0.5 + random.random())
                self.failed, self.retry_at = min(self.failed + 1, 9), now() + pause
            # A test may have frozen the clock by which they wait.
            at = now()
            while self.waiters and self.waiters[0].deadline <= at:
                self.waiters.popleft().wake()
        level = logging.ERROR if permanent else logging.WARNING
        self.options.log(level, f"{self.options.layout}: IDs could not be fetched", problem)
