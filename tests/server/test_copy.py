"""COPY inserts many rows at a time although their IDs are defaults: it calls twins of flake_next and sno_next that are STABLE."""

import ctypes
import ctypes.util
import itertools
import json
import re

import psycopg
import pytest

from copying import TRACKED, called_by_copy, counted, distinct, in_schema, load

ROWS = 3000
# The type and the default of a key.
DEFAULTS = [
    ("bigint", "flake_next('twitter')"),
    ("bigint", "flake_next('si')"),
    ("bigint", "flake_next('tagged', 3)"),
    ("sno", "sno_next()"),
    ("sno", "sno_next(7)"),
    ("sno", "sno_next(7, 5)"),
    ("own_id", "flake_next('twitter')"),
    ("own_id", None),
    ("text", "'usr_' || flake_next('twitter')"),
    ("bigint", "made_in_sql()"),
    ("bigint", "moved(flake_next('twitter'))"),
]
TABLE = "CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), n int)"
FAST, SLOW = {"plain": 0, "twin": 5}, {"plain": 5, "twin": 0}


@pytest.fixture(scope="module")
def server(servers):
    server = servers(TRACKED)
    tagged = {
        "epoch": "2024-01-01T00:00:00Z", "tick": "1ms",
        "fields": [{"name": role, "bits": bits, "role": role}
                   for role, bits in [("timestamp", 41), ("tag", 3), ("worker", 7), ("sequence", 12)]],
    }  # fmt: skip
    server.sql("SELECT flake_create_layout('tagged', %s)", json.dumps(tagged))
    server.sql("""CREATE DOMAIN own_id AS bigint DEFAULT flake_next('twitter');
                  CREATE FUNCTION made_in_sql() RETURNS bigint LANGUAGE sql AS 'SELECT flake_next(''twitter'')';
                  CREATE FUNCTION moved(id bigint) RETURNS bigint IMMUTABLE LANGUAGE sql AS 'SELECT id + 1'""")
    return server


@pytest.fixture
def db(server):
    yield from in_schema(server)


@pytest.mark.matrix
@pytest.mark.parametrize(("type", "default"), DEFAULTS)
def test_copy_inserts_many_rows_at_a_time(server, db, type, default):
    """The WAL has records of many rows, and none of a single row. If this fails on a new version of PostgreSQL only, read its
    BeginCopyFrom(): the memory context in which it plans defaults may have another name."""
    db.execute(f"CREATE TABLE rows (id {type} {f'DEFAULT {default}' if default else ''}, n int, PRIMARY KEY (id))")
    # The first COPY of a session also makes its first ID.
    assert called_by_copy(db, "rows", 5) == FAST
    start = db.execute("SELECT pg_current_wal_insert_lsn()").fetchone()[0]
    assert called_by_copy(db, "rows", ROWS) == {"plain": 0, "twin": ROWS}
    end, file = db.execute("SELECT pg_current_wal_insert_lsn(), pg_relation_filenode('rows')").fetchone()
    assert distinct(db, "rows") == (ROWS + 5, ROWS + 5)
    # Everything before is on disk then.
    db.execute("SELECT pg_switch_wal()")
    written = server.run("pg_waldump", "--path", server.dir / "data/pg_wal", "--start", start, "--end", end).stdout
    records = re.findall(rf"desc: (\S+)(?: ntuples:)? (\d+).* rel \d+/\d+/{file}\b", written)
    assert sum(int(rows) for kind, rows in records if kind.startswith("MULTI_INSERT")) == ROWS
    assert "INSERT" not in {kind.split("+")[0] for kind, _ in records}


def test_other_statements_call_no_twin(db):
    db.execute(TABLE)
    with counted(db) as calls:
        db.execute("INSERT INTO rows (n) VALUES (1), (2)")
        db.execute("INSERT INTO rows (n) SELECT generate_series(3, 10)")
        db.execute("UPDATE rows SET id = DEFAULT WHERE n <= 5")
        db.execute("SELECT flake_next('twitter'), sno_next()")
        load(db, "COPY rows (id, n) FROM STDIN", ["1\t1"])
    assert calls == {"plain": 17, "twin": 0}


