"""Clients that make three kinds of IDs, and keep all returned IDs, whatever happens to the server."""

import contextlib
import threading
import time

import psycopg

from waiting import Background, wait_until

# Kinds with a tick of a millisecond, with a tick of a second and nine random bits, and with a tick-tock bit.
KINDS = {
    "twitter": "flake_next('twitter')::text",
    "base64id": "(flake_next('base64id') & ~511)::text",  # without the random bits, which take no part in uniqueness
    "sno": "sno_next()::text",
}
MAKE = f"SELECT {', '.join(KINDS.values())} FROM generate_series(1, %s)"
# Errors that a client may get if its server is killed, or makes no IDs.
EXPECTED = (psycopg.OperationalError, psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.QueryCanceled)

# A function that ends the session as some libraries do.
EXIT = """
#include "postgres.h"
#include "fmgr.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(libc_exit);
Datum libc_exit(PG_FUNCTION_ARGS) { exit(PG_GETARG_INT32(0)); }
"""


class Made:
    """All IDs that were ever returned, each of them once."""

    def __init__(self, kinds=KINDS):
        self.kinds, self.ids = kinds, {kind: set() for kind in kinds}
        self.lock = threading.Lock()

    def add(self, rows, kinds=None):
        with self.lock:
            for kind, column in zip(kinds or self.kinds, zip(*rows, strict=True), strict=False):
                twice = self.ids[kind].intersection(column)
                assert not twice and len(set(column)) == len(column), f"{kind}: {sorted(twice)[:3]} made twice"
                self.ids[kind].update(column)

    def make(self, db, count):
        """Makes IDs of every kind in one statement."""
        self.add(db.execute(MAKE, (count,)).fetchall())

    def common(self, others):
        """Returns the kinds that have IDs in common."""
        return {kind for kind, ids in self.ids.items() if ids & others.ids[kind]}

    def make_each(self, db, count):
        """Makes IDs of each kind. Returns the kinds that were refused."""
        refused = []
        for kind, call in KINDS.items():
            try:
                self.add(db.execute(f"SELECT {call} FROM generate_series(1, %s)", (count,)).fetchall(), [kind])
            except psycopg.errors.ObjectNotInPrerequisiteState:
                refused.append(kind)
        return refused

    def __len__(self):
        return sum(map(len, self.ids.values()))

    def wait_for_more(self, count):
        """Waits until `count` more IDs of each kind have been made."""
        before = {kind: len(ids) for kind, ids in self.ids.items()}
        wait_until(lambda: all(len(self.ids[kind]) >= before[kind] + count for kind in KINDS))


class Load(Background):
    """Sessions that make IDs until the end of a `with`, and reconnect after they were disconnected."""

    def __init__(self, server, made, sessions=8, batch=40):
        super().__init__()
        self.server, self.made, self.batch, self.thrown_out = server, made, batch, 0
        for number in range(sessions):
            self.add(self.run, number)

    def run(self, number):
        turn = 0
        while not self.ends.is_set():
            try:
                with self.server.connect() as db:
                    # Half of the sessions stay connected, and the others reconnect from time to time.
                    while not self.ends.is_set():
                        turn += 1
                        self.made.make_each(db, self.batch)
                        if number % 2 and turn % 5 == 0:
                            break
            except EXPECTED:
                self.thrown_out += 1
                time.sleep(0.02)


def wait_for_server(server):
    for _ in range(600):
        with contextlib.suppress(psycopg.OperationalError):
            return server.value("SELECT 1")
        time.sleep(0.1)
    raise AssertionError("the server does not come back")
