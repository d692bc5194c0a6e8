"""IDs for tasks of asyncio. A thread renews the lease, so a loop that is busy does not lose it, and never waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import weakref
from collections.abc import Callable
from functools import partial
from types import TracebackType

from .ids import _is_ready, _Options
from .lessee import Process, steady
from .window import SECOND


class AsyncIds(_Options):
    """For all loops and tasks of a process, and for what it forks."""

    _turns: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]

    async def next(self) -> int:
        """An ID. Raises NoLease after the patience, Refused where waiting is of no use, and Closed."""
        process = self._lessee.process()
        with process.lock:
            made = process.id()
        return await self._waited(process, process.id) if made is None else made

    async def ready(self) -> None:
        """Waits until there is a lease, as next() does."""
        process = self._lessee.process()
        await self._waited(process, lambda: _is_ready(process))

    def _turn(self) -> asyncio.Lock:
        if not hasattr(self, "_turns"):
            self._turns = weakref.WeakKeyDictionary()
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _waited(self, process: Process, get: Callable[[], int | None]) -> int:
        deadline = steady() + int(self._patience * SECOND)
        turn = self._turn()
        try:
            await asyncio.wait_for(turn.acquire(), self._patience)
        except asyncio.TimeoutError:  # noqa: UP041 - Python 3.10 has two
            raise process.none() from process.problem
        process.waits(1)
        try:
            while True:
                changed = asyncio.Event()
                with process.lock:
                    if (made := get()) is not None:
                        return made
                    pause = process.pause(deadline)
                    process.watching.append(partial(_set, asyncio.get_running_loop(), changed))
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(changed.wait(), pause)
        finally:
            process.waits(-1)
            turn.release()

    async def close(self) -> None:
        """Releases the lease, so that another process has the worker at once."""
        await asyncio.get_running_loop().run_in_executor(None, self._lessee.close)

    async def __aenter__(self) -> AsyncIds:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()


def _set(loop: asyncio.AbstractEventLoop, changed: asyncio.Event) -> None:
    # A loop that has ended has nobody who waits.
    if not loop.is_closed():
        loop.call_soon_threadsafe(changed.set)
