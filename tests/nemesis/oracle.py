"""The oracle: it keeps every returned ID and its maker, and reports duplicates and IDs below watermarks."""

import collections
import dataclasses
import datetime
import threading
import time
import typing

from . import exemptions
from .turns import turn


@dataclasses.dataclass(eq=False)
class Branch:
    """The WAL of one primary. A promoted server continues its parent's WAL from the cut on."""

    name: str
    parent: "Branch | None" = None
    cut: float = 0  # when the last WAL was written that was surely replayed, by the steady clock
    timeline: int = 1  # PostgreSQL's number of it, which decides the turn
    copied: str = ""  # "beside" or "instead" of the original, if files were copied


class Maker(typing.NamedTuple):
    """A server as it was when it made IDs."""

    node: str
    memory: object  # one object for as long as the server uses the same flake.mark
    branch: Branch
    number: int
    count: int
    recovers: bool
    life: int | None  # the number of its start; None while it crashes

    @property
    def part(self):
        """Which IDs it makes: servers of different parts have none in common."""
        return self.number, self.count, turn(self.branch)


@dataclasses.dataclass(eq=False)
class Batch:
    """The IDs that one statement makes."""

    token: int
    kind: str
    database: str
    what: str
    began: float
    clock: float
    makers: tuple
    above: datetime.datetime | None  # a watermark that its server returned before, or the argument of flake_start_above
    returned: datetime.datetime | None  # what flake_start_above returned, as long as it holds
    accepted: int  # how often its server's clock was accepted
    ended: float = float("inf")
    ended_clock: float = float("inf")

    def __str__(self):
        maker = self.makers[0]
        place = f"{maker.node}.{maker.life}{' in recovery' if maker.recovers else ''}, branch {maker.branch.name}"
        times = f"at {self.began:.3f} to {self.ended:.3f}, clock {self.clock:.3f} to {self.ended_clock:.3f}"
        return f"{self.what} of {self.kind} in {self.database} by {place}, node {maker.number} of {maker.count}, {times}"


