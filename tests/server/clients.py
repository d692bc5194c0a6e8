"""Clients that make IDs of three kinds and keep what was returned to them, whatever happens to the server."""

import contextlib
import threading
import time

import psycopg

# A tick of a millisecond, one of a second with nine random bits at the end, and the type with tick-tock.
KINDS = {
    "twitter": "flake_next('twitter')::text",
    "base64id": "(flake_next('base64id') & ~511)::text",  # without the random bits, which take no part in uniqueness
    "sno": "sno_next()::text",
}
MAKE = f"SELECT {', '.join(KINDS.values())} FROM generate_series(1, %s)"
# What may happen to a client whose server is killed, or whose clock is behind.
EXPECTED = (psycopg.OperationalError, psycopg.errors.ObjectNotInPrerequisiteState, psycopg.errors.QueryCanceled)

# A function that ends the session as libraries may.
EXIT = """
#include "postgres.h"
#include "fmgr.h"
PG_MODULE_MAGIC;
PG_FUNCTION_INFO_V1(libc_exit);
Datum libc_exit(PG_FUNCTION_ARGS) { exit(PG_GETARG_INT32(0)); }
"""


class Made:
    """All IDs that were ever returned, each once."""

    def __init__(self):
        self.ids = {kind: set() for kind in KINDS}
        self.lock = threading.Lock()

    def add(self, rows, kinds=tuple(KINDS)):
        with self.lock:
            for kind, column in zip(kinds, zip(*rows, strict=True), strict=False):
                twice = self.ids[kind].intersection(column)
                assert not twice and len(set(column)) == len(column), f"{kind}: {sorted(twice)[:3]} made twice"
                self.ids[kind].update(column)

    def make(self, db, count):
        """IDs of every kind, in one statement."""
        self.add(db.execute(MAKE, (count,)).fetchall())

    def make_each(self, db, count):
        """IDs of each kind; says of which the clock is too far behind."""
        behind = []
        for kind, call in KINDS.items():
            try:
                self.add(db.execute(f"SELECT {call} FROM generate_series(1, %s)", (count,)).fetchall(), [kind])
            except psycopg.errors.ObjectNotInPrerequisiteState:
                behind.append(kind)
        return behind

    def __len__(self):
        return sum(map(len, self.ids.values()))


class Load:
    """Sessions that make IDs until the end of a `with`, and come back after they were thrown out."""

    def __init__(self, server, made, sessions=8, batch=40):
        self.server, self.made, self.batch = server, made, batch
        self.ends, self.failures, self.thrown_out = threading.Event(), [], 0
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(sessions)]

    def run(self, number):
        turn = 0
        while not self.ends.is_set():
            try:
                with self.server.connect() as db:
                    # Half of them keep their session, the others take a new one now and then.
                    while not self.ends.is_set():
                        turn += 1
                        self.made.make_each(db, self.batch)
                        if number % 2 and turn % 5 == 0:
                            break
            except EXPECTED:
                self.thrown_out += 1
                time.sleep(0.02)
            except BaseException as failure:  # noqa: BLE001 - seen by whoever waits for this thread
                self.failures.append(failure)
                return

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]


def wait_for_server(server):
    for _ in range(600):
        with contextlib.suppress(psycopg.OperationalError):
            return server.value("SELECT 1")
        time.sleep(0.1)
    raise AssertionError("the server does not come back")
