"""What the server has granted, and how much of it is used. tests/vectors/lease.csv tests it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

SECOND = 1_000_000


@dataclass(frozen=True)
class Row:
    """An answer. Where `reason` is not None there is no lease, and the columns after `wait` are 0, but `now`."""

    reason: str | None
    wait: int
    token: int
    worker: int
    tick_from: int
    tick_until: int
    shift: int
    low: int
    step: int
    count: int
    epoch: int
    tick: int
    now: int
    until: int


class Window:
    """Instants are microseconds, of the steady and of the wall clock."""

    def __init__(self) -> None:
        self.row: Row | None = None
        # What renews the lease; without it, another lease is asked for.
        self.token: int | None = None
        self.came = self.wall = self.due = self.last = self.n = 0

    def id(self, steady: int, wall: Callable[[], int]) -> int | None:
        """The next ID, or None if there is none now."""
        row = self.row
        if row is None:
            return None
        # The server's clock was read before its answer came, so this never runs ahead of it. A tick never falls.
        tick, n = (row.now + steady - self.came - row.epoch) // row.tick, 0
        if tick <= self.last:
            tick, n = self.last, self.n + 1
        elif self._parted(steady, wall()):
            return None
        made = (tick << row.shift) + row.low + (n << row.step)
        # Whatever happened meanwhile, an ID of this window belongs to nobody else.
        if n >= row.count or not row.tick_from <= made >> row.shift < row.tick_until:
            return None
        self.last, self.n = tick, n
        return made if made < 2**63 else made - 2**64

    def pause(self, steady: int) -> int | None:
        """In how many microseconds there may be another ID, 0 for now, or None if that takes another lease."""
        if self.row is None:
            return None
        row, now = self.row, self.row.now + steady - self.came - self.row.epoch
        tick = max(now // row.tick, self.last)
        if tick == self.last and self.n + 1 >= row.count:
            tick += 1
        tick = max(tick, row.tick_from)
        return max(0, tick * row.tick - now) if tick < row.tick_until else None

    def asks(self, steady: int, wall: int) -> bool:
        """Whether to ask now, with the token."""
        self._parted(steady, wall)
        return steady >= self.due

    def answered(self, row: Row, sent: int, came: int, wall: int) -> str | None:
        """Returns the reason if the answer is of no use, else None."""
        if row.reason is not None:
            self.token = None if row.reason == "lost" else self.token
            self.due = came + min(5 * SECOND, row.wait)
            return row.reason
        if came - sent > 2 * SECOND:
            # The process may have stood still: what the answer says of the clock is old.
            self.token, self.due = None, came + SECOND
            return "late"
        self.token, self.due = row.token, sent + min(5 * SECOND, (row.until - row.now) // 2)
        if self.row and (self.row.low, self.row.tick_until) == (row.low, row.tick_from):
            row = replace(row, tick_from=self.row.tick_from)
        if row.tick_until <= self.last:
            # The server's clock was ahead, and is corrected. Nobody has used a tick of this window.
            self.last = self.n = 0
        self.row, self.came, self.wall = row, came, wall
        return None

    def failed(self, steady: int, pause: int) -> None:
        """There was no answer. The same token is tried again, because the server knows whether it was used."""
        self.due = steady + pause

    def release(self) -> tuple[int | None, int | None]:
        """The token and the last tick used. There is no ID afterwards."""
        token, self.row, self.token = self.token, None, None
        return token, self.last or None

    def _parted(self, steady: int, wall: int) -> bool:
        """Whether the machine was suspended since the answer, or a clock was set."""
        parted = self.row is not None and abs((wall - self.wall) - (steady - self.came)) > SECOND
        if parted:
            self.row, self.token, self.due = None, None, steady
        return parted
