"""IDs for threads."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from .database import Connect
from .lessee import Lessee, Options, Process, steady
from .window import SECOND

Log = Callable[[int, str, "BaseException | None"], None]


def _log(level: int, message: str, problem: BaseException | None) -> None:
    logging.getLogger("pgflake").log(level, message, exc_info=problem)


class _Options:
    def __init__(
        self, layout: str, connect: Connect = "", *, patience: float = 5, bridge: int = 0,
        lease: str = "flake_lease", release: str = "flake_release", log: Log = _log,
    ) -> None:  # fmt: skip
        """`connect` is a connection string, or a function that opens a connection of psycopg, psycopg2 or asyncpg. It is not
        one of a pool: it stays open as long as this. An ID waits `patience` seconds for a lease. `bridge` is how many IDs the
        database is asked for at once while there is no lease; 0 asks for none. `lease` and `release` name the functions if they
        are not the extension's own."""
        self._lessee = Lessee(Options(layout, connect, patience, bridge, lease, release, log))
        self._patience = min(patience, threading.TIMEOUT_MAX)

    @property
    def counters(self) -> Counter[str]:
        """How many requests, leases, failures, restarts, IDs of the bridge, and refusals by their reason there were."""
        return Counter(self._lessee.counters)


class Ids(_Options):
    """For all threads of a process, and for what it forks: a child takes a lease of its own."""

    def next(self) -> int:
        """An ID. Raises NoLease after the patience, Refused where waiting is of no use, and Closed."""
        process = self._lessee.process()
        with process.lock:
            made = process.id()
        return self._waited(process, process.id) if made is None else made

    def try_next(self) -> int | None:
        """An ID, or None if there is none now."""
        process = self._lessee.process()
        with process.lock:
            return process.id()

    def ready(self) -> None:
        """Waits until there is a lease, as next() does."""
        process = self._lessee.process()
        self._waited(process, lambda: _is_ready(process))

    def _waited(self, process: Process, get: Callable[[], int | None]) -> int:
        deadline = steady() + int(self._patience * SECOND)
        # One waits for the time or for an answer, the others for their turn.
        if not process.turn.acquire(timeout=self._patience):
            raise process.none()
        process.waits(1)
        try:
            with process.changed:
                while (made := get()) is None:
                    process.changed.wait(process.pause(deadline))
                return made
        finally:
            process.waits(-1)
            process.turn.release()

    def close(self) -> None:
        """Releases the lease, so that another process has the worker at once."""
        self._lessee.close()

    def __enter__(self) -> Ids:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


def _is_ready(process: Process) -> int | None:
    if process.thread is None:
        process._start(steady())
    return process.window.pause(steady())
