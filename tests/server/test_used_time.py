"""Time that was used once stays used, whoever says so and whatever is set, accepted, lost or put back afterwards."""

import contextlib
import shutil

import psycopg
import pytest

from clients import Made
from standing_clock import (
    at,
    attempt,
    attempts,
    cancelled,
    fail_over,
    insert,
    make,
    make_in_all,
    pass_through,
    running,
    server_at_0,
    sessions,
)  # fmt: skip

ACCEPT = "SELECT flake_accept_clock() < clock_timestamp() + interval '5 s'"
HOUR, HALF_AN_HOUR = 3600, 1800


def create_extension(server, database):
    server.sql(f"CREATE DATABASE {database}")
    with server.connect(dbname=database) as db:
        db.execute("CREATE EXTENSION flake")


def mark(server):
    return server.dir / "data" / "flake.mark"


def come_back(server, made, *databases, seconds):
    """The clock was ahead, is corrected, and accepted."""
    server.set_clock(at(seconds))
    assert server.value(ACCEPT)
    for database in databases:
        make_in_all(server, made, dbname=database)


def test_a_clock_that_is_accepted_above_another_databases_mark(own_servers):
    """Whose primary was half an hour ahead; the new one was an hour ahead, and restarted, when it came there first."""
    old, made, elsewhere = server_at_0(own_servers), Made(), Made()
    create_extension(old, "other")
    new = own_servers(standby_of=old, clock=at(0))
    old.set_clock(at(HALF_AN_HOUR))
    insert(old, made)
    fail_over(old, new)
    new.set_clock(running(10))
    make_in_all(new, elsewhere, dbname="other")
    new.set_clock(at(HOUR))
    make_in_all(new, elsewhere, dbname="other")
    new.restart()
    attempts(new, elsewhere, dbname="other")
    attempts(new, made)
    come_back(new, elsewhere, "other", seconds=20)
    pass_through(new, made, 21, HALF_AN_HOUR)


def test_start_above_while_the_clock_is_ahead(own_servers):
    """Time that it gave up is not given back with what the clock was ahead by."""
    server, made = server_at_0(own_servers), Made()
    server.set_clock(at(HOUR))
    make_in_all(server, made)
    server.restart()
    attempts(server, made)
    id = server.value("SELECT flake_max('2030-01-01 00:30:00Z')")
    assert server.value("SELECT flake_start_above(%s, 'twitter') > '2030-01-01 00:30:00Z'", id)
    server.set_clock(at(10))
    server.value(ACCEPT)
    server.set_clock(at(HALF_AN_HOUR - 1))
    with sessions(server) as dbs:
        assert ["twitter" in attempt(db, made) for db in dbs] == [True] * len(dbs)
    server.set_clock(at(HALF_AN_HOUR + 5))
    make_in_all(server, made)


@pytest.mark.parametrize("recreated", [False, True])
def test_another_number_and_back(own_servers, recreated):
    """Time that node 0 has used is in the file while the server is node 1; and in a page that node 1 has created again."""
    server, made = server_at_0(own_servers, "flake.node_count=2", "flake.node_id=0"), Made()
    create_extension(server, "other")
    server.set_clock(at(HOUR))
    make_in_all(server, made)
    server.set_clock(at(10))
    server.restart("flake.node_id=1")
    if recreated:
        server.sql("DROP TABLE kept; DROP EXTENSION flake; CREATE EXTENSION flake")
    attempts(server, Made())
    server.restart("flake.node_id=0")
    database = "postgres" if recreated else "other"
    attempts(server, made, dbname=database)
    pass_through(server, made, 20, HOUR, dbname=database)


def test_a_copy_of_the_file_that_is_put_back(own_servers):
    """After a clock that was ahead was accepted, so that file and page know of later time; and the clock is set back."""
    server, made = server_at_0(own_servers), Made()
    server.set_clock(at(HOUR))
    make_in_all(server, made)
    come_back(server, made, "postgres", seconds=10)
    kept = server.base / "kept.mark"
    shutil.copy2(mark(server), kept)
    server.set_clock(at(20))
    make_in_all(server, made)

    def put_back():
        shutil.copyfile(kept, mark(server))
        server.set_clock(at(14))

    server.restart(while_stopped=put_back)
    pass_through(server, made, 14, 20)


