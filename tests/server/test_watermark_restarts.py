"""Transactions that were prepared, and IDs that were made, before a start of the server, which does not know them at first."""

import psycopg
import pytest

from waiting import wait_until
from watermark import OUTBOX, holds, insert, one, passes, take_snapshot, watermark

TOO_LATE = psycopg.errors.ObjectNotInPrerequisiteState


@pytest.fixture
def server(own_servers):
    # A transaction of autovacuum that commits while the first session asks would cause an error.
    server = own_servers("max_prepared_transactions=2", "max_connections=20", "autovacuum=off")
    server.sql(OUTBOX)
    return server


def prepare(server, **options):
    with server.connect(**options) as db:
        db.execute("BEGIN")
        id = insert(db)
        db.execute("PREPARE TRANSACTION 'left'")
    return id


def refused(db):
    """Checks the error: the server does not know what the snapshot sees."""
    with pytest.raises(psycopg.errors.SerializationFailure, match="not known yet"):
        watermark(db)
    return True


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_ids_from_before_a_restart_are_refused(server, mode):
    with server.connect() as db:
        ids = db.execute("SELECT flake_next('twitter')::text, sno_next()::text").fetchone()
        # A tick of sno is longer than one of twitter, and ends later.
        above = f"flake_min(flake_watermark(), 'twitter') > {ids[0]} AND sno_min(flake_watermark()) > '{ids[1]}'"
        wait_until(lambda: one(db, f"SELECT {above}"))
    server.restart(mode=mode)
    with server.connect() as db:
        for id, type in zip(ids, ["bigint", "sno"], strict=True):
            with pytest.raises(TOO_LATE, match="below a watermark"):
                db.execute(f"SELECT {'sno' if type == 'sno' else 'flake'}_cover('{id}')")
        # IDs that are made from now on can be covered.
        db.execute("SELECT flake_cover(flake_next('twitter')), sno_cover(sno_next())")


@pytest.mark.matrix
@pytest.mark.parametrize("mode", ["fast", "immediate", "the file is lost"])
def test_a_first_call_of_cover_after_a_restart_refuses_ids_below_it(server, mode):
    """No session has asked for a watermark since, so no announced watermark is known that would refuse the ID. If the file is
    lost, only the page has the one from before."""
    with server.connect() as db:
        id = one(db, "SELECT flake_next('twitter')")
        assert mode in ("fast", "immediate") or passes(db, id)
    for late in (0, id):
        if mode in ("fast", "immediate"):
            server.restart(mode=mode)
        else:
            server.restart(while_stopped=(server.dir / "data" / "flake.mark").unlink)
        with server.connect() as db:
            with pytest.raises(TOO_LATE, match="below a watermark"):
                db.execute("SELECT flake_cover(%s, 'twitter')", (late,))
            # The refused ID holds nothing, and IDs that are made from now on can be covered.
            assert db.execute("SELECT * FROM flake_open_transactions").fetchall() == []
            db.execute("SELECT flake_cover(flake_next('twitter'))")


@pytest.fixture
def restarted(server):
    """A transaction prepared before the server crashed, a session with a snapshot from before its end, and another session."""
    id = prepare(server)
    server.restart(mode="immediate")
    with server.connect() as old, server.connect() as new:
        take_snapshot(old)
        yield id, old, new


def test_a_snapshot_from_before_a_prepared_transaction_was_learned_of_gets_an_error(restarted):
    """The first session that asks learns of the transaction after it has committed, and other sessions have older snapshots."""
    id, old, new = restarted
    new.execute("COMMIT PREPARED 'left'")
    assert passes(new, id)
    assert refused(old)
    old.execute("ROLLBACK")
    assert passes(old, id)


def test_a_retry_in_the_same_snapshot_gets_the_error_again(restarted):
    id, old, new = restarted
    new.execute("COMMIT PREPARED 'left'")
    for _ in range(2):
        old.execute("SAVEPOINT here")
        assert refused(old)
        old.execute("ROLLBACK TO here")
    old.execute("ROLLBACK")
    assert passes(old, id)


def test_a_snapshot_from_before_the_end_of_a_learned_transaction_is_held(restarted):
    id, old, new = restarted
    assert holds(new, id)
    new.execute("COMMIT PREPARED 'left'")
    assert watermark(old) <= id
    assert passes(new, id)


def test_a_transaction_prepared_in_another_database_does_not_hold_it(server):
    server.sql("CREATE DATABASE other")
    server.sql("CREATE EXTENSION IF NOT EXISTS flake")
    with server.connect(dbname="other") as db:
        db.execute(f"CREATE EXTENSION flake; {OUTBOX}")
    id = prepare(server, dbname="other")
    server.restart(mode="immediate")
    with server.connect() as here, server.connect(dbname="other") as there:
        assert passes(here, id)
        assert here.execute("SELECT * FROM flake_open_transactions").fetchall() == []
        assert holds(there, id)
        there.execute("COMMIT PREPARED 'left'")
        assert passes(there, id)
