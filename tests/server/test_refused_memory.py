"""Every function where the system refuses memory: with arguments of up to 300 MB, and when only some bytes are left. The server
never ends. A call returns or raises an error, and works no longer than some seconds."""

import collections
import os
import random
import time

import psycopg
import pytest

import refusal
from databases import OBJECTS

# How often each call is tried, and the bytes of a large argument.
SOAK = int(os.environ.get("FLAKE_SOAK", "1"))
LEAST, SHORT, LONG = 1_000_000, 4_000_000, 300_000_000
# For how many seconds of the processor a call may work.
LATEST = 3
# How many elements an array has at most: PostgreSQL takes some seconds for more.
MOST = 2_000_000

# Arguments that are not large, by type.
USUAL = {
    "bigint": ["1", "1541815603606036480", "-1"], "integer": ["1"], "boolean": ["true", "false"],
    "oid": ["'pg_foreign_server'::regclass::oid", "'pg_user_mapping'::regclass::oid", "0::oid"],
    "regclass": ["'ids'::regclass", "'positions'::regclass"], "text": ["'twitter'::text", "'usr'::text", "'mine'::text"],
    "timestamp with time zone": ["now()"], "timestamp without time zone": ["now()::timestamp"], "date": ["now()::date"],
    "tstzrange": ["tstzrange(now(), NULL)"], "jsonb": ["'{\"sequence\": 1}'::jsonb", "'{\"like\": \"si\"}'::jsonb"],
    "bytea": ["decode('0102030405060708090a', 'hex')"], "uuid": ["'32323232-3232-3232-3232-323232323232'::uuid"],
    "sno": ["'brpk4q72xwf2m63l'::sno"], "text[]": ["'{}'::text[]"], "cstring": ["textout('brpk4q72xwf2m63l')"],
    "anyelement": ["NULL::ids"],
}  # fmt: skip
# Large ones, with their bytes and a number of elements.
LARGE = {
    "text": ["repeat('-', {bytes})", "repeat('7', {bytes})", "repeat('0', {bytes})", "repeat(chr(233), {bytes} / 2)",
             "'usr_' || repeat('0', {bytes})"],
    "cstring": ["textout(repeat('x', {bytes}))"],
    "bytea": ["decode(repeat('00', {bytes}), 'hex')"],
    "jsonb": ["to_jsonb(repeat('x', {bytes} / 2))", "jsonb_build_object(repeat('x', {bytes} / 2), 1)",
              "(SELECT jsonb_agg(n) FROM generate_series(1, {elements}) n)",
              "(SELECT jsonb_object_agg('k' || n, n) FROM generate_series(1, {elements}) n)",
              "jsonb_build_object('like', 'si', 'epoch', repeat('2', {bytes} / 2))"],
    "text[]": ["(SELECT array_agg(n || '=') FROM generate_series(1, {elements}) n)", "array_fill(NULL::text, ARRAY[{elements}])",
               "ARRAY['definition=' || repeat('[', {bytes})]", "ARRAY['layout=' || repeat('x', {bytes})]",
               "ARRAY['key1=' || repeat('0', {bytes})]"],
}  # fmt: skip

# PostgreSQL calls these when it plans, sorts, analyzes, sends, receives, and copies; test_copy.py has COPY.
INTERNAL = {
    "sno_recv", "sno_sortsupport", "sno_typanalyze", "flake_during_support", "sno_during_support",
    "flake_next_support", "flake_next_in_copy", "sno_next_in_copy",
}  # fmt: skip
OTHERS = [
    """PERFORM count(*) FROM ids
       WHERE flake_timestamp(id) >= now() - interval '1 day' AND flake_during(id, tstzrange(now(), NULL))""",
    "PERFORM count(*) FROM ids WHERE flake_timestamp(id, repeat('x', 100)) >= now()",
    "PERFORM count(*) FROM snos WHERE sno_timestamp(id) < now() AND sno_during(id, tstzrange(NULL, now()))",
    "PERFORM id FROM (SELECT id, row_number() OVER (ORDER BY id) FROM snos) s",
    "ANALYZE snos",
    "INSERT INTO ids SELECT FROM generate_series(1, 300)",
    "INSERT INTO ids SELECT flake_batch('twitter', 300)",
    "INSERT INTO snos SELECT sno_next() FROM generate_series(1, 300)",
    "PERFORM count(*) FROM flake_layouts, flake_keys, flake_stat, flake_open_transactions",
    "PERFORM * FROM flake_take(NULL::ids, 'positions', 'mailer', 10)",
    "PERFORM flake_create_layout('new', '{\"like\": \"si\"}'), flake_drop_layout('new')",
]  # fmt: skip


