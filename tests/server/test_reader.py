"""docs/how-to/reader.sql reads IDs as the extension does, in a database without it."""

import random

import psycopg
import pytest

import reader

# IDs around the limits, and random ones.
IDS = [0, 1, -1, 2**63 - 1, -(2**63), 2**53, 2**53 - 1, 2**60]
SPANS = [
    "empty", "(,)", "[,2026-01-01Z)", "[2026-01-01Z,)", "[-infinity,infinity]", "[infinity,)", "(,-infinity]",
    "[2000-01-01Z,2001-01-01Z]", "[1960-01-01Z,1961-01-01Z)", "[2100-01-01Z,2120-01-01Z)", "[90000-01-01Z,)",
    "(2026-01-01Z,2026-01-01 00:00:00.000001Z)",
]  # fmt: skip


@pytest.fixture(scope="module")
def both(servers):
    """One server with two databases: one has the extension, and one has the file."""
    server = servers()
    server.sql("CREATE DATABASE plain")
    server.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", "plain", "-f", reader.FILE)
    with server.connect() as extension, server.connect(dbname="plain") as plain:
        for db in (extension, plain):
            db.execute("SET timezone = 'Europe/Lisbon'")
        yield extension, plain


def answer(db, call, *arguments):
    """Returns the result, or the error."""
    try:
        return db.execute(f"SELECT {call}", arguments).fetchone()
    except psycopg.Error as error:
        return error.sqlstate, error.diag.message_primary


def layouts(extension):
    return extension.execute("SELECT name, bits FROM flake_layouts").fetchall()


def test_its_table_is_the_extensions(server):
    reader.check(server)


def test_it_reads_ids_as_the_extension_does(both):
    extension, _ = both
    found = 0
    for name, bits in layouts(extension):
        draw = random.Random(name)
        made = [id for id, in extension.execute(MADE, {"layout": name}).fetchall()]
        for id in [*IDS, *(signed(draw.getrandbits(draw.choice([bits, bits, 64]))) for _ in range(16)), *made]:
            calls = ["(flake_decode(%s::bigint, %s))::text", "flake_timestamp(%s::bigint, %s)::text"]
            one, other = ([answer(db, call, id, name) for call in calls] for db in both)
            assert one == other, (name, id)
            found += one[0][0] != "22003"
    assert found > 400


# IDs of random instants with small numbers.
MADE = """
    SELECT flake_make(epoch + random() * (least(ends_at, '9999-01-01Z') - epoch), '{}', name)
    FROM flake_layouts, generate_series(1, 10) WHERE name = %(layout)s"""


def signed(id):
    return id - 2**64 if id >> 63 else id


def test_it_has_the_same_ranges(both):
    for name, _ in layouts(both[0]):
        draw = random.Random(name)
        instants = ["infinity", "-infinity", "1969-12-31Z", "2026-01-01 00:00:00.123456Z", "294000-01-01Z"]
        day = "{}-03-{:02} 23:59:59.{:06}Z"
        drawn = [day.format(draw.randint(1960, 2160), draw.randint(1, 28), draw.randrange(10**6)) for _ in range(6)]
        pairs = (sorted(draw.sample(drawn, 2)) for _ in range(6))
        spans = SPANS + [f"{draw.choice('[(')}{low},{high}{draw.choice('])')}" for low, high in pairs]
        instants += drawn
        for call, arguments in [
            *((f"flake_{end}(%s::timestamptz, %s)", instants) for end in ("min", "max")),
            *((f"flake_{end}(%s::tstzrange, %s)", spans) for end in ("plan_first", "plan_last")),
        ]:
            for argument in arguments:
                one, other = (answer(db, call, argument, name) for db in both)
                assert one == other, (name, call, argument)
        for span in spans:
            id = draw.getrandbits(62)
            one, other = (answer(db, "flake_during(%s::bigint, %s::tstzrange, %s)", id, span, name) for db in both)
            assert one == other, (name, id, span)


def test_null_and_unknown_layouts_give_null_or_an_error(both):
    for call in [
        "flake_timestamp(NULL)", "flake_decode(1, NULL)", "flake_during(NULL, '(,)')", "flake_during(1, NULL)",
        "flake_during(1, '(,)', NULL)", "flake_min(NULL)", "flake_timestamp(1, 'nonsense')",
        "flake_timestamp(1541815603606036480)", "flake_during(1541815603606036480, '[2022-06-28Z,2022-06-29Z)')",
    ]:  # fmt: skip
        one, other = (answer(db, call) for db in both)
        assert one == other, call


def test_ranges_use_the_index(both):
    _, plain = both
    plain.execute("CREATE TABLE orders (id bigint PRIMARY KEY); SET enable_seqscan = off")
    query = "SELECT * FROM orders WHERE flake_during(id, '[2026-01-01Z,2026-01-02Z)')"
    plan = plain.execute(f"EXPLAIN (COSTS OFF) {query}").fetchall()
    assert any("Index Cond: ((id >= '2006515713438646272'::bigint)" in line for line, in plan), plan


def test_it_serves_generated_columns_and_indexes(both):
    """The search_path is empty while a dump is restored, and PostgreSQL 17 and later empty it to make an index."""
    _, plain = both
    plain.execute("CREATE TABLE t (id bigint, at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED)")
    plain.execute("SET search_path = ''; INSERT INTO public.t VALUES (1541815603606036480)")
    plain.execute("CREATE INDEX ON public.t (public.flake_timestamp(id))")
    plain.execute("CREATE INDEX ON public.t (((public.flake_decode(id)).worker)) WHERE public.flake_during(id, '[2022-06-28Z,)')")
    plain.execute("""CREATE TABLE public.u (
        id bigint CHECK (id BETWEEN public.flake_min('2022-01-01Z') AND public.flake_max('2023-01-01Z')))""")
    plain.execute("INSERT INTO public.u SELECT id FROM public.t; RESET search_path")
    assert plain.execute("SELECT at = '2022-06-28 16:07:40.105Z' FROM t").fetchone() == (True,)
