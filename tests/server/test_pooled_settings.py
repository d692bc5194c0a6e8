"""flake.max_clock_wait behind PgBouncer, as docs/reference/settings.md says."""

import contextlib

import psycopg
import pytest

from bouncer import bouncer
from waiting import wait_until


def wait(directory):
    with psycopg.connect(host=str(directory), port=6432, user="postgres", autocommit=True) as db:
        return db.execute("SHOW flake.max_clock_wait").fetchone()[0]


def survives(directory):
    with contextlib.suppress(psycopg.OperationalError):
        return bool(wait(directory))
    return False


def test_a_setting_reaches_the_next_client_unless_it_is_of_the_transaction_or_role(own_servers):
    server = own_servers()
    with bouncer(server, "transaction", 5, 1) as directory:
        there = {"host": str(directory), "port": 6432, "user": "postgres", "autocommit": True}
        with psycopg.connect(**there) as db:
            db.execute("SELECT flake_next('twitter')")
            db.execute("BEGIN; SET LOCAL flake.max_clock_wait = '5s'")
            assert db.execute("SHOW flake.max_clock_wait").fetchone() == ("5s",)
            db.execute("COMMIT")
        assert wait(directory) == "1s"
        with psycopg.connect(**there) as db:
            db.execute("SET flake.max_clock_wait = '5min'")
        assert wait(directory) == "5min"
        with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter"):
            psycopg.connect(**there, options="-c flake.max_clock_wait=5s")
        server.sql("ALTER ROLE postgres SET flake.max_clock_wait = '7s'")
        server.sql("""SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                      WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()""")
        # PgBouncer may hand a connection out before it notices that its session has ended.
        wait_until(lambda: survives(directory))
        assert wait(directory) == "7s"
