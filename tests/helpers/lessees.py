"""Processes that make IDs on leases, as tests/clients/lease has them, and what they have printed."""

import array
import bisect
import collections
import contextlib
import itertools
import re
import signal
import subprocess

# Of layout twitter.
SHIFT = 22
PATIENCE = 5 * 10**6  # microseconds before a client says that there is no lease


class Lessee:
    """A process. It and each child that it forks print to a file of their own whose name begins with `output`."""

    def __init__(self, language, command, environment, output):
        self.language, self.output = language, output
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, "load"], env=environment | {"OUTPUT": str(output)}, stdin=subprocess.PIPE, stdout=file,
            )  # fmt: skip

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def end(self):
        self.signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait(60)


class Printed:
    """The leases and the IDs of one process, how often it had none for which reason, and for how long at most, in seconds."""

    def __init__(self, file):
        self.windows, self.ids, self.none, self.longest = [], array.array("q"), collections.Counter(), collections.Counter()
        since = None
        # The last line of a process that was killed may lack a part.
        for line in file.read_text().split("\n")[:-1]:
            kind, *rest = line.split(" ", 2)
            if kind == "window":
                self.windows.append(tuple(map(int, " ".join(rest).split())))
            elif kind == "none":
                cause, now = general(rest[1]), int(rest[0])
                since = since if since and since[0] == cause else (cause, now - PATIENCE)
                self.none[cause] += 1
                self.longest[cause] = max(self.longest[cause], (now - since[1]) / 1e6)
            else:
                since = None
                self.ids.append(int(kind))

    def outside(self):
        """IDs that are not in a tick of a lease."""
        leased = collections.defaultdict(list)
        for low, start, end, count in sorted(self.windows):
            leased[low, count].append((start, end))
        lots = sorted(leased)

        def is_in(below, tick):
            lot = lots[bisect.bisect(lots, (below, float("inf"))) - 1] if lots else (0, 0)
            at = bisect.bisect(leased[lot], (tick, float("inf"))) - 1
            return lot[0] <= below < sum(lot) and at >= 0 and tick < leased[lot][at][1]

        used = {(made & (1 << SHIFT) - 1, made >> SHIFT) for made in self.ids}
        return [one for one in used if not is_in(*one)]


def general(cause):
    """A reason without the numbers of one case, and without what a language puts before it."""
    cause = re.sub(r"^.*(ERROR: |FATAL: |psql: |Exception: |Error: |worker number: )", "", cause)
    return re.sub(r"([\d.]+( ?m?s\b|m(?=\d))?)+", "N", re.sub(r'"[^"]*"', '"…"', cause)).strip()[:60]


def overlapping(windows):
    """Leases of one lot, by its lowest bits, that have a tick in common."""
    return [(one, other) for one, other in itertools.pairwise(sorted(windows)) if one[0] == other[0] and one[2] > other[1]]
