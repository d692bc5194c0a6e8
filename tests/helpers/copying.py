"""COPY, and which of flake's functions it has called."""

import contextlib

# Calls in this transaction, of C functions too where track_functions is "all".
CALLS = """SELECT CASE WHEN funcname LIKE '%\\_in\\_copy' THEN 'twin' ELSE 'plain' END, sum(calls)::int
           FROM pg_stat_xact_user_functions WHERE funcname ~ '^(flake|sno)_next' GROUP BY 1"""
TRACKED = "track_functions=all"


@contextlib.contextmanager
def counted(db):
    """Runs a transaction, and yields how often it has called flake_next and sno_next, in `plain`, and how often their twins, in
    `twin`. Both are there when the block has ended."""
    calls = {}
    with db.transaction():
        before = dict(db.execute(CALLS).fetchall())
        yield calls
        after = dict(db.execute(CALLS).fetchall())
        calls.update({name: after.get(name, 0) - before.get(name, 0) for name in ("plain", "twin")})


def load(db, copy, lines):
    """Runs COPY … FROM STDIN with these lines."""
    with db.cursor() as cursor, cursor.copy(copy) as stream:
        stream.write("".join(f"{line}\n" for line in lines))


def called_by_copy(db, table, rows, options=""):
    """Loads the numbers from 1 on into the column n of a table. Returns the calls."""
    with counted(db) as calls:
        load(db, f"COPY {table} (n) FROM STDIN {options}", range(1, rows + 1))
    return calls


def distinct(db, table, column="id"):
    """Returns how many rows a table has, and how many different values."""
    return db.execute(f"SELECT count(*), count(DISTINCT {column}) FROM {table}").fetchone()


def in_schema(server):
    """A session with a schema of its own for its tables, which is dropped after the test."""
    with server.session() as db:
        db.execute("CREATE SCHEMA test; SET search_path = test, public; SET client_min_messages = warning")
        yield db
        db.execute("RESET ROLE; DROP SCHEMA test CASCADE")
