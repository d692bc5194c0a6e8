"""IDs for tasks of asyncio. A thread fetches them, so a loop never waits for the database."""

from __future__ import annotations

import asyncio
import contextlib
import math
from types import TracebackType

from .buffer import now
from .ids import Base


class AsyncIds(Base):
    """For all loops and tasks of a process, and for what it forks."""

    async def next(self) -> int:
        """An ID. Raises Unavailable after the patience, Refused where waiting is of no use, and Closed."""
        process = self._process
        batch = process.buffer.first
        if now() < batch.soon and len(batch.ids) > batch.low and process.page[0]:
            try:
                return batch.ids.pop()
            except IndexError:  # another thread has popped the last one
                pass
        return (await self.take(1))[0]

    __anext__ = next

    def try_next(self) -> int | None:
        """An ID of the buffer, or None if there is none now."""
        ids = self._current().take(1)
        return ids[0] if ids else None

    async def take(self, count: int) -> list[int]:
        """So many IDs, or an error as of next()."""
        process = self._current()
        ids = process.take(count)
        if len(ids) == count:
            return ids
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(changed.set)

        waiter = process.wait(count, ids, wake)
        try:
            # A test that freezes the clock of some modules only lets a timer end at once.
            while not changed.is_set() and (left := waiter.deadline - now()) > 0:
                with contextlib.suppress(asyncio.TimeoutError):  # Python 3.10 has another TimeoutError
                    await asyncio.wait_for(changed.wait(), None if math.isinf(left) else left)
            return process.ended(waiter)
        finally:
            process.leave(waiter)

    async def close(self) -> None:
        """Closes the connection. Those who wait get the error Closed."""
        await asyncio.get_running_loop().run_in_executor(None, self._current().close)

    def __aiter__(self) -> AsyncIds:
        return self

    async def __aenter__(self) -> AsyncIds:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