def test_a_volatile_default_beside_an_id_is_evaluated_row_by_row(db):
    """It looks at the table that is loaded."""
    db.execute("""
        CREATE FUNCTION seen() RETURNS bigint VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT count(*) FROM rows); END';
        CREATE FUNCTION layout() RETURNS text VOLATILE LANGUAGE plpgsql AS
            'BEGIN RETURN CASE seen() % 2 WHEN 0 THEN ''twitter'' ELSE ''si'' END; END';
        CREATE TABLE rows (id bigint DEFAULT flake_next('twitter'), before bigint DEFAULT seen(), n int)""")
    assert called_by_copy(db, "rows", 5) == FAST
    assert db.execute("SELECT before FROM rows ORDER BY n").fetchall() == [(n,) for n in range(5)]
    # So is one in the arguments.
    db.execute("DROP TABLE rows; CREATE TABLE rows (id bigint DEFAULT flake_next(layout()), n int)")
    called_by_copy(db, "rows", 5)
    assert db.execute("SELECT id < 9007199254740992 FROM rows ORDER BY n").fetchall() == [(n % 2 == 1,) for n in range(5)]


def test_a_schema_on_the_callers_path_changes_nothing(server, db):
    """The twin is in flake's own schema, wherever the extension is, and whatever else has its name."""
    server.sql("CREATE DATABASE elsewhere")
    with server.connect(dbname="elsewhere") as db:
        db.execute("""
            CREATE SCHEMA "S ""ß"; CREATE EXTENSION flake SCHEMA "S ""ß"; CREATE SCHEMA evil;
            CREATE FUNCTION evil.flake_next(text) RETURNS bigint LANGUAGE sql AS 'SELECT 1::bigint';
            CREATE TABLE rows (id bigint PRIMARY KEY DEFAULT "S ""ß".flake_next('twitter'), n int);
            SET search_path = evil""")
        assert called_by_copy(db, "public.rows", 5) == FAST


def test_a_database_without_the_twins_loads_row_by_row(server):
    """So does one whose superuser has renamed something."""
    server.sql("CREATE DATABASE without")
    with server.connect(dbname="without") as db:
        db.execute(f"CREATE EXTENSION flake; {TABLE}")
        for change, back in [
            (
                "ALTER FUNCTION flake_internal.flake_next_in_copy(text, internal) RENAME TO x",
                "ALTER FUNCTION flake_internal.x RENAME TO flake_next_in_copy",
            ),
            ("ALTER SCHEMA flake_internal RENAME TO x", "ALTER SCHEMA x RENAME TO flake_internal"),
            ("ALTER FUNCTION flake_next(text) RENAME TO make", "ALTER FUNCTION make(text) RENAME TO flake_next"),
        ]:  # fmt: skip
            assert called_by_copy(db, "rows", 5) == FAST
            db.execute(change)
            before = distinct(db, "rows")[0]
            assert called_by_copy(db, "rows", 5)["twin"] == 0
            assert distinct(db, "rows") == (before + 5, before + 5)
            db.execute(back)


# Privileges, and calls by users.


@pytest.mark.parametrize(("revoked", "calls"), [
    ("flake_next(text), flake_next(text, integer)", None),
    ("flake_internal.flake_next_in_copy(text, internal)", SLOW),
    ("flake_internal.flake_next_support(internal)", FAST),
])  # fmt: skip
def test_a_role_copies_where_it_may_call_the_function(server, db, revoked, calls):
    """A database may grant its roles some functions by name. They load tables all the same; and a role that may not call
    flake_next may not do so by COPY."""
    db.execute(f"CREATE ROLE loader; {TABLE}; GRANT USAGE ON SCHEMA test TO loader; GRANT SELECT, INSERT ON rows TO loader")
    db.execute(f"REVOKE EXECUTE ON FUNCTION {revoked} FROM PUBLIC; SET ROLE loader")
    try:
        if calls:
            assert called_by_copy(db, "rows", 5) == calls
            db.execute("RESET ROLE")
            assert called_by_copy(db, "rows", 5) == FAST
        else:
            for statement in ["INSERT INTO rows (n) VALUES (1)", "COPY rows (n) FROM STDIN"]:
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function flake_next"):
                    load(db, statement, [1]) if "COPY" in statement else db.execute(statement)
    finally:
        db.execute(f"RESET ROLE; GRANT EXECUTE ON FUNCTION {revoked} TO PUBLIC; DROP OWNED BY loader; DROP ROLE loader")


