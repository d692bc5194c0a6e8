"""A server that takes over another's data makes none of its IDs again, even if clocks are wrong.

Every database keeps the mark in its WAL, so a server that has replayed a commit knows an instant above the commit's IDs.
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
    """The clock of the standby is behind, and later comes to the instants at which the primary made IDs."""
    primary, made, behind = server_at_0(own_servers), Made(), BEHIND.get(happens, 3600)
    standby = own_servers(standby_of=primary, clock=at(-behind))
    steps = happens(primary, standby, made)
    next(steps)
    if happens is not switchover:
        fail_over(primary, standby)
    else:
        standby.promote()
    assert next(steps, None) is None
    pass_through(standby, made, -behind, 0, 60)


def test_each_database_keeps_its_own_mark(own_servers):
    """A database without IDs does not wait for another database's IDs, which stay safe."""
    primary, made = server_at_0(own_servers), Made()
    primary.sql("CREATE DATABASE other")
    for statement in ["CREATE EXTENSION flake", TABLE]:
        with primary.connect(dbname="other") as db:
            db.execute(statement)
    standby = own_servers(standby_of=primary, clock=at(0))
    primary.set_clock(at(60))
    make_in_all(primary, made, dbname="other")
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    fail_over(primary, standby)
    assert "twitter" in attempts(standby, made, dbname="other")
    pass_through(standby, made, 0, 60, dbname="other")


def test_a_database_with_ids_waits_after_another_one_has_made_the_first(own_servers):
    """The first database opens the ledger, and the database with IDs is used later."""
    primary, made = server_at_0(own_servers), Made()
    primary.sql("CREATE DATABASE other")
    with primary.connect(dbname="other") as db:
        db.execute("CREATE EXTENSION flake")
    standby = own_servers(standby_of=primary, clock=at(-3600))
    primary.set_clock(at(60))
    insert(primary, made)
    primary.set_clock(at(0))
    primary.sql("CREATE TABLE plain ()")
    fail_over(primary, standby)
    attempts(standby, made, dbname="other")
    pass_through(standby, made, -3600, 0, 60)
