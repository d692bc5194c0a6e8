"""Plays plans, one after another, until the time is over."""

import time

from conftest import made_servers

from . import ending, faults
from .cluster import Cluster
from .consumers import consumers
from .oracle import Oracle
from .plan import Plan
from .refusals import Refusals
from .report import Report
from .workload import load_on


def play(seed, steps, report):
    """Plays one plan on servers of its own."""
    began, oracle, plan = time.monotonic(), Oracle(), Plan(seed, steps)
    with made_servers() as make:
        cluster = Cluster(make, oracle, plan)
        cluster.refusals = Refusals(cluster)
        with consumers(cluster, plan.tailed), load_on(cluster, list(cluster.nodes.values()), seed):
            for step in plan.steps:
                oracle.begins(step)
                faults.attempt(cluster, step)
                if oracle.failures:
                    break
            cluster.settle()
        oracle.begins(("end",))
        ending.end(cluster)
        report.add(seed, cluster, time.monotonic() - began)


def run(seed, seconds, steps):
    """Plays the plans seed, seed.1, seed.2 and so on, at least one. If the run is interrupted, the report has the plans
    before."""
    report, began, number = Report(), time.monotonic(), 0
    while True:
        name = f"{seed}.{number}" if number else seed
        try:
            play(name, steps, report)
        except KeyboardInterrupt:
            report.failures.append(f"seed {name}: interrupted")
        number += 1
        if report.failures or time.monotonic() - began > seconds:
            return report
