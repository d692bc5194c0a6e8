"""A database that is upgraded while sessions still have the earlier library."""

import psycopg
import pytest

from clients import Made
from next_release import NEXT, provide
from standing_clock import at, make, pass_through, server_at_0, sessions
from test_replaced import has_the_old_one, replace
from used_database import CONTENT, USED

UPGRADE = f"ALTER EXTENSION flake UPDATE TO '{NEXT}'"
INSTALLED = "SELECT extversion FROM pg_extension WHERE extname = 'flake'"
OTHER_VERSION = "another version of the flake library is in use"


def refused(db, query):
    error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, query).value.diag
    return error.message_primary == OTHER_VERSION and error.message_hint.startswith("Restart the server")


def test_sessions_of_the_earlier_library_continue_until_the_restart(own_servers):
    """The later library divides IDs by another rule. Its sessions make no IDs until the server has been restarted. They can
    upgrade the extension before, which changes nothing for the others."""
    server, made = server_at_0(own_servers), Made()
    server.sql(USED)
    provide(server)
    server.set_clock(at(0.1))
    with sessions(server) as dbs:
        old, new = dbs[:3], dbs[3:]
        for db in old:
            make(db, made)
        before = old[0].execute(CONTENT).fetchone()
        replace(server, "division")
        for db in new:
            assert refused(db, "SELECT flake_next('twitter')")
        assert [has_the_old_one(db) for db in dbs] == [True] * 3 + [False] * 3
        new[0].execute(UPGRADE)
        assert refused(new[0], "SELECT flake_next('twitter')")
        for seconds in [2, 4]:
            server.set_clock(at(seconds))
            for db in old:
                make(db, made)
                assert db.execute(CONTENT).fetchone() == before
        assert old[1].execute(INSTALLED).fetchone() == (NEXT,)
    server.restart()
    with server.connect() as db:
        assert db.execute(INSTALLED).fetchone() == (NEXT,)
        assert db.execute(CONTENT).fetchone() == before
    pass_through(server, made, 4)
