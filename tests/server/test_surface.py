"""The whole SQL surface with extreme arguments, in databases of several encodings, on a server that is short of memory. Errors
are the user's, nothing ends the server, and everything can be canceled."""

import collections
import os
import pathlib
import random
import time

import psycopg
import pytest

import databases
import waiting
from databases import ENCODINGS

# For how many seconds each encoding is tried.
SECONDS = 2 * int(os.environ.get("FLAKE_SOAK", "1"))
# The memory limit of a server process in bytes, including the library and shared memory.
MEMORY = 400_000 * 1024
# After how many seconds a statement is canceled, and how many more seconds of work it may take to end.
TIMEOUT, LATEST = 0.2, 1

# Arguments as SQL, by type.
POOLS = {
    "bigint": ["0", "1", "-1", "9223372036854775807", "-9223372036854775808", "9007199254740992", "1541815603606036480"],
    "integer": ["0", "1", "-1", "255", "256", "32767", "32768", "65535", "65536", "2147483647", "-2147483648"],
    "boolean": ["true", "false"],
    "oid": ["0", "1", "4294967295", "'pg_foreign_server'::regclass", "'pg_class'::regclass"],
    "text": [
        "''", "' '", "'twitter'", "'TWITTER'", "'sno'", "'mine'", "'kinds'", "'uniqueid_v3'", "'discord'", "'nothing'", "'0'",
        "'-1'", "'18446744073709551616'", "'2222222222222222'", "'x222222222222222'", "'{}'", "chr(233)", "repeat(chr(233), 63)",
        r"convert_from('\xc3a9', 'UTF8')", "repeat('x', 63)", "repeat('x', 64)", "repeat('x', 3000000)",
        "repeat(repeat('x', 1000), 20000)", "repeat(repeat(chr(233), 1000), 20000)",
        "repeat('0', 1000)", "repeat(E'\\n', 100)", "E'a\\\\x00b'",
    ],
    "timestamptz": [
        "'infinity'", "'-infinity'", "'4714-11-24 00:00:00+00 BC'", "'294276-12-31 23:59:59.999999+00'", "now()", "'epoch'",
        "'2010-11-04 01:42:54.657Z'", "'2010-11-04 01:42:54.656999Z'", "'2080-07-10 17:30:30.209Z'", "'2024-02-29Z'",
    ],
    "tstzrange": [
        "'empty'", "'(,)'", "'[infinity,infinity]'", "'[-infinity,-infinity]'", "'(-infinity,infinity)'", "'[2024-01-01Z,)'",
        "'(,2024-01-01Z]'", "'(2024-01-01Z,2024-01-01 00:00:00.000001Z)'", "'[4714-11-24 00:00:00+00 BC,294276-12-31Z)'",
    ],
    "jsonb": [
        "'{}'", "'null'", "'[]'", "'1'", "'\"x\"'", "'{\"worker\": 1e400}'", "'{\"worker\": 1e131071}'", "'{\"worker\": -1}'",
        "'{\"worker\": 18446744073709551616, \"sequence\": 0.5}'", "'{\"like\": \"twitter\"}'", "'{\"like\": \"like\"}'",
        "'{\"like\": \"si\", \"epoch\": \"2024-01-01T00:00:00Z\", \"tick\": \"9223372036854775807s\"}'",
        "'{\"like\": \"si\", \"fields\": []}'", "'{\"fields\": {}, \"epoch\": 1, \"tick\": []}'",
        "(repeat('[', 1000) || repeat(']', 1000))::jsonb", "(repeat('{\"a\":', 1000) || '1' || repeat('}', 1000))::jsonb",
        "to_jsonb(repeat(chr(233), 10000000))", "jsonb_build_object(repeat('k', 10000000), 1)",
        "(SELECT jsonb_object_agg('k' || n, n) FROM generate_series(1, 30000) n)",
        "jsonb_build_object('epoch', '2024-01-01T00:00:00Z', 'tick', '1ms', 'fields', (SELECT jsonb_agg(jsonb_build_object("
        "'name', 'f' || n, 'bits', 1, 'role', 'random')) FROM generate_series(1, 5000) n))",
    ],
    "bytea": ["''", r"'\x00'", r"'\x00000000000000000000'", r"'\xffffffffffffffffffff'",
              r"decode(repeat('00', 1000000), 'hex')", "convert_to(repeat(repeat('x', 1000), 20000), getdatabaseencoding())"],
    "uuid": ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
             "'32323232-3232-3232-3232-323232323232'"],
    "sno": ["'2222222222222222'", "'xxxxxxxxxxxxxxxx'", "'brpk4q72xwf2m63l'", "sno_next()"],
    "text[]": [
        "'{}'", "'{NULL}'", "'{definition=}'", "'{a,b}'", "array_fill('x'::text, ARRAY[1000000])",
        "ARRAY['definition=' || repeat(repeat('[', 1000), 20000)]", "ARRAY['definition=' || repeat(chr(233), 100000)]",
        "ARRAY['definition={\"like\": \"si\"}']",
    ],
}  # fmt: skip
NAMES = {"timestamp with time zone": "timestamptz"}

