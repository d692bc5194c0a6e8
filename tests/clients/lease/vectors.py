"""Writes tests/vectors/lease.csv: what a lease client must make and ask for. The definitions here are independent of every
client.

The IDs of a client are the pairs (tick, n) in order. The next one has the tick of the server's clock, or the tick of the last ID
where that is later, and the lowest n that is free there. It exists if the window has this tick and n is less than count. After
a window that ends before the last ID does, the server's clock was ahead, and the pairs begin anew."""

import random

SECOND, HELD, LATE = 10**6, 5 * 10**6, 2 * 10**6
START = 1_790_000_000 * SECOND
# Columns: shift, step, count, epoch, tick length. Rows: twitter, few IDs in a tick, ticks of a second, negative IDs, the worker
# below the sequence, workers of more than 2^53.
LAYOUTS = [
    (22, 0, 4096, 1288834974657000, 1000),
    (12, 0, 3, 1609459200000000, 1000),
    (20, 0, 2, 1609459200000000, SECOND),
    (23, 0, 2, 0, 1000),
    (24, 16, 3, 1409529600000000, 10_000),
    (56, 0, 2, 1789996000000000, 32 * SECOND),
]


class Client:
    def __init__(self, layout):
        self.shift, self.step, self.count, self.epoch, self.length = layout
        self.chain, self.used, self.ask, self.due = [], [], None, 0
        self.lines = ["window"]

    def low(self, worker):
        return worker if self.step else worker * self.count

    def granted(self, sent, came, wall, token, worker, start, end, now, until):
        row = ["", 0, token, worker, start, end, self.shift, self.low(worker), self.step, self.count, self.epoch, self.length]
        self.lines.append(f"answered,{sent},{came},{wall},{','.join(map(str, [*row, now, until]))}")
        if came > sent + LATE:
            self.ask, self.due = None, came + SECOND
        else:
            if not self.chain or (self.chain[-1]["worker"], self.chain[-1]["end"]) != (worker, start):
                self.chain = []
            self.chain.append({"worker": worker, "start": start, "end": end, "now": now, "came": came, "wall": wall})
            self.ask, self.due = token, sent + min(HELD, (until - now) // 2)
            if all(tick >= end for tick, _ in self.used[-1:]):
                self.used = []

    def refused(self, came, wall, now, reason, wait):
        self.lines.append(f"answered,{came},{came},{wall},{reason},{wait},0,0,0,0,0,0,0,0,0,0,{now},0")
        self.ask = None if reason == "lost" else self.ask
        self.due = came + min(wait, HELD)

    def failed(self, steady, pause):
        """The server says which token was used, so the same is tried again."""
        self.lines.append(f"failed,{steady},{pause}")
        self.due = steady + pause

    def release(self):
        """A lease ends after the last ID."""
        self.lines.append(f"release,{self.ask or ''},{self.used[-1][0] if self.used else ''}")
        self.chain, self.ask = [], None

    def leave_if_parted(self, steady, wall):
        """Drops the lease if one of the two clocks has advanced a second more than the other since the lease was granted."""
        gone = {wall - self.chain[-1]["wall"], steady - self.chain[-1]["came"]} if self.chain else {0}
        if max(gone) - min(gone) > SECOND:
            self.chain, self.ask, self.due = [], None, steady

    def server_time(self, steady):
        return self.chain[-1]["now"] + steady - self.chain[-1]["came"]

    def tick_of_server(self, steady):
        return (self.server_time(steady) - self.epoch) // self.length

    def id(self, steady, wall):
        made = ""
        last = max((tick for tick, _ in self.used), default=0)
        if self.chain and self.tick_of_server(steady) > last:
            self.leave_if_parted(steady, wall)
        if self.chain:
            tick = max(self.tick_of_server(steady), last)
            free = set(range(self.count)) - {n for used, n in self.used if used == tick}
            if free and any(window["start"] <= tick < window["end"] for window in self.chain):
                self.used.append((tick, min(free)))
                number = self.low(self.chain[-1]["worker"]) + (min(free) << self.step)
                bits = f"{tick:b}" + f"{number:0{self.shift}b}"
                made = int.from_bytes(int(bits, 2).to_bytes(8, "big"), "big", signed=True)
        self.lines.append(f"id,{steady},{wall},{made}")

    def asks(self, steady, wall):
        self.leave_if_parted(steady, wall)
        ask = "" if steady < self.due else self.ask or "new"
        self.lines.append(f"asks,{steady},{wall},{ask}")


class Story:
    """A client with its two clocks, and a server whose clock runs like the client's steady clock."""

    def __init__(self, layout, choose):
        self.client, self.choose = Client(layout), choose
        self.steady, self.wall, self.server = 10 * SECOND, START + 3 * SECOND, START
        self.worker, self.end, self.until = 0, None, None

    def pass_time(self, duration):
        self.steady, self.wall, self.server = self.steady + duration, self.wall + duration, self.server + duration

    def tick(self, instant):
        """Returns the first tick that begins at an instant or later."""
        return -(-(instant - self.client.epoch) // self.client.length)

    def grant(self, worker, instant, duration, network=20_000, gap=0):
        sent = self.steady
        self.pass_time(network // 2)
        now = self.server // 2 * 2
        until = (instant or now) + duration
        self.pass_time(network // 2)
        start, self.worker, self.end, self.until = self.tick(instant or now) + gap, worker, self.tick(until), until
        token = self.choose.randrange(1, 2**63)
        self.client.granted(sent, self.steady, self.wall, token, worker, start, self.end, now, until)

    def new(self, **options):
        worker = self.choose.randrange(1, 64) << (48 if self.client.shift == 56 else 0)
        self.grant(worker, None, self.choose.choice([4, 10, 10]) * SECOND, **options)

    def renew(self, **options):
        left = max(self.until, self.server)
        self.grant(self.worker, left, self.server + 60 * SECOND - left, **options)

    def ids(self):
        for _ in range(self.choose.randrange(1, 6)):
            self.client.id(self.steady, self.wall)
            self.pass_time(self.choose.choice([0, 0, 7, 400]))

    def step(self):
        client, choose = self.client, self.choose
        kinds = {
            "ids": 40, "asks": 15, "asks when it is due": 5, "new": 4, "renew": 15, "gap": 2, "late": 2, "wait": 3, "lost": 2,
            "failed": 3, "release": 3, "stop": 3, "clock": 2, "server's clock": 2,
        }  # fmt: skip
        kind = choose.choices(list(kinds), kinds.values())[0]
        self.pass_time(choose.choice([1, 300, 1000, 30_000, 700_000, 3 * SECOND]))
        if kind == "ids":
            self.ids()
        elif kind == "asks":
            client.asks(self.steady, self.wall)
        elif kind == "asks when it is due":
            for steady in client.due - 1, client.due:
                self.pass_time(max(0, steady - self.steady))
                client.asks(self.steady, self.wall)
        elif kind == "new" or self.until is None:
            self.new()
        elif kind == "renew" and self.until < self.server + 60 * SECOND:
            self.renew(network=choose.choice([2, 20_000, SECOND]))
        elif kind == "gap":
            self.renew(gap=choose.choice([1, 40]))
        elif kind == "late":
            self.renew(network=LATE + choose.choice([-2, 0, 2, 30 * SECOND]))
        elif kind == "wait":
            wait = choose.choice([1, 2 * SECOND, 63 * SECOND])
            client.refused(self.steady, self.wall, self.server, choose.choice(["starting", "exhausted", "clock"]), wait)
        elif kind == "lost":
            client.refused(self.steady, self.wall, self.server, "lost", 0)
        elif kind == "failed":
            client.failed(self.steady, choose.choice([SECOND, 30 * SECOND]))
        elif kind == "release":
            client.release()
        elif kind == "stop":
            self.pass_time(choose.choice([9, 12, 70]) * SECOND)
        elif kind == "clock":
            self.wall += choose.choice([-SECOND, SECOND, -SECOND - 1, SECOND + 1, 3600 * SECOND])
        else:
            self.server += choose.choice([-30, -1, 1, 30]) * SECOND


def set_back(story):
    """Sets the server's clock back between an ID and a renewal."""
    story.new()
    story.ids()
    story.server -= SECOND
    story.renew()
    story.ids()


def corrected(story):
    """The server's clock was an hour ahead."""
    story.new()
    story.ids()
    story.server -= 3600 * SECOND
    story.new()
    story.ids()
    story.renew()
    story.ids()


def corrected_to_the_end(story):
    """The server's clock was ahead by a lease, so that the next lease ends at the tick of the last ID."""
    story.grant(7, None, 70 * SECOND)
    story.pass_time(story.client.length)
    story.ids()
    start = story.client.used[-1][0] * story.client.length + story.client.epoch
    story.server = start - 40 * SECOND
    story.grant(7, None, start - story.server - 10_000)
    story.pass_time(story.client.length)
    story.ids()


def another_lot(story):
    """The server's clock is set back, and another lot is leased. The next ID has the last one's tick, and that lot's bits."""
    story.grant(7, None, 10 * SECOND)
    story.pass_time(story.client.length)
    story.client.id(story.steady, story.wall)
    story.server -= 2 * SECOND
    story.grant(8, None, 10 * SECOND)
    story.ids()


def used_to_the_end(story):
    """Uses all IDs of the last tick of a lease, and makes none of the next tick."""
    story.new()
    for tick in story.end - 1, story.end:
        story.pass_time(tick * story.client.length + story.client.epoch - story.client.server_time(story.steady))
        story.ids()


def lines():
    choose = random.Random(57)
    for play in set_back, used_to_the_end, corrected:
        for layout in LAYOUTS:
            story = Story(layout, choose)
            play(story)
            yield from story.client.lines
    for number in range(60):
        story = Story(LAYOUTS[number % len(LAYOUTS)], choose)
        story.client.asks(story.steady, story.wall)
        story.client.id(story.steady, story.wall)
        for _ in range(choose.choice([10, 40])):
            story.step()
        yield from story.client.lines
    for play in corrected_to_the_end, another_lot:
        for layout in LAYOUTS:
            story = Story(layout, choose)
            play(story)
            yield from story.client.lines


if __name__ == "__main__":
    print(*lines(), sep="\n")
