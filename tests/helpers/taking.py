"""Common parts of the tests of flake_take."""

import contextlib

import psycopg
import pytest

from waiting import wait_until

POSITIONS = "CREATE TABLE positions (name text, source regclass, last bigint, PRIMARY KEY (name, source))"
TAKE = "SELECT * FROM flake_take(NULL::outbox, 'positions', 'mailer', 100)"
LAST = "SELECT last FROM positions WHERE name = 'mailer'"


def prepared(server):
    """A session of a superuser, with an outbox of ten rows below the watermark, and a consumer that has taken none."""
    server.sql(f"""
        DROP SCHEMA public CASCADE; CREATE SCHEMA public; GRANT USAGE ON SCHEMA public TO PUBLIC;
        CREATE EXTENSION flake; {POSITIONS};
        CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), event text);
        INSERT INTO outbox (event) SELECT n FROM generate_series(1, 10) n;
        INSERT INTO positions VALUES ('mailer', 'outbox')""")
    wait_until_complete(server)
    with server.session() as db:
        yield db


def wait_until_complete(server, table="outbox", watermark="flake_min(flake_watermark(), 'twitter')"):
    wait_until(lambda: server.value(f"SELECT COALESCE(max(id) < {watermark}, true) FROM {table}"))


@contextlib.contextmanager
def role(server, name="consumer"):
    """A session of a role without privileges, which is dropped at the end of the block."""
    server.sql(f"CREATE ROLE {name} LOGIN")
    try:
        with server.session(user=name) as db:
            yield db
    finally:
        server.sql(f"SET lock_timeout = '10s'; DROP OWNED BY {name} CASCADE; DROP ROLE {name}")


def events(db, take=TAKE):
    return [int(row[-1]) for row in db.execute(take).fetchall()]


def refused(db, sqlstate, take=TAKE):
    error = pytest.raises(psycopg.Error, db.execute, take).value
    assert error.sqlstate == sqlstate, error
    return error
