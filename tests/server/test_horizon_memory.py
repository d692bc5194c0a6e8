"""Sessions that cannot say which of their IDs are not committed yet: there is no horizon while they matter."""

import contextlib

import psycopg
import pytest

from waiting import wait_until

HORIZON = "SELECT flake_horizon()"


@contextlib.contextmanager
def no_memory(server):
    """Sessions that come for the first time find no shared memory for their slots."""
    segments = server.dir / "data" / "pg_dynshmem"
    away = segments.rename(segments.with_suffix(".away"))
    try:
        yield
    finally:
        away.rename(segments)


def refused(db):
    try:
        db.execute(HORIZON)
    except psycopg.errors.ObjectNotInPrerequisiteState as error:
        return "without shared memory for its slot" in str(error)
    return False


def lets_go(server, db):
    """A transaction in between makes new snapshots differ from old ones."""
    server.sql("SELECT pg_current_xact_id()")
    return not refused(db)


@pytest.fixture
def server(own_servers):
    # A worker of autovacuum would look for memory while it is away.
    server = own_servers("dynamic_shared_memory_type=mmap", "max_prepared_transactions=2", "autovacuum=off")
    server.sql("CREATE TABLE kept (id bigint PRIMARY KEY DEFAULT flake_next('twitter'))")
    server.sql(HORIZON)
    return server


def test_no_horizon_while_a_session_has_no_memory(server):
    with server.connect() as tailer:
        tailer.execute(HORIZON)
        with server.session() as writer:
            with no_memory(server):
                writer.execute("INSERT INTO kept DEFAULT VALUES")
            assert refused(tailer)
        wait_until(lambda: lets_go(server, tailer))


def test_nor_for_a_snapshot_that_sees_its_transaction_as_running(server):
    with server.connect() as tailer, server.connect() as other:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        with server.session() as writer:
            with no_memory(server):
                writer.execute("BEGIN; INSERT INTO kept DEFAULT VALUES")
            other.execute("SELECT")
            writer.execute("COMMIT")
        assert refused(other)
        other.execute("ROLLBACK")
        wait_until(lambda: lets_go(server, tailer))


def test_nor_while_a_transaction_of_its_own_is_prepared(server):
    with server.connect() as tailer:
        with server.session() as writer, no_memory(server):
            writer.execute("BEGIN; INSERT INTO kept DEFAULT VALUES; PREPARE TRANSACTION 'left'")
        assert refused(tailer)
        tailer.execute("COMMIT PREPARED 'left'")
        wait_until(lambda: lets_go(server, tailer))


def test_who_asks_needs_memory_too(server):
    with (
        server.connect() as tailer, no_memory(server),
        pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="could not find shared memory for horizons"),
    ):  # fmt: skip
        tailer.execute(HORIZON)
    server.sql(HORIZON)
