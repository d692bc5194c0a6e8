"""A prepared transaction holds the watermark until it is committed or rolled back, whatever happens to the server meanwhile."""

import psycopg
import pytest

from standing_clock import fail_over
from waiting import wait_until
from watermark import OUTBOX, holds, insert, insert_in_transactions, one, passes, take_snapshot, wait_for_next_tick

MOST = 10


@pytest.fixture(scope="module")
def server(servers):
    server = servers(f"max_prepared_transactions={MOST}")
    server.sql(OUTBOX)
    return server


@pytest.fixture
def tailer(tailer):
    yield tailer
    tailer.execute("ROLLBACK")
    for gid, in tailer.execute("SELECT gid FROM pg_prepared_xacts").fetchall():
        tailer.execute(f"ROLLBACK PREPARED '{gid}'")


def prepare(db, gid):
    """Inserts a row in a transaction and prepares it. Returns the ID."""
    db.execute("BEGIN")
    id = insert(db)
    db.execute(f"PREPARE TRANSACTION '{gid}'")
    return id


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_prepared_transaction_holds_it_until_its_end(writer, tailer, end):
    id = prepare(writer, "mine")
    assert holds(tailer, id)
    # Other transactions follow in its proc, and after its session has exited, in the other procs too.
    insert_in_transactions(writer, 100)
    assert holds(tailer, id)
    assert tailer.execute("SELECT pid, gid FROM flake_open_transactions").fetchall() == [(None, "mine")]
    assert one(tailer, "SELECT flake_watermark() = since FROM flake_open_transactions")
    writer.close()
    assert holds(tailer, id)
    tailer.execute(f"{end} PREPARED 'mine'")
    assert passes(tailer, id)
    assert tailer.execute("SELECT * FROM flake_open_transactions").fetchall() == []


@pytest.mark.parametrize("begun", ["before", "after"])
@pytest.mark.parametrize("later", [0, 300])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_prepared_transaction_that_ended_after_the_snapshot_holds_it(server, writer, tailer, end, later, begun):
    if begun == "after":
        take_snapshot(tailer)
    id = prepare(writer, "mine")
    if begun == "before":
        take_snapshot(tailer)
    writer.execute(f"{end} PREPARED 'mine'")
    insert_in_transactions(writer, later)
    if end == "COMMIT":
        assert holds(tailer, id)
    tailer.execute("COMMIT")
    assert passes(tailer, id)


def test_a_transaction_that_cannot_be_prepared_lets_go(server, writer, tailer):
    ids = [prepare(writer, f"full {number}") for number in range(MOST)]
    writer.execute("BEGIN")
    more = insert(writer)
    with pytest.raises(psycopg.errors.OutOfMemory, match="maximum number of prepared transactions"):
        writer.execute("PREPARE TRANSACTION 'one more'")
    writer.execute("BEGIN")
    again = insert(writer)
    with pytest.raises(psycopg.errors.DuplicateObject):
        writer.execute("PREPARE TRANSACTION 'full 0'")
    for number, id in enumerate(ids):
        assert holds(tailer, id)
        tailer.execute(f"COMMIT PREPARED 'full {number}'")
    assert passes(tailer, max(more, again))


@pytest.mark.matrix
@pytest.mark.parametrize("first", [0, 1])
def test_many_prepared_transactions_of_another_database_do_not_hold_it(server, tailer, first):
    """A transaction with a transaction ID and without flake's IDs stays open, so no entry can be freed."""
    server.sql("DROP DATABASE IF EXISTS other")
    server.sql("CREATE DATABASE other")
    with server.connect() as idle, server.connect(dbname="other") as other:
        other.execute(f"CREATE EXTENSION flake; {OUTBOX}")
        for number in range(300):
            if number == first:
                idle.execute("BEGIN; SELECT pg_current_xact_id()")
            prepare(other, f"other {number}")
            assert passes(tailer, one(tailer, "SELECT flake_next('twitter')"))
            assert tailer.execute("SELECT * FROM flake_open_transactions").fetchall() == []
            other.execute(f"COMMIT PREPARED 'other {number}'")


@pytest.mark.matrix
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_ended_ones_among_many_prepared_transactions_do_not_hold_it(server, writer, tailer, end):
    """Ended transactions hold nothing although no entry can be freed, and open ones are never merged."""
    with server.connect() as idle:
        idle.execute("BEGIN; SELECT pg_current_xact_id()")
        id = prepare(writer, "first")
        for number in range(300):
            last = prepare(writer, f"more {number}")
            writer.execute(f"{end} PREPARED 'more {number}'")
        assert holds(tailer, id)
        assert tailer.execute("SELECT gid FROM flake_open_transactions").fetchall() == [("first",)]
        writer.execute(f"{end} PREPARED 'first'")
        assert passes(tailer, last)


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["immediate", "fast"])
@pytest.mark.parametrize("checkpoint", [True, False])
def test_a_prepared_transaction_holds_it_after_restarts(own_servers, mode, checkpoint):
    """PostgreSQL reads it from the WAL or from pg_twophase. The first session need not have made an ID."""
    # A transaction of autovacuum that commits while the first session asks would cause an error.
    server = own_servers("max_prepared_transactions=10", "autovacuum=off")
    server.sql(OUTBOX)
    with server.connect() as writer:
        ids = []
        for gid in ["committed", "rolled back"]:
            ids.append(prepare(writer, gid))
            # The watermark can pass one of the IDs and not the other one.
            wait_for_next_tick(writer, ids[-1])
        if checkpoint:
            writer.execute("CHECKPOINT")
    for _ in range(2):
        server.restart(mode=mode)
        with server.connect() as tailer:
            assert holds(tailer, ids[0])
            assert tailer.execute("SELECT pid, gid FROM flake_open_transactions ORDER BY since").fetchall() == [
                (None, "committed"), (None, "rolled back"),
            ]  # fmt: skip
    with server.connect() as tailer, server.connect() as writer:
        insert_in_transactions(writer, 100)
        take_snapshot(tailer)
        writer.execute("COMMIT PREPARED 'committed'")
        assert holds(tailer, ids[0])
        tailer.execute("COMMIT")
        wait_until(lambda: holds(tailer, ids[1]) and passes(tailer, ids[0]))
        writer.execute("ROLLBACK PREPARED 'rolled back'")
        assert passes(tailer, ids[1])


@pytest.mark.matrix
def test_a_prepared_transaction_holds_it_after_a_promotion(own_servers):
    """The standby has the transaction from the WAL."""
    primary = own_servers("max_prepared_transactions=10", "autovacuum=off", "flake.node_count=2")
    primary.sql(OUTBOX)
    standby = own_servers("flake.node_id=1", standby_of=primary)
    with primary.connect() as writer:
        id = prepare(writer, "mine")
    fail_over(primary, standby)
    with standby.connect() as tailer, standby.connect() as writer:
        assert holds(tailer, id)
        assert tailer.execute("SELECT pid, gid FROM flake_open_transactions").fetchall() == [(None, "mine")]
        insert_in_transactions(writer, 10)
        assert holds(tailer, id)
        writer.execute("COMMIT PREPARED 'mine'")
        assert passes(tailer, id)
