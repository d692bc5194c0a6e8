"""The kinds of IDs that clients make, and what of an ID has to be unique: the same key and number must never come again."""

import dataclasses
import datetime

from . import WITHOUT

# Layouts of few IDs, which meet again whenever a server comes to the same time; the names of some share their bits.
SMALL = """"epoch": "2025-01-01T00:00:00Z", "tick": "%s", "sequence": "%s",
           "fields": [{"name": "t", "bits": 41, "role": "timestamp"},
           {"name": "%s", "bits": %d, "role": "worker"}, {"name": "s", "bits": %d, "role": "sequence"}]"""
PADDED = """"epoch": "2010-11-04T01:42:54.657Z", "tick": "1ms", "fields": [{"name": "zero", "bits": 1, "role": "reserved"},
            {"name": "t", "bits": 41, "role": "timestamp"}, {"name": "w", "bits": 10, "role": "worker"},
            {"name": "s", "bits": 12, "role": "sequence"}]"""
TAGGED = """"epoch": "2010-11-04T01:42:54.657Z", "tick": "1ms", "fields": [{"name": "t", "bits": 41, "role": "timestamp"},
            {"name": "kind", "bits": 3, "role": "tag"}, {"name": "w", "bits": 7, "role": "worker"},
            {"name": "s", "bits": 12, "role": "sequence"}]"""

# `n` is the number of the row.
NAMES = ["twitter", "leaf", "padded", "base64id", "uniqueid", "small", "small_too", "slow"]
CALLS = {name: f"flake_next('{name}')" for name in NAMES}
CALLS |= {"tagged": "flake_next('tagged', mod(n::integer, 8))", "sno": "sno_next(mod(n::integer, 256))", "own": "sno_next(0, 5)"}
# More generators than the ledger has room for.
CALLS |= {"parts": "sno_next(0, 6 + mod(n::integer + (1000 * random())::integer, 12))"}
CALLS = {kind: call for kind, call in CALLS.items() if kind not in WITHOUT}
# Kinds of the tables that consumers tail: the type of their key, the least key of an instant, and a key that is covered.
TAILED = {kind: ("bigint", f"flake_min(%s, '{kind}')", f"flake_cover(%s, '{kind}')") for kind in ["twitter", "small"]}
TAILED |= {"sno": ("sno", "sno_min(%s)", "flake_cover(%s)")}
TAILED = {kind: how for kind, how in TAILED.items() if kind in CALLS}
# Of these, the kinds that have many IDs in a tick.
PLENTIFUL = [kind for kind in TAILED if kind != "small"] or list(TAILED)
BATCHED = ["twitter", "small", "base64id", "base64id"]
# Their sessions have few IDs in a tick that lasts long.
SLOW = {"slow"}
DIGITS = str.maketrans("23456789abcdefghijklmnopqrstuvwx", "0123456789abcdefghijklmnopqrstuv")
METABYTE = 0xFF << 32


@dataclasses.dataclass(frozen=True)
class Layout:
    """The parts of one kind's IDs: layouts with equal keys make the same IDs."""

    key: tuple
    unique: int  # the bits that have to be
    time: int  # the bits that are the same in all IDs of a tick
    workers: tuple  # the places of the worker number's bits from the highest down
    tick: float
    epoch: datetime.datetime
    is_reversed: bool = False

    def number(self, text):
        return int(text) & self.unique

    def end(self, number):
        """When the tick of an ID ends."""
        width, lowest = self.time.bit_count(), self.time & -self.time
        ticks = (number & self.time) // lowest
        if self.is_reversed:
            ticks = int(f"{ticks:0{width}b}"[::-1], 2)
        return self.after(ticks)

    def after(self, ticks):
        return self.epoch + (ticks + 1) * datetime.timedelta(seconds=self.tick)

    def node(self, number, count):
        """Whose part of the workers holds an ID."""
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
    """A layout as the view flake_layouts shows it. Where the bits of value 0 above the others end makes no difference."""
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
    """The places of a number's bits from the highest down, however many fields they are."""
    ordered = sorted(fields, key=lambda field: (field[0], -field[1]))
    return tuple(place for _, shift, bits in ordered for place in reversed(range(shift, shift + bits)))


def of_server(server):
    """The layout of each kind."""
    found = server.sql("SELECT name, epoch, tick, fields FROM flake_layouts WHERE name = ANY (%s)", list(CALLS))
    known = {name: of_view(epoch, tick, fields) for name, epoch, tick, fields in found}
    epoch = datetime.datetime(2010, 1, 1, tzinfo=datetime.UTC)
    sno = Sno(("sno",), (1 << 80) - 1 & ~METABYTE, (1 << 80) - (1 << 40), (), 0.004, epoch)
    return known | {"sno": sno, "own": sno, "parts": sno}


def create(server, shape):
    small = {"small": ("20ms", "reset", "a"), "small_too": ("20ms", "rolling", "b"), "slow": ("1s", "reset", "a")}
    definitions = {name: SMALL % (*how, shape.workers, shape.sequence) for name, how in small.items()}
    # Of too few IDs for all slots, and of ticks that are over.
    narrow = SMALL % ("1ms", "reset", "a", shape.nodes.bit_length() - 1, 3)
    definitions |= {"padded": PADDED, "tagged": TAGGED, "narrow": narrow, "over": narrow.replace("41", "4")}
    for name, definition in definitions.items():
        server.sql("SELECT flake_create_layout(%s, %s)", name, f"{{{definition}}}")