@pytest.fixture(scope="module")
def server(servers):
    server = servers(
        "fsync=off", "max_wal_size=4GB", "statement_timeout=2min", "lock_timeout=10s", "log_min_messages=fatal",
        # A call of flake_start_above lets IDs lead by years.
        "flake.max_lead=2147483647",
    )  # fmt: skip
    refusal.install(server)
    server.sql("""
        SELECT flake_create_layout('mine', '{"like": "twitter"}'), flake_create_key('usr', 'twitter');
        CREATE TABLE ids (id bigint PRIMARY KEY DEFAULT flake_next('twitter'));
        CREATE TABLE snos (id sno PRIMARY KEY DEFAULT sno_next());
        CREATE TABLE positions (name text, source regclass, last bigint, PRIMARY KEY (name, source));
        INSERT INTO ids SELECT FROM generate_series(1, 300); INSERT INTO snos SELECT FROM generate_series(1, 300);
        INSERT INTO positions VALUES ('mailer', 'ids');
        CREATE ROLE joe LOGIN; GRANT USAGE ON FOREIGN SERVER usr TO joe; GRANT ALL ON ALL TABLES IN SCHEMA public TO joe;
        GRANT USAGE ON SCHEMA flake_internal TO joe""")
    return server


@pytest.fixture(scope="module")
def uncached(servers):
    """A server whose malloc keeps no freed piece for requests of just its size, so that the last bytes serve one of any size."""
    server = servers("fsync=off", "log_min_messages=fatal")
    server.environment["SERVER_ENV"] = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"
    server.restart()
    refusal.install(server)
    return server


