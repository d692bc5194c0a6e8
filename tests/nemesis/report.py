"""The report of a run: what was done, and what was seen."""

import collections
import os

from . import exemptions
from .consumers import FORGOTTEN


class Report:
    """Totals over the plans of a run."""

    def __init__(self):
        self.seeds, self.ids, self.rows, self.overlaps, self.thrown = [], 0, 0, 0, 0
        self.consumed, self.on_standbys, self.watermarks = 0, 0, 0
        self.seconds = 0.0
        self.faults, self.forgiven, self.near, self.refusals = (collections.Counter() for _ in range(4))
        self.longest, self.failures, self.forgotten = {}, [], 0

    def add(self, seed, cluster, seconds):
        oracle = cluster.oracle
        self.seeds.append(seed)
        self.seconds += seconds
        self.ids += len(oracle)
        self.rows += oracle.rows
        self.faults.update({name: count for name, count in oracle.faults.items() if name != "load"})
        self.forgiven.update(oracle.forgiven)
        self.near.update(oracle.near)
        self.overlaps += exemptions.overlapping(oracle.made)
        self.refusals.update(cluster.refusals.counts)
        self.consumed += sum(consumer.passed for consumer in cluster.consumers)
        self.on_standbys += sum(consumer.passed_on_standbys for consumer in cluster.consumers)
        self.watermarks += sum(node.published for node in cluster.nodes.values())
        self.thrown += cluster.refusals.thrown
        self.forgotten += any(FORGOTTEN in node.log for node in cluster.nodes.values())
        for state, lasted in cluster.refusals.longest.items():
            self.longest[state] = max(lasted, self.longest.get(state, 0))
        self.failures += [f"seed {seed}: {failure}" for failure in oracle.failures]
        if oracle.failures or os.environ.get("FLAKE_NEMESIS_STORY"):
            print(*oracle.story, sep="\n")

    def __str__(self):
        forgiven = {function.__name__: self.forgiven[function.__name__] for function in exemptions.EXEMPTIONS}
        lines = [
            f"plans of seeds {', '.join(self.seeds)} in {self.seconds:.0f} s",
            f"{self.ids} IDs, {self.rows} rows read; consumed up to a watermark: {self.consumed} on primaries, "
            f"{self.on_standbys} on standbys by {self.watermarks} that were published; plans in which PostgreSQL has "
            f"forgotten prepared transactions, and consumers are not judged: {self.forgotten}",
            f"faults: {counted(self.faults)}",
            f"exemptions used: {counted(forgiven)}; equal IDs of layouts that overlap: {self.overlaps}; "
            f"forgiven ticks that were used twice: {counted(self.near)}",
            f"refusals: {counted(self.refusals)}; clients thrown out: {self.thrown}",
            f"longest refusal by the server's clock, in seconds: {counted(self.longest)}",
            *(f"FAILURE {failure}" for failure in self.failures),
        ]
        return "\n".join(lines)


def counted(counts):
    shown = {name: count if isinstance(count, int) else round(count, 1) for name, count in counts.items()}
    return ", ".join(f"{name} {count}" for name, count in sorted(shown.items(), key=str)) or "none"
