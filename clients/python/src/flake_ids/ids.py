"""IDs for threads."""

from __future__ import annotations

import importlib
import logging
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from .buffer import now
from .database import Connect
from .process import Options, Process

Log = Callable[[int, str, "BaseException | None"], None]


def _log(level: int, message: str, problem: BaseException | None) -> None:
    logging.getLogger("flake_ids").log(level, message, exc_info=problem)


class Base:
    def __init__(
        self, layout: str, connect: Connect = "", *, max_age: float | None = 1, most: int = 10_000, patience: float = 5,
        log: Log = _log,
    ) -> None:  # fmt: skip
        """`connect` is a connection string, a function that opens a connection of psycopg, or a pool of psycopg_pool. IDs that
        were fetched `max_age` seconds ago are thrown away; None keeps them. One statement fetches `most` IDs at most. An ID is
        waited for `patience` seconds."""
        if isinstance(connect, str):
            importlib.import_module("psycopg")  # or an error here rather than at the first ID
        self._options = Options(layout, connect, max_age, most, patience, log)
        self._process = Process(self._options)

    @property
    def counters(self) -> Counter[str]:
        """How many requests, failures and restarts of the thread there were in this process, how many IDs were fetched, and how
        many expired."""
        return Counter(self._current().counters)

    def _current(self) -> Process:
        process = self._process
        if not process.page[0]:
            # This is a child, and the buffer is the parent's.
            self._process = process = Process(self._options, process)
        return process


class Ids(Base):
    """For all threads of a process, and for what it forks: a child has a buffer of its own."""

    def next(self) -> int:
        """An ID. Raises Unavailable after the patience, Refused where waiting is of no use, and Closed."""
        process = self._process
        batch = process.buffer.first
        if now() < batch.soon and len(batch.ids) > batch.low and process.page[0]:
            try:
                return batch.ids.pop()
            except IndexError:  # another thread has popped the last one
                pass
        return self.take(1)[0]

    __next__ = next

    def try_next(self) -> int | None:
        """An ID of the buffer, or None if there is none now."""
        ids = self._current().take(1)
        return ids[0] if ids else None

    def take(self, count: int) -> list[int]:
        """So many IDs, or an error as of next()."""
        process = self._current()
        ids = process.take(count)
        if len(ids) == count:
            return ids
        turn = threading.Lock()
        turn.acquire()
        waiter = process.wait(count, ids, turn.release)
        try:
            turn.acquire(timeout=min(self._options.patience, threading.TIMEOUT_MAX))
            return process.ended(waiter)
        finally:
            process.leave(waiter)

    def close(self) -> None:
        """Closes the connection. Those who wait get the error Closed."""
        self._current().close()

    def __iter__(self) -> Ids:
        return self

    def __enter__(self) -> Ids:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