@pytest.fixture(scope="module")
def latin1(server):
    """A database whose characters are not UTF-8."""
    server.sql("CREATE DATABASE latin1 TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    other = server.of_client("postgres", "latin1", "")
    other.sql("CREATE EXTENSION flake; SELECT flake_create_layout('mine', '{\"like\": \"twitter\"}')")
    other.sql("SELECT flake_create_key('usr', 'twitter')")
    refusal.install(other)
    return other


class Caller:
    """A session that continues as another one when it has ended, and counts what its calls return."""

    def __init__(self, server, chance, user="postgres"):
        self.server, self.chance, self.user = server, chance, user
        self.states, self.slowest, self.db = collections.Counter(), (0, ""), None
        self.errors = {}

    def call(self, statement):
        """Runs a statement and undoes it. It may raise an error, or end its session by an error."""
        if self.db is None or self.db.closed:
            self.db = self.server.connect(user=self.user, autocommit=False)
        try:
            if self.chance.random() < 0.8:
                # The session has as much memory as it wants, and the library is loaded.
                self.db.execute("SELECT flake_explain(1)")
            self.db.execute(statement)
            state = "00000"
        except psycopg.Error as error:
            state = error.sqlstate
            self.errors[state] = str(error)
            if not state or state.startswith("XX"):
                raise AssertionError(f"{error} at: {statement}") from error
        self.states[state] += 1
        self.states["ended"] += self.db.closed
        if self.db.closed:
            return state
        self.db.rollback()
        seconds = self.db.execute("SELECT refused_seconds()").fetchone()[0]
        self.db.rollback()
        self.slowest = max(self.slowest, (seconds, statement))
        assert seconds < LATEST, f"{seconds} s of work for: {statement}"
        return state

    def survived(self):
        """Checks that the server and nearly all sessions have survived."""
        print(dict(self.states), "slowest:", self.slowest, self.errors)
        assert "was terminated by signal" not in (self.server.dir / "server.log").read_text()
        assert self.states["ended"] <= 1 + self.states.total() / 20


def calls(server):
    """Yields each function of the extension with its arguments' types."""
    rows = server.sql(OBJECTS)
    internal = {name.rpartition(".")[2] for name, types, _ in rows if "internal" in types}
    assert internal == INTERNAL, "OTHERS must have a statement in which PostgreSQL calls it"
    functions = [(name, types) for name, types, _ in rows if "internal" not in types]
    unknown = {type for _, types in functions for type in types} - USUAL.keys()
    assert not unknown and len(functions) > 60, f"USUAL lacks values of {unknown}"
    return functions


def statements(server, chance, longest):
    """Yields each call, once with each large argument in each place, and once with none."""
    for name, types in calls(server):
        places = [(place, large) for place, type in enumerate(types) for large in LARGE.get(type, [])]
        for place, large in [(None, None), *places]:
            size = int(LEAST * (longest / LEAST) ** chance.random())
            arguments = [chance.choice(USUAL[type]) for type in types]
            if place is not None:
                arguments[place] = large.format(bytes=size, elements=min(size // 16, MOST))
            yield refused(name, arguments, left(chance))


def left(chance):
    """How many bytes are left to a call."""
    return chance.choice([0, chance.randrange(20_000), int(2 ** chance.uniform(10, 22))])


def refused(name, arguments, left):
    """A call that the system refuses memory from the moment when it has its arguments."""
    if not arguments:
        return f"SELECT {name}() WHERE refusing(true, {left})"
    arguments[-1] = f"refusing({arguments[-1]}, {left})"
    return f"SELECT {name}({', '.join(arguments)})"


@pytest.mark.matrix
@pytest.mark.long
@pytest.mark.parametrize("longest", [SHORT, LONG], ids=["short", "long"])
def test_no_call_ends_the_server(server, longest):
    seed = int(os.environ.get("FLAKE_SEED", time.time_ns()))
    print("FLAKE_SEED =", seed)
    chance = random.Random(seed)
    if server.value("SHOW debug_assertions") == "on":
        longest = min(longest, LONG // 10)  # such a server fills memory before and after its use, which takes half an hour
    for user in ["postgres", "joe"]:
        caller = Caller(server, chance, user)
        for _ in range(SOAK):
            for statement in statements(server, chance, longest):
                caller.call(statement)
            for other in OTHERS:
                caller.call(f"DO $do$ BEGIN PERFORM refusing(true, {left(chance)}); {other}; END $do$")
        caller.survived()


SERVERS = "refusing('pg_foreign_server'::regclass::oid, {left})"
FIELDS = """(SELECT '{{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": ['
             || string_agg('{{"name": "f' || n || '", "bits": 1, "role": "random"}}', ',') || ']}}'
             FROM generate_series(1, %s) n)"""
OPTIONS = "array_fill('a=b'::text, ARRAY[1000000]), refusing('pg_foreign_server'::regclass::oid, {left}))"
# Calls that need little memory, because they look at lengths first, and what they raise or return.
AT_ONCE = [
    ("flake_unseal(repeat('-', 20000000), refusing('usr'::text, {left}))", "00000"),
    ("flake_unseal_or_error(repeat('-', 20000000), refusing('usr'::text, {left}))", "22P02"),
    ("flake_from_text(refusing(repeat('0', 20000000), {left}))", "22P02"),
    (f"flake_internal.flake_key_validator({OPTIONS}", "22023"),
    (f"flake_internal.flake_layout_validator({OPTIONS}", "22023"),
    ("flake_make(now(), refusing(to_jsonb(repeat('x', 20000000)), {left}))", "54000"),
    ("flake_create_layout('new', refusing(jsonb_build_object('like', repeat('x', 20000000)), {left}))", "54000"),
    ("sno_decode(refusing(repeat('2', 20000000), {left}))", "22P02"),
    ("sno_encode(refusing(decode(repeat('00', 20000000), 'hex'), {left}))", "22023"),
    ("flake_import_key('new', refusing('twitter'::text, {left}), decode(repeat('00', 20000000), 'hex'))", "22023"),
    ("sno_in(refusing(textout({text}), {left}))", "22P02"),
    ("flake_timestamp(1, refusing({text}, {left}))", "22023"),
    ("flake_next(refusing({text}, {left}))", "22023"), ("flake_next({text}, refusing(1, {left}))", "22023"),
    ("flake_batch({text}, refusing(3, {left}))", "22023"), ("flake_decode(1, refusing({text}, {left}))", "22023"),
    ("flake_min(now(), refusing({text}, {left}))", "22023"), ("flake_drop_layout(refusing({text}, {left}))", "22023"),
    ("flake_make(now(), jsonb '{{}}', refusing({text}, {left}))", "22023"),
    ("flake_create_layout({text}, refusing('{{\"like\": \"si\"}}'::jsonb, {left}))", "22023"),
    ("flake_make(now(), refusing((SELECT jsonb_object_agg('k' || n, n) FROM generate_series(1, 50000) n), {left}))", "54000"),
    (f"flake_internal.flake_layout_validator(ARRAY['definition=' || {{text}}], {SERVERS})", "22023"),
    (f"flake_internal.flake_layout_validator(ARRAY['definition=' || {FIELDS % 2000}], {SERVERS})", "22023"),
    (f"flake_create_layout('new', refusing({FIELDS % 2000}::jsonb, {{left}}))", "54000"),
    (f"flake_create_layout('new', refusing({FIELDS % 200}::jsonb, {{left}}))", "22023"),
    # Values that errors show in part.
    ("flake_create_layout('new', refusing(jsonb_build_object('like', {part}), {left}))", "22023"),
    ("flake_create_layout('new', refusing(jsonb_build_object({part}, 1), {left}))", "22023"),
    ("flake_create_layout('new', refusing(jsonb_build_object('like', 'si', 'epoch', {part}), {left}))", "22023"),
    ("flake_create_layout('new', refusing(jsonb_build_object('like', 'si', 'tick', {part}), {left}))", "22023"),
    ("flake_make(now(), refusing(jsonb_build_object({part}, 1), {left}))", "22023"),
    ("flake_make(now(), refusing(jsonb_build_object({part}, -1), {left}))", "22003"),
    ("flake_make(now(), refusing(jsonb_build_object('worker', {part}), {left}))", "22023"),
]  # fmt: skip
TEXTS = {"text": "repeat(repeat(chr(233), 1000), 20000)", "part": "repeat('x', 10000)"}


@pytest.mark.matrix
@pytest.mark.parametrize(("call", "state"), AT_ONCE, ids=[call for call, _ in AT_ONCE])
@pytest.mark.parametrize("encoding", ["UTF8", "LATIN1"])
def test_lengths_come_first(server, latin1, encoding, call, state):
    """Otherwise the caller would decide how much memory and time a call takes. Its error is short, too."""
    caller = Caller(latin1 if encoding == "LATIN1" else server, random.Random(1))
    call = call.format(left=5_000_000, **TEXTS)
    assert [caller.call(f"SELECT {call}") for _ in range(3)] == [state] * 3, caller.errors
    assert all(len(error) < 2000 for error in caller.errors.values())
    caller.survived()


@pytest.mark.parametrize("call", ids=["server", "mapping", "layout"], argvalues=[
    f"flake_key_validator({OPTIONS}", f"flake_key_validator({OPTIONS.replace('foreign_server', 'user_mapping')}",
    f"flake_layout_validator({OPTIONS}",
])  # fmt: skip
def test_rights_come_before_lengths(server, call):
    caller = Caller(server, random.Random(1), "joe")
    assert caller.call(f"SELECT flake_internal.{call.format(left=5_000_000)}") == "42501", caller.errors
    caller.survived()


@pytest.mark.matrix
@pytest.mark.parametrize(("before", "statement"), ids=["error", "loading", "random"], argvalues=[
    ("SELECT flake_explain(1)", "SELECT flake_from_text(refusing('-'::text, {left}))"),
    ("SELECT", "SELECT flake_from_text(refusing('-'::text, {left}))"),
    ("SELECT flake_next('twitter')", "SELECT flake_next(refusing('mastodon'::text, {left}))"),
])  # fmt: skip
def test_what_a_session_does_first_ends_no_server(uncached, before, statement):
    """For its first error and its first random number, libraries ask libc for memory, and libc would end the process."""
    for left in range(0, 4000, 16):
        with uncached.connect() as db:
            db.execute(before)
            for _ in range(2):
                try:
                    db.execute(statement.format(left=left))
                except psycopg.Error as error:
                    if error.sqlstate not in ("22P02", "53200", "55000"):
                        raise
    Caller(uncached, random.Random(1)).survived()


# The length of a text that others have stored in the catalog, or raise. PostgreSQL needs some times as much memory. Rust copied
# it once more, which is more than the reserve and a step.
BYTES, STEP = 4_000_000, 1_500_000


def at_each_limit(server, statement, outcome, at_least=BYTES):
    """Runs a statement with more and more memory, up to the amount that lets it end as it does without a limit."""
    caller, enough, left = Caller(server, random.Random(1)), 0, 0
    while enough < 4:
        left += STEP
        enough = enough + 1 if caller.call(statement.format(left=left)) == outcome else 0
        assert left < 100 * BYTES, caller.errors
    assert left > at_least
    caller.survived()


def long(statement, character="'x'"):
    """A statement with a long literal in place of %L."""
    return f"DO $do$ BEGIN EXECUTE format($${statement}$$, repeat({character}, {BYTES})); END $do$"


LONG_ERROR = """
    CREATE FUNCTION {name} RETURNS {type} STABLE LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM refusing(true, current_setting('refusal.room')::bigint);
        RAISE EXCEPTION USING MESSAGE = 'é' || repeat('x', {bytes}), DETAIL = repeat('y', {bytes}), HINT = repeat('é', {bytes});
    END$$"""


@pytest.mark.matrix
@pytest.mark.parametrize(("statement", "make"), ids=["planner", "trigger"], argvalues=[
    (
        "SELECT FROM ids WHERE flake_timestamp(id) >= long_error()",
        LONG_ERROR.format(name="long_error()", type="timestamptz", bytes=BYTES),
    ),
    ("SELECT flake_take(NULL::ids, 'positions', 'mailer', 1)", LONG_ERROR.format(name="at_update()", type="trigger", bytes=BYTES)
     + "; CREATE TRIGGER at_update BEFORE UPDATE ON positions FOR EACH ROW EXECUTE FUNCTION at_update()"),
])  # fmt: skip
def test_a_long_error_is_cut_off_before_it_is_copied(server, statement, make):
    """When the planner evaluates a function of the query, and when a trigger of the caller's table raises the error."""
    server.sql(make)
    with server.connect() as db:
        db.execute("SET refusal.room = 1000000000")
        error = pytest.raises(psycopg.errors.RaiseException, db.execute, statement).value.diag
        assert error.message_primary == "é" + "x" * 19_998 + "..." and error.message_detail == "y" * 20_000 + "..."
        assert error.message_hint == "é" * 10_000 + "..."
    at_each_limit(server, f"SET LOCAL refusal.room = {{left}}; {statement}", "P0001")
    server.sql("DROP FUNCTION IF EXISTS long_error(), at_update() CASCADE")


@pytest.mark.matrix
@pytest.mark.parametrize(("make", "statement", "outcome"), ids=["default", "check", "undo", "number"], argvalues=[
    ("CREATE TABLE long (id bigint PRIMARY KEY DEFAULT CASE %L WHEN '' THEN 1 ELSE flake_next('twitter') END)",
     "SELECT flake_take(NULL::long, 'positions', 'mailer', 1) WHERE refusing(true, {left})", "42704"),
    ("CREATE TABLE long (id bigint PRIMARY KEY CHECK (id::text <> %L))",
     "SELECT flake_convert('long', 'twitter') WHERE refusing(true, {left})", "54000"),
    ("CREATE TABLE long (id bigint PRIMARY KEY DEFAULT length(%L))",
     "SELECT flake_convert('long', 'twitter') WHERE refusing(true, {left})", "54000"),
    # A number whose text is long.
    ("CREATE TABLE long AS SELECT jsonb_agg(('1e100000')::numeric) AS numbers, %L FROM generate_series(1, 40) n",
     "SELECT flake_make(now(), refusing(numbers, {left})) FROM long", "54000"),
])  # fmt: skip
def test_a_long_text_of_the_catalog_is_not_copied(server, make, statement, outcome):
    server.sql("DROP TABLE IF EXISTS long; " + long(make))
    at_each_limit(server, statement, outcome)


def test_a_long_version_of_a_layout_is_not_copied(latin1):
    """Where its characters are not UTF-8, a copy would take three times as much memory."""
    latin1.sql(long("ALTER SERVER mine VERSION %L", "chr(233)"))
    at_each_limit(latin1, "SELECT flake_timestamp(1, refusing('mine'::text, {left}))", "55000")


@pytest.mark.matrix
def test_many_layouts_and_keys_of_others(server):
    """The owner of a database may make any number of them, and other roles list them."""
    server.sql("""
        SET client_min_messages = error;
        SELECT flake_create_layout('l' || n,
                   jsonb_build_object('like', 'twitter', 'epoch', timestamptz '2024-01-01Z' + n * interval '1 s')),
               flake_create_key('k' || translate(n::text, '0123456789', 'abcdefghij'), 'twitter')
        FROM generate_series(1, 1000) n""")
    for statement, outcome in [
        ("SELECT flake_internal.flake_layouts() WHERE refusing(true, {left})", "00000"),
        ("SELECT flake_internal.flake_keys() WHERE refusing(true, {left})", "00000"),
        ("SELECT flake_check() WHERE refusing(true, {left})", "00000"),
        ("SELECT flake_next(refusing('nobody'::text, {left}))", "22023"),
        ("SELECT flake_timestamp(1 << 40, 'l' || n) FROM generate_series(refusing(1, {left}), 1000) n", "00000"),
        ("""SELECT flake_seal(1, 'k' || translate(n::text, '0123456789', 'abcdefghij'))
            FROM generate_series(refusing(1, {left}), 1000) n""", "00000"),
    ]:
        at_each_limit(server, statement, outcome, at_least=0)
