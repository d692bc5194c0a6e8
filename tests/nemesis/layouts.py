"""The kinds of IDs that clients make, and which part of an ID must be unique: no pair of a layout's key and a number may
repeat."""

import dataclasses
import datetime

from . import WITHOUT

# Layouts with few IDs: servers at the same instant soon make the same ones if anything is wrong. Some names share one bit
# layout.
SMALL = """"epoch": "2025-01-01T00:00:00Z", "tick": "%s",
           "fields": [{"name": "t", "bits": 41, "role": "timestamp"},
           {"name": "%s", "bits": %d, "role": "worker"}, {"name": "s", "bits": %d, "role": "sequence"}]"""
PADDED = """"epoch": "2010-11-04T01:42:54.657Z", "tick": "1ms", "fields": [{"name": "zero", "bits": 1, "role": "reserved"},
            {"name": "t", "bits": 41, "role": "timestamp"}, {"name": "w", "bits": 10, "role": "worker"},
            {"name": "s", "bits": 12, "role": "sequence"}]"""
TAGGED = """"epoch": "2010-11-04T01:42:54.657Z", "tick": "1ms", "fields": [{"name": "t", "bits": 41, "role": "timestamp"},
            {"name": "kind", "bits": 3, "role": "tag"}, {"name": "w", "bits": 7, "role": "worker"},
            {"name": "s", "bits": 12, "role": "sequence"}]"""

# In these calls, `n` is the number of the row.
NAMES = ["twitter", "leaf", "padded", "base64id", "uniqueid", "small", "small_too", "slow"]
CALLS = {name: f"flake_next('{name}')" for name in NAMES}
CALLS |= {"tagged": "flake_next('tagged', mod(n::integer, 8))", "sno": "sno_next(mod(n::integer, 256))", "own": "sno_next(0, 5)"}
# All partitions of callers share the lanes of one layout.
CALLS |= {"parts": "sno_next(0, 6 + mod(n::integer + (1000 * random())::integer, 12))"}
CALLS = {kind: call for kind, call in CALLS.items() if kind not in WITHOUT}
# The kinds in tables that consumers read: the type of the key, the least key of an instant, and a covered key.
TAILED = {kind: ("bigint", f"flake_min(%s, '{kind}')", f"flake_cover(%s, '{kind}')") for kind in ["twitter", "small"]}
TAILED |= {"sno": ("sno", "sno_min(%s)", "sno_cover(%s)")}
TAILED = {kind: how for kind, how in TAILED.items() if kind in CALLS}
# The kinds among them with many IDs in a tick.
PLENTIFUL = [kind for kind in TAILED if kind != "small"] or list(TAILED)
BATCHED = ["twitter", "small", "base64id", "base64id"]
# Kinds with long ticks and few IDs in each.
SLOW = {"slow"}
DIGITS = str.maketrans("23456789abcdefghijklmnopqrstuvwx", "0123456789abcdefghijklmnopqrstuv")
METABYTE = 0xFF << 32


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a kind's ID is divided. Kinds with equal keys make the same IDs."""

    key: tuple
    unique: int  # the bits that must be unique
    time: int  # the bits that are equal in all IDs of a tick
    workers: tuple  # the positions of the worker's bits, the highest first
    tick: float
    epoch: datetime.datetime
    is_reversed: bool = False

    def number(self, text):
        return int(text) & self.unique

    def end(self, number):
        """Returns when the tick of an ID ends."""
        width, lowest = self.time.bit_count(), self.time & -self.time
        ticks = (number & self.time) // lowest
        if self.is_reversed:
            ticks = int(f"{ticks:0{width}b}"[::-1], 2)
        return self.after(ticks)

    def after(self, ticks):
        return self.epoch + (ticks + 1) * datetime.timedelta(seconds=self.tick)

    def node(self, number, count):
        """Returns the node whose workers include the ID's worker."""
        worker = 0
        for place in self.workers:
            worker = worker << 1 | number >> place & 1
        return worker // ((1 << len(self.workers)) // count) if self.workers else None


class Sno(Layout):
    def number(self, text):
        return int(text.translate(DIGITS), 32) & self.unique

    def end(self, number):
        return self.after(number >> 41)


def of_view(epoch, tick, fields):
    """The layout that a row of flake_layouts describes. Zero bits above the others do not change an ID, so the key leaves them
    out."""
    shift, parts = sum(field["bits"] for field in fields), {}
    place, time, ignored, fixed = None, 0, 0, 0
    for field in fields:
        shift -= field["bits"]
        mask = (1 << field["bits"]) - 1 << shift
        match field["role"]:
            case "timestamp":
                time = mask
                place = shift, field.get("reversed"), field["bits"] if field.get("reversed") else 0
            case "random" | "tag":
                ignored |= mask
                parts.setdefault(field["role"], []).append((0, shift, field["bits"]))
            case "reserved":
                fixed |= field.get("value", 0) << shift
            case role:
                parts.setdefault(role, []).append((field.get("rank", 0), shift, field["bits"]))
    bits = {role: joined(fields) for role, fields in parts.items()}
    key = epoch, tick, place, fixed, tuple(sorted(bits.items()))
    return Layout(key, (1 << 64) - 1 & ~ignored, time, bits.get("worker", ()), tick.total_seconds(), epoch, bool(place[1]))


def joined(fields):
    """The positions of a number's bits, the highest first, over all fields that hold it."""
    ordered = sorted(fields, key=lambda field: (field[0], -field[1]))
    return tuple(place for _, shift, bits in ordered for place in reversed(range(shift, shift + bits)))


def of_server(server):
    """Returns the layout of each kind."""
    found = server.sql("SELECT name, epoch, tick, fields FROM flake_layouts WHERE name = ANY (%s)", list(CALLS))
    known = {name: of_view(epoch, tick, fields) for name, epoch, tick, fields in found}
    epoch = datetime.datetime(2010, 1, 1, tzinfo=datetime.UTC)
    sno = Sno(("sno",), (1 << 80) - 1 & ~METABYTE, (1 << 80) - (1 << 40), (), 0.004, epoch)
    return known | {"sno": sno, "own": sno, "parts": sno}


def create(server, shape):
    small = {"small": ("20ms", "a"), "small_too": ("20ms", "b"), "slow": ("1s", "a")}
    definitions = {name: SMALL % (*how, shape.workers, shape.sequence) for name, how in small.items()}
    # One layout has a worker for half of the nodes, and the time of the other is over.
    narrow = SMALL % ("1ms", "a", shape.nodes.bit_length() - 2, 4)
    definitions |= {"padded": PADDED, "tagged": TAGGED, "narrow": narrow, "over": narrow.replace("41", "4")}
    for name, definition in definitions.items():
        server.sql("SELECT flake_create_layout(%s, %s)", name, f"{{{definition}}}")