# A twin with all arguments but the last one.
TWINS = [("flake_next", "'twitter'"), ("flake_next", "'tagged', 1"), ("sno_next", "1"), ("sno_next", "1, 1")]
VALUES = [
    "NULL", "0", "''", "now()", "NULL::internal", "0::internal", "''::internal", "CAST(0::bigint AS internal)",
    "internal_in('0')",
]  # fmt: skip


@pytest.mark.parametrize(("function", "given"), TWINS)
def test_nobody_can_call_a_twin(db, function, given):
    """A superuser may use the schema, but has no value for the last argument."""
    twin = f"flake_internal.{function}_in_copy({given}"
    db.execute(TABLE)
    calls = [f"SELECT {twin}, {value})" for value in VALUES] + [
        f"SELECT {twin})", f"CREATE TABLE t (id bigint DEFAULT {twin}, NULL))",
        f"ALTER TABLE rows ADD COLUMN x bigint DEFAULT {twin}, NULL)",
        f"CREATE FUNCTION f(internal) RETURNS bigint LANGUAGE sql AS $$SELECT {twin}, $1)$$",
        f"DO $$DECLARE x internal; BEGIN PERFORM {twin}, x); END$$",
    ]  # fmt: skip
    # PostgreSQL may prepare a call, and refuses all values for it.
    for types, value in itertools.product(["", "(internal)"], ["NULL", "0", "''", "'0'"]):
        calls.append(f"PREPARE p{len(calls)}{types} AS SELECT {twin}, $1); EXECUTE p{len(calls)}({value})")
    for call in calls:
        state = pytest.raises(psycopg.Error, db.execute, call).value.sqlstate
        # Undefined function, invalid cast, unsupported, wrong type of a function, of a variable or of a value.
        assert state in ("42883", "42846", "0A000", "42P13", "42P18", "42804"), (call, state)
    for value, format in itertools.product([None, "", "0", 0], ["%s", "%b", "%t"]):
        state = pytest.raises(psycopg.Error, db.execute, f"SELECT {twin}, {format})", [value]).value.sqlstate
        assert state in ("42883", "0A000"), (value, format, state)


class Argument(ctypes.Structure):
    """PQArgBlock of libpq."""

    _fields_ = [("len", ctypes.c_int), ("isint", ctypes.c_int), ("content", ctypes.c_char_p)]


@pytest.mark.parametrize("length", [-1, 0, 8], ids=["null", "empty", "of 8 bytes"])
def test_the_protocols_function_calls_reach_no_twin(server, length):
    """A client can call a function by its OID, without a query."""
    oid = server.value("SELECT 'flake_internal.sno_next_in_copy(integer, internal)'::regprocedure::oid::bigint")
    library = ctypes.CDLL(ctypes.util.find_library("pq"))
    library.PQconnectdb.restype = library.PQfn.restype = ctypes.c_void_p
    library.PQerrorMessage.restype = ctypes.c_char_p
    connection = ctypes.c_void_p(library.PQconnectdb(f"host={server.dir} port=5432 user=postgres dbname=postgres".encode()))
    try:
        result, size = ctypes.create_string_buffer(100), ctypes.c_int()
        arguments = (Argument * 2)(Argument(4, 0, b"\0\0\0\1"), Argument(length, 0, bytes(8)))
        found = library.PQfn(connection, ctypes.c_int(oid), result, ctypes.byref(size), 0, arguments, 2)
        message = library.PQerrorMessage(connection).decode()
        library.PQclear(ctypes.c_void_p(found))
        assert "no binary input function available for type internal" in message
    finally:
        library.PQfinish(connection)
