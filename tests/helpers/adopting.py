"""Databases with tables to adopt, and sequences that were adopted."""

import hashlib

import psycopg
import pytest

# As an application needs it that calls nextval or currval itself.
PATH = "public, flake_sequences, pg_catalog"
# IDs of layout twitter are above, and numbers of sequences below.
LARGE = 1 << 60
ORDERS = "CREATE TABLE orders (id bigserial PRIMARY KEY, v int); INSERT INTO orders (v) SELECT generate_series(1, 10)"
IS_ID = f"INSERT INTO orders (v) VALUES (1) RETURNING id > {LARGE} AND lastval() = id"
RANGE = "SELECT seqmin, seqmax, seqstart, seqincrement, seqcache, seqcycle FROM pg_sequence WHERE seqrelid = %s::regclass"


def code(layout):
    """The number that stands for a layout in the range of a sequence."""
    return 1 << 52 | int.from_bytes(hashlib.sha256(layout.encode()).digest()[:8], "big") >> 12


def make(server):
    """Makes roles, and the database that others are copies of."""
    server.sql("CREATE ROLE app; CREATE ROLE keeper; CREATE ROLE reader")
    server.sql("CREATE DATABASE made")
    with server.session(dbname="made") as db:
        db.execute("CREATE EXTENSION flake; CREATE EXTENSION flake_sequences; GRANT ALL ON SCHEMA public TO PUBLIC")
    return server


@pytest.fixture(scope="module")
def server(servers):
    return make(servers())


@pytest.fixture
def db(server):
    """A session in a database of its own, which is dropped after the test."""
    server.sql("CREATE DATABASE test TEMPLATE made")
    with server.session(dbname="test") as db:
        yield db
    server.sql("DROP DATABASE test WITH (FORCE)")


def one(db, query, *parameters):
    return db.execute(query, parameters or None).fetchone()


def state(db, statement):
    """Returns the SQLSTATE of an error."""
    return pytest.raises(psycopg.Error, db.execute, statement).value.sqlstate


def adopt(db, relation="orders", layout="twitter"):
    """Adopts it, and returns the statement that undoes it."""
    return one(db, f"CALL flake_adopt('{relation}', '{layout}')")[0]


def is_closed(db, sequence="orders_id_seq", layout="twitter"):
    number = code(layout)
    return one(db, RANGE, sequence) == (-number - 1, -number, -number, 1, 1, False)
