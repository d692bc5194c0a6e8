"""Applications that lease workers: processes that are stopped, forked and killed, also after a server has granted a
lease and before they hear of it. No two leases of a worker have a tick in common, and no ID is outside of a lease."""

import contextlib
import itertools
import json
import os
import pathlib
import random
import signal
import socketserver
import sys
import tempfile
import threading
import time

import psycopg

from conftest import ROOT, signalled
from lessees import Lessee, Printed, overlapping

from . import exemptions

COMMAND = sys.executable, ROOT / "tests/clients/lease/main.py"
COLUMNS = "reason, wait, token, worker, tick_from, tick_until, shift, low, step, count, epoch, tick, now, until"
ASK = f"SELECT {COLUMNS} FROM flake_lease(%s, %s)"
LESSEES = 3


class Lessor(socketserver.ThreadingUnixStreamServer):
    """Asks a primary for each of them, and keeps what was granted."""

    daemon_threads = True

    def __init__(self, path, cluster, names, seed):
        super().__init__(path, None)
        self.names = names
        self.cluster, self.random, self.granted, self.kills = cluster, random.Random(f"{seed} lessor"), {}, threading.Event()

    def finish_request(self, request, address):
        process, *arguments = json.loads(request.makefile().readline())
        primaries = [node for node in self.cluster.primaries() if node.name in self.names]
        row = self.lease(self.random.choice(primaries), arguments) if primaries else None
        if row is None:
            return
        if self.kills.is_set() and row[0] is None:
            self.kills.clear()
            self.cluster.lessees["killed before the answer"] += 1
            signalled([process], signal.SIGKILL)
        else:
            with contextlib.suppress(BrokenPipeError):
                request.sendall(json.dumps([row[0], *(value or 0 for value in row[1:])]).encode())

    def handle_error(self, request, address):
        self.cluster.oracle.fail(f"a lease: {sys.exception()!r}")

    def lease(self, node, arguments):
        batch = self.cluster.oracle.begin(node, "postgres", "twitter", exemptions.LEASE)
        try:
            with self.cluster.leasing, node.server.connect(connect_timeout=30) as db:
                row = db.execute(ASK, arguments).fetchone()
        except psycopg.Error as error:
            self.cluster.refusals.judge(node, error, "a lease")
            return None
        finally:
            self.cluster.oracle.end(batch, node)
            # Horizons do not wait for leases.
            batch.above = batch.returned = None
        reason, _, _, _, start, end, _, low, _, count, *_ = row
        self.cluster.lessees["leases" if reason is None else reason] += 1
        if reason is None:
            self.granted.setdefault((low, start, end, count), []).append(batch)
        return row


def trouble(cluster, lessor, start, running, ends):
    """One of them is stopped, forked, killed, or dies before it hears of its lease."""
    while not ends.wait(lessor.random.random() * 2):
        for lessee in [lessee for lessee in running if lessee.process.poll() is not None]:
            running.remove(lessee)
            start()
        lessee, kind = lessor.random.choice(running), lessor.random.choice(["stopped", "forked", "killed", "answer"])
        if kind == "answer":
            lessor.kills.set()
            continue
        cluster.lessees[kind] += 1
        lessee.signal({"stopped": signal.SIGSTOP, "forked": signal.SIGUSR1, "killed": signal.SIGKILL}[kind])
        if kind == "stopped":
            ends.wait(lessor.random.choice([0.1, 1, 4]))
            lessee.signal(signal.SIGCONT)


@contextlib.contextmanager
def lessees(cluster, plan, seed):
    """Some processes, until the end of a `with`."""
    if not plan.leases:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="flake-lessees-") as directory:
        place, numbers, running, ends = pathlib.Path(directory), itertools.count(), [], threading.Event()
        # The servers that have the same data lease from one pool.
        names = "d" if plan.servers == "d" else "abc"
        lessor = Lessor(str(place / "lessor"), cluster, names, seed)
        environment = os.environ | {"LESSOR": str(place / "lessor"), "PYTHONPATH": str(ROOT / "clients/python/src")}

        def start():
            running.append(Lessee("python", COMMAND, environment, place / f"output_{next(numbers)}"))

        for _ in range(LESSEES):
            start()
        answering = threading.Thread(target=lessor.serve_forever)
        troubling = threading.Thread(target=trouble, args=(cluster, lessor, start, running, ends))
        for thread in answering, troubling:
            thread.start()
        try:
            yield
        finally:
            ends.set()
            troubling.join()
            for lessee in running:
                lessee.end()
            lessor.shutdown()
            answering.join()
            lessor.server_close()
            time.sleep(0.5)  # children end with their input
            judge(cluster, lessor.granted, [Printed(file) for file in place.glob("output_*")])


def judge(cluster, granted, printed):
    windows = [window for window, batches in granted.items() for _ in batches]
    for one, other in overlapping(windows):
        batches = granted[one][0], granted[other][-1]
        name = exemptions.of(*batches, cluster.layouts["twitter"].tick)
        if name:
            cluster.oracle.forgiven[name] += 1
        else:
            cluster.oracle.fail(f"leases {one} and {other} overlap:\n    {batches[0]}\n    {batches[1]}")
    made = [one for process in printed for one in process.ids]
    cluster.lessees["IDs"] += len(made)
    if any(outside := [process.outside() for process in printed]):
        cluster.oracle.fail(f"IDs outside of leases: {outside}")
    if len(set(made)) < len(made) and not overlapping(windows):
        cluster.oracle.fail("a lessee made an ID twice")
