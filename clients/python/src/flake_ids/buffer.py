"""IDs that a process has fetched and not used yet, and how many to fetch next. clients/README.md has the rules."""

from __future__ import annotations

import math
import time
from collections import deque
from functools import partial

# Seconds. Libraries that freeze the clocks of a test replace the functions of `time` in all modules, but not this one.
now = partial(time.clock_gettime, time.CLOCK_MONOTONIC) if hasattr(time, "clock_gettime") else partial(time.monotonic)


class Batch:
    """The IDs of one answer, the next one at the end. `ids.pop()` is one step, so that no two threads get the same ID.
    An ID is popped without a lock before `soon`, while there are more than `low`."""

    __slots__ = ("has_said", "ids", "low", "soon", "until")

    def __init__(self, ids: list[int], sent: float, max_age: float) -> None:
        self.ids, self.until, self.has_said = ids, sent + max_age, False
        self.low, self.soon = max(1, len(ids) // 4), sent + max_age * 0.75

    def is_low(self, now: float) -> bool:
        return len(self.ids) <= self.low or now >= self.soon


NONE = Batch([], -math.inf, 0)


class Buffer:
    """All methods want the lock of the process."""

    def __init__(self, max_age: float | None, most: int, now: float) -> None:
        self.max_age, self.most = math.inf if max_age is None else max_age, most
        self.span = 1.0 if max_age is None else max_age
        self.batches: deque[Batch] = deque()
        self.first = NONE
        self.fetched = self.expired = self.counted = 0
        # How many IDs were used in the last `span`, at the last request.
        self.rate, self.at = 0.0, now

    def take(self, count: int, now: float) -> list[int]:
        """Removes this many IDs that are fresh, or all that there are."""
        taken: list[int] = []
        while self.batches and len(taken) < count:
            batch = self.batches[0]
            if now >= batch.until:
                self.expired += len(batch.ids)
            else:
                try:
                    while len(taken) < count:
                        taken.append(batch.ids.pop())
                    break
                except IndexError:  # another thread has popped the last one
                    pass
            self.batches.popleft()
            self.first = self.batches[0] if self.batches else NONE
        return taken

    def runs_low(self, now: float) -> bool:
        """Whether to fetch the next batch now. Each batch says so once."""
        if not self.batches or (batch := self.batches[-1]).has_said or not batch.is_low(now):
            return False
        batch.has_said, batch.low, batch.soon = True, 0, batch.until
        return True

    def wanted(self, waited: int, now: float) -> int:
        """How many IDs to ask for. This is called once before each request, and counts what was used since the last one."""
        used = self.fetched - self.expired - sum(len(batch.ids) for batch in self.batches)
        passed = max(now - self.at, 1e-9)
        self.rate *= max(0.0, 1 - passed / self.span)
        self.rate += (used - self.counted) * min(1.0, self.span / passed)
        self.at, self.counted = now, used
        return max(1, min(self.most, max(waited, int(self.rate + 0.5))))

    def add(self, ids: list[int], sent: float, now: float) -> None:
        """Keeps IDs that nobody has waited for, if they are fresh."""
        ids.reverse()
        batch = Batch(ids, sent, self.max_age)
        if now >= batch.until:
            self.expired += len(ids)
        elif ids:
            self.batches.append(batch)
            self.first = self.batches[0]

    def clear(self) -> None:
        self.batches.clear()
        self.first = NONE
