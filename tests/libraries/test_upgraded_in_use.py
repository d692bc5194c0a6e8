"""A database that is upgraded while sessions still have the library of before."""

import re

import psycopg
import pytest

from clients import KINDS, Made
from next_release import NEXT, provide
from standing_clock import at, attempt, make, pass_through, server_at_0, sessions
from test_replaced import has_the_old_one, replace
from used_database import CONTENT, USED

# A function whose C symbol the library of before does not have.
LATER = "flake_of_a_later_version"
DECLARE_LATER = f"""
    CREATE FUNCTION later(text) RETURNS bigint LANGUAGE c AS '$libdir/flake', 'flake_next';
    UPDATE pg_proc SET prosrc = '{LATER}' WHERE proname = 'later'"""


def test_sessions_go_on_while_the_database_is_upgraded(own_servers):
    """A function that their library does not have says so. Sessions of the later library make no IDs beside them, and say that
    the server has to be restarted; the extension can be upgraded before that."""
    server, made = server_at_0(own_servers), Made()
    server.sql(USED)
    provide(server)
    with sessions(server) as dbs:
        old, new = dbs[:3], dbs[3:]
        for db in old:
            make(db, made)
        before = old[0].execute(CONTENT).fetchone()
        replace(server, "share_rule")
        for db in new:
            error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, db.execute, "SELECT flake_next('twitter')").value
            assert error.diag.message_primary == "another version of the flake library is in use"
            assert error.diag.message_hint.startswith("Restart the server")
        assert [has_the_old_one(db) for db in dbs] == [True] * 3 + [False] * 3
        warned = []
        new[0].add_notice_handler(lambda notice: warned.append(notice.message_primary))
        new[0].execute(f"ALTER EXTENSION flake UPDATE TO '{NEXT}'")
        assert warned == ["another version of the flake library is in use"]
        assert new[0].execute("SELECT extversion FROM pg_extension WHERE extname = 'flake'").fetchone() == (NEXT,)
        new[0].execute(DECLARE_LATER)
        for seconds in [2, 4]:
            server.set_clock(at(seconds))
            for db in dbs:
                assert attempt(db, made) == ([] if db in old else list(KINDS))
                assert db.execute(CONTENT).fetchone() == before
                error = pytest.raises(psycopg.errors.UndefinedFunction, db.execute, "SELECT later('twitter')").value
                assert re.fullmatch(f'could not find function "{LATER}" in file ".*/flake.so"', error.diag.message_primary)
    server.restart()
    pass_through(server, made, 4)