class Oracle:
    """Judges the IDs that clients were returned."""

    def __init__(self):
        self.lock = threading.Lock()
        self.made, self.ticks = collections.defaultdict(dict), collections.defaultdict(dict)
        self.batches = {}
        self.failures, self.forgiven, self.near = [], collections.Counter(), collections.Counter()
        self.rows, self.story, self.faults = 0, [], collections.Counter()
        self.began = time.monotonic()

    def fail(self, story):
        with self.lock:
            self.tell(story)

    def begins(self, step):
        self.faults[step[0]] += 1
        self.happened(step)

    def happened(self, what):
        self.story.append(f"{time.monotonic() - self.began:7.2f} s: {what}")

    def begin(self, node, database, kind, what):
        """Registers a statement that makes IDs. Their rows may appear even if the client is not told the IDs."""
        with self.lock:
            token = len(self.batches)
            maker, clock = node.maker, node.clock.now()
            consumer = node.consumers.get(database)
            above = consumer and consumer.watermark_of(node)
            returned, whose = node.above
            if whose == (maker.memory, maker.branch) and node.above_in in (None, database):
                above = max(above or node.given, node.given)
            else:
                returned = None
            began, accepted = time.monotonic(), node.accepted
            self.batches[token] = Batch(token, kind, database, what, began, clock, (maker,), above, returned, accepted)
            return self.batches[token]

    def accept(self, node):
        """Forgets watermarks before a superuser accepts the clock, because IDs can be below them afterwards."""
        with self.lock:
            node.accepted += 1
            node.above = node.given, node.above[1]
            for batch in self.batches.values():
                batch.above = batch.returned = None

    def set_back(self, node):
        """Forgets what flake_start_above has returned, before the clock is set back: IDs may be below it then, but not below its
        argument."""
        with self.lock:
            node.above = node.given, node.above[1]
            for batch in self.batches.values():
                if batch.ended == float("inf") and batch.makers[0].node == node.name:
                    batch.returned = None

    def end(self, batch, node):
        """Records the end of a statement, whether it succeeded or not."""
        batch.ended, batch.ended_clock = time.monotonic(), max(batch.clock, node.clock.highest_since(batch.began))
        if node.maker is not batch.makers[0]:
            batch.makers += (node.maker,)

    def returned(self, batch, node, layout, texts):
        """Checks the IDs that one statement returned."""
        numbers = [layout.number(text) for text in texts]
        with self.lock:
            made = self.made[layout.key]
            for number in numbers:
                other = made.setdefault(number, batch)
                if other is not batch:
                    self.twice(layout, number, other, batch)
            self.look_at_watermark(layout, numbers, batch)
            self.look_at_ticks(layout, {number & layout.time for number in numbers}, batch)
        maker = batch.makers[0]
        if node.maker is maker and layout.node(numbers[0], maker.count) not in (None, maker.number):
            self.fail(f"{numbers[0]} belongs to node {layout.node(numbers[0], maker.count)}: {batch}")
        if maker.recovers and node.maker is maker and not node.promoting:
            self.fail(f"a standby made {numbers[0]}: {batch}")
        if len(set(numbers)) < len(numbers):
            self.fail(f"an ID twice in one statement: {batch}")

    def look_at_ticks(self, layout, ticks, batch):
        """Checks that two servers with one part, or two starts of a server, do not use the same tick. They would make the same
        IDs as soon as sessions take them from the same lane."""
        maker = batch.makers[0]
        if maker.recovers:
            # It was made by a new primary whose timeline is not known yet.
            return
        # flake_accept_clock lets a server make other IDs in ticks that it has used.
        used = self.ticks[layout.key, maker.part, batch.accepted]
        for tick in ticks:
            # The first batch of each start of a server in each database.
            first = used.setdefault(tick, {})
            first.setdefault((maker.node, maker.memory, maker.life, batch.database), batch)
            for other in first.values():
                before = other.makers[0]
                if (before.memory, before.life) != (maker.memory, maker.life) and None not in (before.life, maker.life):
                    self.look_at_tick(layout.end(tick), other, batch)

    def look_at_tick(self, end, other, batch):
        name = exemptions.of(other, batch, end.timestamp())
        if name is None:
            self.tell(f"one tick was used twice:\n    {other}\n    {batch}")
            return
        self.near[name] += 1
        if self.near[name] == 1:
            self.happened(f"{name}, a tick:\n    {other}\n    {batch}")

    def look_at_watermark(self, layout, numbers, batch):
        """Checks that no ID is below a watermark that was returned before, nor where flake_start_above said that IDs begin."""
        limits = [limit for limit in (batch.above, batch.returned) if limit]
        lowest = min(map(layout.end, numbers)) if limits else None
        if limits and lowest <= max(limits):
            self.tell(f"a tick ended at {lowest}, below {max(limits)} from before: {batch}")

    def row(self, layout, text, token):
        """Checks a row, whose ID the client may or may not have been told."""
        with self.lock:
            self.rows += 1
            batch, number = self.batches[token], layout.number(text)
            other = self.made[layout.key].setdefault(number, batch)
            if other is not batch:
                self.twice(layout, number, other, batch)
            self.look_at_watermark(layout, [number], batch)

    def twice(self, layout, number, one, other):
        name = exemptions.of(one, other, layout.end(number).timestamp())
        if name:
            if not self.forgiven[name]:
                self.happened(f"{name}: {number}\n    {one}\n    {other}")
            self.forgiven[name] += 1
        else:
            self.tell(f"{number} was made twice:\n    {one}\n    {other}")

    def tell(self, story):
        if len(self.failures) < 20:
            self.failures.append(f"{time.monotonic() - self.began:7.2f} s: {story}")

    def __len__(self):
        return sum(map(len, self.made.values()))