def test_a_file_that_is_deleted_after_the_clock_was_accepted(own_servers):
    """The page knows what was given back, so nobody waits for an hour."""
    server, made = server_at_0(own_servers), Made()
    server.set_clock(at(HOUR))
    make_in_all(server, made)
    come_back(server, made, "postgres", seconds=10)
    server.restart(while_stopped=mark(server).unlink)
    server.set_clock(running(20))
    make_in_all(server, made)


def test_start_above_reaches_sessions_that_go_on(own_servers):
    """Also where the clock is set back afterwards, into time that was granted to them."""
    server, made = server_at_0(own_servers), Made()
    with server.connect() as db, server.connect() as another:
        server.set_clock(at(10))
        make(db, made)
        id, = another.execute("SELECT flake_min(clock_timestamp() + interval '1.5 s')").fetchone()
        another.execute(f"SELECT flake_start_above({id}, 'twitter')")
        for seconds in [10.9, 9, 10.5]:
            server.set_clock(at(seconds))
            assert "twitter" in attempt(db, made)
        # Granted time is given up too.
        server.set_clock(at(13))
        assert attempt(db, made) == []


def test_start_above_waits_for_transactions(own_servers):
    """It says for whose, and can be canceled; a tick that somebody has only asked for does not matter."""
    server = server_at_0(own_servers)
    server.sql("""SELECT flake_create_layout('ages', '{"epoch": "2020-01-01T00:00:00Z", "tick": "300000000s", "fields": [
        {"name": "t", "bits": 3, "role": "timestamp"}, {"name": "w", "bits": 10, "role": "worker"},
        {"name": "s", "bits": 16, "role": "sequence"}]}')""")
    with server.connect() as db, contextlib.suppress(psycopg.Error), cancelled(db):
        db.execute("SELECT flake_next('ages')")
    server.set_clock("2030-01-01 00:00:10")
    above = "SELECT flake_start_above(flake_max(clock_timestamp()), 'twitter')"
    with server.connect() as writer, server.connect() as operator:
        notices = []
        operator.add_notice_handler(lambda notice: notices.append(notice.message_detail))
        writer.execute("BEGIN; SELECT flake_next('twitter')")
        with pytest.raises(psycopg.errors.QueryCanceled), cancelled(operator, 2):
            operator.execute(above)
        assert notices == [f"They belong to the processes {writer.info.backend_pid}."]
        writer.execute("COMMIT")
        operator.execute(above)


def test_a_database_under_the_number_of_another_one(own_servers):
    """Nobody believes that the page of the former one is its page."""
    old, made = server_at_0(own_servers), Made()
    create_extension(old, "template")
    old.sql("CREATE DATABASE x TEMPLATE template OID = 50000")
    new = own_servers(standby_of=old, clock=at(0))
    old.set_clock(at(10))
    make_in_all(old, Made(), dbname="x")
    old.sql("DROP DATABASE x")
    old.sql("CREATE DATABASE x TEMPLATE template OID = 50000")
    make_in_all(old, made, dbname="x")
    old.sql("CREATE TABLE plain ()")
    fail_over(old, new)
    pass_through(new, made, 2, 10, dbname="x")


def test_the_mark_of_a_database_that_is_not_logged(own_servers):
    server = server_at_0(own_servers)
    server.sql("ALTER SEQUENCE flake_mark SET UNLOGGED")
    with server.connect() as db:
        error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, "SELECT flake_next('twitter')").value.diag
        assert error.message_primary == 'sequence "flake_mark" of extension "flake" is not logged'
        db.execute("ALTER SEQUENCE flake_mark SET LOGGED")
        server.set_clock(running(0))
        db.execute("SELECT flake_next('twitter')")


def test_a_horizon_ahead_of_the_clock_that_is_taken_back(own_servers):
    """It binds no other server any more: a copy with a number of its own makes IDs at once."""
    server = server_at_0(own_servers, "flake.node_count=32", "flake.node_id=0")
    server.set_clock(at(HOUR))
    server.sql("INSERT INTO kept DEFAULT VALUES; SELECT flake_horizon()")
    server.set_clock(at(10))
    server.value(ACCEPT)
    server.sql("INSERT INTO kept DEFAULT VALUES")
    copy = own_servers("flake.node_id=7", copy_of=server, clock=at(20))
    copy.launch()
    make_in_all(copy, Made())
