"""Guarantees of a server hold in each of its databases, whichever one a command is run in.

Watermarks of one database and prepared transactions of another are in test_watermark.py, test_watermark_prepared.py and
test_watermark_restarts.py; marks are in test_mark.py, and watermarks of standbys in test_watermark_standby.py.
"""

import contextlib

import pytest

from clients import Made
from standing_clock import at, make, server_at_0
from watermark import OUTBOX, insert, watermark

DATABASES = ["postgres", "other"]
# Checks from the database of the command, and from the other one.
either = pytest.mark.parametrize("database", DATABASES)


@pytest.fixture
def server(own_servers):
    """A server whose clock stands still."""
    server = server_at_0(own_servers)
    server.sql("CREATE DATABASE other TEMPLATE postgres")
    return server


@contextlib.contextmanager
def session_of_each(server):
    with server.connect() as one, server.connect(dbname="other") as other:
        yield {"postgres": one, "other": other}


@either
def test_ids_of_all_databases_start_above(own_servers, database):
    server = own_servers()
    server.sql("CREATE DATABASE other TEMPLATE postgres")
    with session_of_each(server) as dbs:
        for db in dbs.values():
            db.execute("SELECT flake_batch('twitter', 10)")
        id, = dbs[database].execute("SELECT flake_max(clock_timestamp() + interval '0.5 s', 'twitter')").fetchone()
        dbs[database].execute("SELECT flake_start_above(%s, 'twitter')", (id,))
        for name, db in [*dbs.items(), *((name, server.connect(dbname=name)) for name in DATABASES)]:
            assert db.execute("SELECT flake_next('twitter')").fetchone()[0] > id, name


@either
def test_an_accepted_clock_counts_in_all_databases(server, database):
    """Sessions of both databases continue with new IDs, and no watermark is above them."""
    made = Made()
    with session_of_each(server) as dbs:
        for db in dbs.values():
            db.execute(OUTBOX)
        server.set_clock(at(3600))
        for db in dbs.values():
            make(db, made)
            watermark(db)
        server.set_clock(at(0.5))
        assert server.value("SELECT lead > interval '1 hour' - interval '10 s' FROM flake_stat")
        dbs[database].execute("SELECT flake_accept_clock()")
        server.set_clock(at(10))
        for db in dbs.values():
            make(db, made)
            db.execute("BEGIN")
        ids = {name: insert(db) for name, db in dbs.items()}
        server.set_clock(at(11))
        for name in DATABASES:
            with server.connect(dbname=name) as tailer:
                assert watermark(tailer) <= ids[name]


def test_statistics_and_findings_are_the_same_in_all_databases(own_servers):
    """They are the same in each database of a server."""
    server = own_servers("flake.node_id=1", "flake.node_count=4")
    server.sql("CREATE DATABASE other TEMPLATE postgres")
    stats = "SELECT ledger, node_id, node_count, sessions, issued, clock_changes, floor, generation FROM flake_stat"
    checks = "SELECT name, ok, detail FROM flake_check() WHERE name IN ('node number', 'settings', 'rates', 'lead', 'library')"
    for name in DATABASES:
        with server.session(dbname=name) as db:
            db.execute("SELECT count(flake_next('twitter')) FROM generate_series(1, 100)")
    with session_of_each(server) as dbs:
        for db in dbs.values():
            db.execute("SELECT flake_next('twitter')")
        told = [db.execute(stats).fetchall() for db in dbs.values()]
        (*ledger, opened, issued, _, _, _), = told[0]
        assert told[0] == told[1] and ledger == ["open", 1, 4] and opened == 2 and issued >= 200
        found = [db.execute(checks).fetchall() for db in dbs.values()]
        assert found[0] == found[1] and len(found[0]) == 5