OBJECTS = """
    SELECT p.oid::regproc::text, array(SELECT format_type(t, NULL) FROM unnest(proargtypes::oid[]) t), proretset
    FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
    WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake') AND prokind = 'f'"""
OPERATORS = """
    SELECT oprname, format_type(oprleft, NULL), format_type(oprright, NULL)
    FROM pg_operator o JOIN pg_depend d ON d.classid = 'pg_operator'::regclass AND d.objid = o.oid AND d.deptype = 'e'
    WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')"""
VALIDATOR = "flake_internal.flake_layout_validator"
# Other places that take a value: input and output, casts, aggregates, indexes.
OTHERS = [
    "SELECT octet_length(({text})::sno::text)", "SELECT ({bytea})::sno", "SELECT ({uuid})::sno", "SELECT ({sno})::bytea",
    "SELECT ({sno})::uuid", "SELECT min(s), max(s), count(DISTINCT s) FROM (VALUES (({sno})::sno), ({sno})) v(s)",
    "SELECT octet_length(sno_in(textout({text}))::text)",
    f"SELECT {VALIDATOR}" "(ARRAY['definition=' || left(({jsonb})::text, 1000000)], 'pg_foreign_server'::regclass)",
    "SELECT count(*) FROM flake_take(NULL::pg_class, ({oid})::oid, ({text})::text, ({integer})::integer)",
    "SELECT count(*) FROM flake_layouts", "SELECT count(*) FROM flake_check()", "SELECT count(*) FROM flake_stat",
    "SELECT flake_timestamp({bigint}, {text}), flake_timestamp({bigint}, {text})",
]  # fmt: skip


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


def connect(server, encoding):
    return databases.connect(server, encoding, options=f"-c statement_timeout={int(TIMEOUT * 1000)}")


def outcome(db, statement):
    """Returns the SQLSTATE of a call. Any error that is not the user's is a failure, and so is a late one."""
    began, before = time.monotonic(), waiting.processor_seconds(db)
    state, message = "00000", ""
    try:
        db.execute(statement)
    except psycopg.Error as error:
        state, message = error.sqlstate, str(error)
    assert state is not None, f"the server ended at: {statement}\n{message}"
    assert not state.startswith("XX"), f"{state} at: {statement}\n{message}"
    worked, lasted = waiting.processor_seconds(db) - before, time.monotonic() - began
    assert worked < TIMEOUT + LATEST and lasted < waiting.LONG, f"{worked} s of work in {lasted} s for: {statement}"
    return state


def calls(db):
    """Returns a template for each function and operator."""
    templates = list(OTHERS)
    for name, types, is_set in db.execute(OBJECTS).fetchall():
        types = [NAMES.get(type, type) for type in types]
        if all(type in POOLS for type in types):
            call = f"{name}({', '.join(f'({{{type}}})::{type}' for type in types)})"
            templates.append(f"SELECT count(*) FROM {call}" if is_set else f"SELECT octet_length({call}::text)")
    for name, left, right in db.execute(OPERATORS).fetchall():
        templates.append(f"SELECT ({{{left}}})::{left} {name} ({{{right}}})::{right}")
    return templates


def filled(template, chance):
    """Returns a template with an argument for each type in braces."""
    text, rest = "", template
    while "{" in rest:
        before, _, rest = rest.partition("{")
        type, _, rest = rest.partition("}")
        text += before + chance.choice(POOLS[type])
    return text + rest


@pytest.mark.parametrize("encoding", [
    pytest.param(encoding, marks=[] if encoding == "UTF8" else pytest.mark.matrix) for encoding in ENCODINGS
])  # fmt: skip
def test_extreme_arguments_raise_errors_only(server, encoding):
    seed = int(os.environ.get("FLAKE_SEED", time.time_ns()))
    chance = random.Random(seed)
    print("FLAKE_SEED =", seed)
    states = collections.Counter()
    with connect(server, encoding) as db:
        templates = calls(db)
        assert len(templates) > 60
        ends = time.monotonic() + SECONDS
        # On a slow machine, the first round may take longer.
        while not states or time.monotonic() < ends:
            for template in chance.sample(templates, len(templates)):
                state = outcome(db, filled(template, chance))
                states[state] += 1
        db.execute("SELECT flake_drop_layout(name) FROM flake_layouts WHERE source = 'custom' AND name NOT IN ('mine', 'kinds')")
    print(states)
    # Even with little memory most calls are answered, unless a slow machine leaves no time.
    assert states["00000"] > (states.total() - states["57014"]) / 5
    assert "was terminated by signal" not in (server.dir / "server.log").read_text()


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
    with connect(server, encoding) as owner, server.connect(dbname=owner.info.dbname) as superuser:
        for statement, expected in LONG:
            db = superuser if VALIDATOR in statement else owner
            db.execute("SET statement_timeout = '30s'")
            error = pytest.raises(psycopg.Error, db.execute, statement).value
            assert error.sqlstate == expected, (statement, error)
            assert len(str(error)) < 2000
