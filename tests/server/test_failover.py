"""A server that takes over another's data makes IDs at once, and none of the other's, even if clocks are wrong.

The timeline of its WAL gives it another part of the node's IDs.
"""

import pytest

from clients import Made
from standing_clock import (
    COUNT,
    ROWS,
    SESSIONS,
    TABLE,
    at,
    attempts,
    fail_over,
    insert,
    make_in_all,
    pass_through,
    restart_with_nothing_to_replay,
    server_at_0,
    sessions,
)  # fmt: skip

# Events before the promotion and, after `yield`, between the promotion and the first ID. At the beginning, the primary's clock
# is at 0. IDs are made at 0 and at 60, and the time of the last commit is always 0.


def commit_at_0_after_ids_at_60(primary, standby, made):
    primary.set_clock(at(60))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    yield


def commits_out_of_order(primary, standby, made):
    """If sessions commit together, the records of commits are not in the order of their times."""
    primary.set_clock(at(0.005))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    yield
    standby.set_clock(at(-1))
    attempts(standby, made)
    standby.set_clock(at(0.005))
    attempts(standby, made)


def prepared(primary, standby, made):
    primary.sql("CREATE TABLE plain ()")
    primary.set_clock(at(60))
    with sessions(primary) as dbs:
        for number, db in enumerate(dbs):
            db.execute("BEGIN")
            made.add(db.execute(f"INSERT INTO kept SELECT FROM {ROWS} RETURNING *").fetchall())
            db.execute(f"PREPARE TRANSACTION '{number}'")
    yield
    with standby.connect() as db:
        for number in range(SESSIONS):
            db.execute(f"COMMIT PREPARED '{number}'")
    assert standby.value("SELECT count(*) FROM kept") == COUNT * SESSIONS


def switchover(primary, standby, made):
    insert(primary, made)
    restart_with_nothing_to_replay(primary, standby)
    primary.stop("fast")
    yield


def read_only_transactions(primary, standby, made):
    primary.sql("CREATE TABLE plain ()")
    primary.set_clock(at(60))
    make_in_all(primary, made, options="-c default_transaction_read_only=on")
    yield


# By how many seconds the standby's clock is behind at the promotion.
BEHIND = {commits_out_of_order: 1, read_only_transactions: 3}
FAILOVERS = [
    commit_at_0_after_ids_at_60, prepared, switchover,
    *(pytest.param(happens, marks=pytest.mark.matrix) for happens in BEHIND),
]  # fmt: skip


@pytest.mark.parametrize("happens", FAILOVERS, ids=lambda happens: happens.__name__)
def test_no_id_is_made_twice_after_a_failover(own_servers, happens):
    """The clock of the standby is behind, and later comes to the instants at which the primary made IDs. No ID waits for that."""
    primary, made, behind = server_at_0(own_servers), Made(), BEHIND.get(happens, 3600)
    standby = own_servers(standby_of=primary, clock=at(-behind))
    steps = happens(primary, standby, made)
    next(steps)
    if happens is not switchover:
        fail_over(primary, standby)
    else:
        standby.promote()
    make_in_all(standby, made)
    assert next(steps, None) is None
    pass_through(standby, made, -behind, 0, 60)


@pytest.mark.parametrize("first", ["postgres", "other"])
def test_each_database_makes_ids_at_once_after_a_failover(own_servers, first):
    """The new primary's clock is behind. The one database or the other opens the ledger, and the other one is used later."""
    primary, made = server_at_0(own_servers), Made()
    primary.sql("CREATE DATABASE other")
    for statement in ["CREATE EXTENSION flake", TABLE]:
        with primary.connect(dbname="other") as db:
            db.execute(statement)
    standby = own_servers(standby_of=primary, clock=at(-3600))
    primary.set_clock(at(60))
    for dbname in ["postgres", "other"]:
        make_in_all(primary, made, dbname=dbname)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    fail_over(primary, standby)
    for dbname in sorted(["postgres", "other"], key=first.__ne__):
        make_in_all(standby, made, dbname=dbname)
    for dbname in ["postgres", "other"]:
        pass_through(standby, made, -3600, 0, 60, dbname=dbname)
