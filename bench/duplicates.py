#!/usr/bin/env python3
"""Counts IDs that generators make twice: `duplicates.py [IDS [STANDBY]]`.

It needs a superuser, and an empty database, which the environment names. STANDBY is the host of a standby of this server: it is
promoted, and the old primary continues.

Each way of `contestants.py` that the server has makes so many IDs (two million) in sixteen sessions at once, then 100,000 in one
transaction, then 100,000 pairs of IDs for two tables in one statement, and a million IDs on the old primary and on the new one at
once. IDs of pgEdge for two tables come from two sequences, and Mastodon's from the two tables' names.
"""

import sys
import threading
import time

import psycopg

from contestants import ALL

SESSIONS = 16
IN_A_STATEMENT = 500
IN_A_TRANSACTION = 100_000
AFTER_PROMOTION = 1_000_000
# The name in a call, and the second table's.
OTHERS = {"pgedge": ("'pgedge_numbers'", "'others'"), "mastodon": ("'posts'", "'users'")}
# Their numbers are meant to be the same for two tables.
LEFT_OUT = ("bigserial", "cached")


def connect(**options):
    return psycopg.connect(autocommit=True, options="-c synchronous_commit=off", **options)


def at_once(*jobs):
    """Runs the jobs, each in a thread."""
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def by_sessions(call, ids):
    """Returns how many IDs were made, and how many of them were there already."""
    def make():
        with connect() as db:
            for _ in range(ids // SESSIONS // IN_A_STATEMENT):
                db.execute(f"INSERT INTO made SELECT {call} FROM generate_series(1, {IN_A_STATEMENT})")

    with connect() as db:
        kind = db.execute(f"SELECT pg_typeof({call})").fetchone()[0]
        db.execute(f"DROP TABLE IF EXISTS made; CREATE UNLOGGED TABLE made (id {kind})")
        at_once(*[make] * SESSIONS)
        return db.execute("SELECT count(*), count(*) - count(DISTINCT id) FROM made").fetchone()


def in_a_transaction(call):
    made = f"SELECT {call} FROM generate_series(1, {IN_A_TRANSACTION}) OFFSET 0"
    with connect() as db:
        return db.execute(f"SELECT count(*), count(*) - count(DISTINCT id) FROM ({made}) i (id)").fetchone()


def for_two_tables(call, other):
    """Returns how many IDs each of two tables got, and how many of them both got."""
    with connect() as db:
        db.execute(f"""
            DROP TABLE IF EXISTS pairs;
            CREATE UNLOGGED TABLE pairs AS SELECT {call} AS a, {other} AS b FROM generate_series(1, {IN_A_TRANSACTION})""")
        both = "SELECT count(*) FROM (SELECT a FROM pairs INTERSECT SELECT b FROM pairs) p"
        return db.execute(f"SELECT count(*), ({both}) FROM pairs").fetchone()


def after_a_promotion(call, standby):
    """Returns how many IDs each of two servers made, and how many of them both made."""
    found = []

    def make(**host):
        with connect(**host) as db:
            found.append({id for id, in db.execute(f"SELECT {call} FROM generate_series(1, {AFTER_PROMOTION})")})

    at_once(make, lambda: make(host=standby))
    one, other = found
    return AFTER_PROMOTION, len(one & other)


def promote(standby):
    with connect() as db, connect(host=standby) as other:
        end, = db.execute("SELECT pg_current_wal_lsn()").fetchone()
        while not other.execute("SELECT pg_last_wal_replay_lsn() >= %s", [end]).fetchone()[0]:
            time.sleep(0.1)
        other.execute("SELECT pg_promote()")


def present():
    """The generators that the server has, made ready."""
    with connect() as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS flake; CREATE SEQUENCE others")
        for contestant in ALL:
            if not contestant.is_call or contestant.key in LEFT_OUT:
                continue
            try:
                with db.transaction():
                    if contestant.extension:
                        db.execute(f"CREATE EXTENSION IF NOT EXISTS {contestant.extension}")
                    db.execute(contestant.setup or "SELECT")
                    db.execute(f"SELECT {contestant.call}")
            except psycopg.Error:
                continue
            yield contestant


def main(ids=2_000_000, standby=None):
    here = list(present())
    rows = {}
    for contestant in here:
        call = contestant.call
        other = call.replace(*OTHERS.get(contestant.key, ("", "")))
        rows[contestant.label] = [by_sessions(call, int(ids)), in_a_transaction(call), for_two_tables(call, other)]
    if standby:
        promote(standby)
        for contestant in here:
            rows[contestant.label].append(after_a_promotion(contestant.call, standby))
    print("| | sixteen sessions | one transaction | two tables | after a promotion |\n|---|---:|---:|---:|---:|")
    for label, found in rows.items():
        print("|", " | ".join([label, *(f"{twice:,} of {made:,}" for made, twice in found)]), "|")


if __name__ == "__main__":
    main(*sys.argv[1:])
