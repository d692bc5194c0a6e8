"""Values that are too long, on a server that is short of memory: errors are the user's, and come before the value is copied.
test_calls.py draws arguments of every function, and test_refused_memory.py how much memory there is."""

import pathlib

import psycopg
import pytest

import databases
from databases import ENCODINGS

# The memory limit of a server process in bytes, including the library and shared memory.
MEMORY = 400_000 * 1024


OBJECTS = """
    SELECT p.oid::regproc::text, array(SELECT format_type(t, NULL) FROM unnest(proargtypes::oid[]) t), proretset
    FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake') AND prokind = 'f'"""
VALIDATOR = "flake_internal.flake_layout_validator"


@pytest.fixture(scope="module")
def server(servers):
    """A server whose processes have little memory, with a database for each encoding whose owner is not a superuser."""
    server = servers("shared_buffers=16MB", extension=False)
    databases.create(server)
    for encoding in ENCODINGS:
        with databases.connect(server, encoding) as db:
            db.execute("""SELECT flake_create_layout('mine', '{"like": "twitter", "text": "base62"}');
                SELECT flake_create_layout('kinds', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
                    {"name": "t", "bits": 41, "role": "timestamp", "reversed": true}, {"name": "k", "bits": 3, "role": "tag"},
                    {"name": "w", "bits": 8, "role": "worker"}, {"name": "s", "bits": 12, "role": "sequence"}]}')""")
    server.environment["SERVER_ENV"] = f"prlimit --as={MEMORY}"
    # A server with assertions writes long constants as text, which needs more memory than it has here.
    if server.value("SHOW debug_assertions") == "on":
        server.restart("debug_write_read_parse_plan_trees=off")
    else:
        server.restart()
    postmaster = (server.dir / "data" / "postmaster.pid").read_text().split()[0]
    limits = pathlib.Path(f"/proc/{postmaster}/limits").read_text()
    assert f"Max address space         {MEMORY} " in limits
    return server


E9 = "repeat(repeat(chr(233), 1000), 20000)"
FIELDS = """(SELECT '{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": ['
             || string_agg('{"name": "f' || n || '", "bits": 1, "role": "random"}', ',') || ']}' FROM generate_series(1, %s) n)"""
# Calls with values that are too long, and their SQLSTATEs.
LONG = [
    (f"SELECT flake_from_text({E9})", "22P02"),
    (f"SELECT flake_from_text({E9}, 'base64id')", "22P02"),
    ("SELECT flake_from_text(repeat(repeat('1', 1000), 20000))", "22P02"),
    (f"SELECT ({E9})::sno", "22P02"),
    (f"SELECT sno_decode({E9})", "22P02"),
    (f"SELECT flake_timestamp(1, {E9})", "22023"),
    ("SELECT flake_timestamp(1, repeat('x', 3000000))", "22023"),
    ("SELECT flake_timestamp(1, repeat(repeat('x', 1000), 20000))", "22023"),
    (f"SELECT flake_next({E9})", "22023"),
    (f"SELECT flake_next({E9}, 1)", "22023"),
    (f"SELECT flake_batch({E9}, 3)", "22023"),
    (f"SELECT flake_decode(1, {E9})", "22023"),
    (f"SELECT flake_min(now(), {E9})", "22023"),
    (f"SELECT flake_make(now(), '{{}}', {E9})", "22023"),
    (f"SELECT flake_create_layout({E9}, '{{\"like\": \"si\"}}')", "22023"),
    (f"SELECT flake_drop_layout({E9})", "22023"),
    ("SELECT flake_create_layout('new', to_jsonb(repeat('x', 10000000)))", "54000"),
    ("SELECT flake_make(now(), jsonb_build_object(repeat('x', 10000000), 1))", "54000"),
    ("SELECT flake_make(now(), (SELECT jsonb_object_agg('k' || n, n) FROM generate_series(1, 50000) n))", "54000"),
    (f"SELECT {VALIDATOR}(ARRAY['definition=' || {E9}], 'pg_foreign_server'::regclass)", "22023"),
    (f"SELECT {VALIDATOR}(array_fill('x'::text, ARRAY[5000000]), 'pg_foreign_server'::regclass)", "22023"),
    (f"SELECT {VALIDATOR}(ARRAY['definition=' || {FIELDS % 60000}], 'pg_foreign_server'::regclass)", "22023"),
    (f"SELECT {VALIDATOR}(ARRAY['definition=' || {FIELDS % 2000}], 'pg_foreign_server'::regclass)", "22023"),
    (f"SELECT flake_create_layout('new', ({FIELDS % 2000})::jsonb)", "54000"),
    (f"SELECT flake_create_layout('new', ({FIELDS % 200})::jsonb)", "22023"),
    ("SELECT flake_create_layout('new', jsonb_build_object('like', repeat('x', 10000)))", "22023"),
    ("SELECT flake_create_layout('new', jsonb_build_object(repeat('x', 10000), 1))", "22023"),
    ("SELECT flake_create_layout('new', jsonb_build_object('like', 'si', 'epoch', repeat('x', 10000)))", "22023"),
    ("SELECT flake_create_layout('new', jsonb_build_object('like', 'si', 'tick', repeat('x', 10000)))", "22023"),
    ("SELECT flake_make(now(), jsonb_build_object(repeat('x', 10000), 1))", "22023"),
    ("SELECT flake_make(now(), jsonb_build_object(repeat('x', 10000), -1))", "22003"),
    ("SELECT flake_make(now(), jsonb_build_object('worker', repeat('x', 10000)))", "22023"),
]


@pytest.mark.parametrize("encoding", ["UTF8", pytest.param("LATIN1", marks=pytest.mark.matrix)])
def test_long_texts_are_refused_before_they_are_copied(server, encoding):
    """Otherwise the caller would decide how much memory and time a call takes."""
    with databases.connect(server, encoding) as owner, server.connect(dbname=owner.info.dbname) as superuser:
        for statement, expected in LONG:
            db = superuser if VALIDATOR in statement else owner
            db.execute("SET statement_timeout = '30s'")
            error = pytest.raises(psycopg.Error, db.execute, statement).value
            assert error.sqlstate == expected, (statement, error)
            assert len(str(error)) < 2000
    assert "was terminated by signal" not in (server.dir / "server.log").read_text()
