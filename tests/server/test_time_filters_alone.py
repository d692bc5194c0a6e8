"""Filters by time that stay filters: because the plan could become worse, because another function has the name, or because the
role may not call the functions of a range. Impossible IDs are never returned or deleted."""

import re

import psycopg
import pytest

from conftest import pg_config

DAY = "'2026-01-19Z'"


@pytest.fixture(scope="module")
def server(servers):
    server = servers("max_prepared_transactions=2")
    server.sql("""
        SET timezone = 'UTC';
        CREATE TABLE ids (id bigint PRIMARY KEY, n integer);
        INSERT INTO ids SELECT flake_min(timestamptz '2026-01-01Z' + n * interval '17 s'), n FROM generate_series(0, 99999) n;
        ANALYZE ids""")
    return server


@pytest.fixture
def db(server):
    with server.connect(options="-c timezone=UTC -c enable_seqscan=off") as db, db.transaction(force_rollback=True):
        yield db


def plan(db, query):
    return "\n".join(line for line, in db.execute("EXPLAIN (COSTS OFF) " + query))


def is_range(db, query):
    text = plan(db, query)
    assert ("flake_timestamp(" in text) != ("(id >= '20" in text or "(id <= '20" in text or "flake_plan.since(" in text), text
    return "flake_timestamp(" not in text


FILTER = f"flake_timestamp(ids.id) >= {DAY}"
EQUAL = f"flake_timestamp(ids.id) = {DAY}"
PARTS = """
    CREATE TABLE parts (id bigint, n integer) PARTITION BY RANGE (n);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (50000);
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (50000) TO (MAXVALUE);
    INSERT INTO parts SELECT id, n FROM ids; CREATE INDEX ON parts (id)"""
DEAR = "CREATE FUNCTION dear() RETURNS timestamptz STABLE COST 10000 LANGUAGE plpgsql AS 'BEGIN RETURN now(); END'"
# Objects, a query, and the relations that its plan leaves out because the filter stays; None if it becomes a range.
BESIDE = {
    "an index of the call": ("CREATE INDEX ON ids (flake_timestamp(id))", f"SELECT FROM ids WHERE {FILTER} AND n > 5", []),
    "an index with the call as its second column": (
        "CREATE INDEX ON ids (n, flake_timestamp(id))", f"SELECT FROM ids WHERE {FILTER} AND n > 5", []),
    "an index of a partitioned table": (
        f"{PARTS}; CREATE INDEX ON parts (flake_timestamp(id))", f"SELECT FROM parts ids WHERE {FILTER}", []),
    "a partitioned table": (PARTS, f"SELECT FROM parts ids WHERE {FILTER}", None),
    # These serve other queries.
    "an index of some rows": (
        "CREATE INDEX ON ids (n) WHERE flake_timestamp(id) >= '2026-01-10Z'", f"SELECT FROM ids WHERE {FILTER}", None),
    "an index of days": (
        "CREATE INDEX ON ids (date_trunc('day', flake_timestamp(id) AT TIME ZONE 'UTC'))",
        f"SELECT FROM ids WHERE {FILTER}", None),
    "an index of local times": (
        "CREATE INDEX ON ids ((flake_timestamp(id) AT TIME ZONE 'UTC'), n)", f"SELECT FROM ids WHERE {FILTER}", None),
    "an index of another column": (
        "ALTER TABLE ids ADD other bigint; CREATE INDEX ON ids (flake_timestamp(other)); CREATE INDEX ON ids (abs(id))",
        f"SELECT FROM ids WHERE {FILTER}", None),
    "statistics": ("CREATE STATISTICS s ON (flake_timestamp(id)) FROM ids", f"SELECT FROM ids WHERE {FILTER}", None),
    "a constraint": (
        "ALTER TABLE ids ADD CHECK (flake_timestamp(id) > '2011-01-01Z')", f"SELECT FROM ids WHERE {FILTER}", None),
    "a partition key": ("""
        CREATE TABLE by_time (id bigint) PARTITION BY RANGE (flake_timestamp(id));
        CREATE TABLE by_time_1 PARTITION OF by_time FOR VALUES FROM ('2026-01-01Z') TO ('2026-01-15Z');
        CREATE TABLE by_time_2 PARTITION OF by_time FOR VALUES FROM ('2026-01-15Z') TO ('2026-03-01Z')""",
        f"SELECT FROM by_time ids WHERE {FILTER}", ["by_time_1"]),
    "constraints of children": ("""
        CREATE TABLE parent (id bigint);
        CREATE TABLE old (CHECK (flake_timestamp(id) < '2026-01-10Z')) INHERITS (parent);
        CREATE TABLE new (CHECK (flake_timestamp(id) >= '2026-01-10Z')) INHERITS (parent)""",
        f"SELECT FROM parent ids WHERE {FILTER}", ["old"]),
    # Through the other equality, the constant selects the partitions of another table.
    "another equality": ("""
        CREATE TABLE others (at timestamptz, n integer) PARTITION BY RANGE (at);
        CREATE TABLE others_1 PARTITION OF others FOR VALUES FROM ('2026-01-01Z') TO ('2026-01-15Z');
        CREATE TABLE others_2 PARTITION OF others FOR VALUES FROM ('2026-01-15Z') TO ('2026-02-15Z')""",
        f"SELECT FROM ids JOIN others o ON o.at = flake_timestamp(ids.id) WHERE {EQUAL}", ["others_1"]),
    "an equality of another column": (
        "CREATE TABLE others (n integer)", f"SELECT FROM ids JOIN others o ON o.n = ids.n WHERE {EQUAL}", None),
    "two equalities of one instant": ("", f"SELECT FROM ids WHERE {EQUAL} AND {EQUAL}", None),
    "two equalities": ("", f"SELECT FROM ids WHERE {EQUAL} AND flake_timestamp(id) = '2026-01-21Z'", None),
    "two equalities, of now": ("", f"SELECT FROM ids WHERE {EQUAL} AND flake_timestamp(id) = now()", None),
    # An expensive function would be evaluated for both ends.
    "an expensive function": (DEAR, "SELECT FROM ids WHERE flake_timestamp(id) = dear()", []),
    "an expensive function for one end": (DEAR, "SELECT FROM ids WHERE flake_timestamp(id) >= dear()", None),
}  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("objects", BESIDE)
def test_a_filter_stays_where_a_range_would_be_worse(db, objects):
    statements, query, left_out = BESIDE[objects]
    db.execute(statements)
    assert is_range(db, query) == (left_out is None)
    assert not any(re.search(rf"\bon {name}\b", plan(db, query)) for name in left_out or [])


NULLED = """
    CREATE TABLE a (id bigint PRIMARY KEY, x integer);
    INSERT INTO a VALUES (flake_min('2026-01-01Z'), 1), (flake_min('2026-01-02Z'), 2);
    CREATE TABLE b (x integer); CREATE TABLE c (x integer); INSERT INTO b VALUES (1); INSERT INTO c VALUES (1);
    CREATE TABLE d (y integer); INSERT INTO d VALUES (7);
    CREATE VIEW v AS SELECT a.x, a.id, s.ts FROM a LEFT JOIN LATERAL (
        SELECT flake_timestamp(a.id) AS ts FROM b JOIN c ON b.x = c.x WHERE b.x = a.x) s ON true"""


def test_a_time_that_an_outer_join_makes_null_stays_a_filter(db):
    """The time is computed where there is no row for a.x = 2, from a key of the other side."""
    db.execute(NULLED)
    assert db.execute("SELECT x, ts IS NULL FROM v ORDER BY x").fetchall() == [(1, False), (2, True)]
    assert db.execute("SELECT x FROM v WHERE ts >= '2025-01-01Z'").fetchall() == [(1,)]
    assert db.execute("SELECT v.x, y FROM v LEFT JOIN d ON v.ts >= '2025-01-01Z' ORDER BY 1").fetchall() == [(1, 7), (2, None)]
    assert db.execute("DELETE FROM d USING v WHERE v.x = 2 AND v.ts < '2027-01-01Z' RETURNING y").fetchall() == []


def test_a_time_that_an_outer_join_makes_null_with_its_key_is_a_range(db):
    """Both are NULL in the same rows, so the range still serves, unless PostgreSQL marks the time alone."""
    db.execute(NULLED)
    query = """SELECT d.y FROM d LEFT JOIN (
        SELECT CASE WHEN i.n < 150 THEN flake_timestamp(i.id) END AS ts, i.n FROM ids i JOIN b ON b.x = i.n) s ON s.n = d.y - 6
        LEFT JOIN c ON s.ts >= '2026-01-01Z'"""
    assert db.execute(query + " WHERE s.ts >= '2026-01-01Z'").fetchall() == [(7,)]
    if db.info.server_version < 160000:
        assert "flake_timestamp(" not in plan(db, query + " WHERE s.ts >= '2026-01-01Z'")


# Parts of an instant with columns of another table that are never reached: PostgreSQL alone evaluates none of them.
UNREACHED = [
    "CASE WHEN m.mode = 'auto' THEN m.at ELSE current_setting('app.start')::timestamptz END",
    "coalesce(m.at, 'garbage'::text::timestamptz)",
    "coalesce(m.at, now() - 'garbage'::text::interval)",
    "coalesce(m.at, calls())",
]
OF_MOMENTS = """
    CREATE TABLE moments (mode text, at timestamptz); INSERT INTO moments VALUES ('auto', '2026-01-20Z');
    CREATE FUNCTION calls() RETURNS timestamptz STABLE LANGUAGE plpgsql AS 'BEGIN RAISE division_by_zero; END'"""
CONDITIONS = [*(f"flake_timestamp(ids.id) {operator} {{}}" for operator in ("<", "<=", ">=", ">")),
              "flake_during(ids.id, tstzrange({}, NULL))", "flake_during(ids.id, tstzrange(NULL, {}))"]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("condition", CONDITIONS)
@pytest.mark.parametrize("instant", UNREACHED)
def test_no_estimate_evaluates_what_is_not_reached(db, condition, instant):
    """PostgreSQL estimates a condition of an index by its constant parts, also for EXPLAIN."""
    db.execute(OF_MOMENTS)
    for joined in ("JOIN", "LEFT JOIN"):
        query = f"SELECT count(*) FROM moments m {joined} ids ON {condition.format(instant)}"
        db.execute(f"EXPLAIN {query}")
        expected = db.execute(f"SELECT count(*) FROM moments m {joined} ids ON {condition.format('m.at')}").fetchone()
        assert db.execute(query).fetchone() == expected


@pytest.mark.parametrize("instant", ["m.at", "m.at - interval '1 day'", "greatest(m.at, now())", "coalesce(m.at, '2026-01-01Z')"])
def test_other_instants_of_joins_are_ranges(db, instant):
    db.execute(OF_MOMENTS)
    assert is_range(db, f"SELECT * FROM moments m JOIN ids ON flake_timestamp(ids.id) >= {instant}")


@pytest.mark.parametrize("argument", [
    "CASE WHEN random() < 0.5 THEN id ELSE n END, '[2026-01-01Z,2026-01-02Z)', 'twitter'",
    "id, CASE WHEN random() < 0.5 THEN tstzrange('2026-01-01Z', now()) ELSE tstzrange('2026-01-03Z', NULL) END, 'twitter'",
    "id, '[2026-01-01Z,2026-01-02Z)', CASE WHEN random() < 0.5 THEN 'twitter' ELSE 'snowflake' END",
    "CASE WHEN random() < 0.5 THEN id ELSE n END, tstzrange('2026-01-01Z', now()), 'twitter'",
], ids=["the key", "the span", "the layout", "the key, of a span that is not constant"])  # fmt: skip
def test_a_volatile_argument_stays_where_it_is(db, argument):
    """A range would evaluate it twice."""
    text = plan(db, f"SELECT * FROM ids WHERE flake_during({argument})")
    assert "flake_during(" in text and text.count("random()") == 1, text


@pytest.mark.parametrize("layout", ["uniqueid", "seata", "holed"])
def test_layouts_whose_ranges_are_not_of_time_keep_the_filter(db, layout):
    if layout == "holed":
        db.execute("""SELECT flake_create_layout('holed', '{"epoch": "2020-01-01T00:00:00Z", "tick": "1ms", "fields": [
            {"name": "timestamp", "bits": 41, "role": "timestamp"}, {"name": "zero", "bits": 2, "role": "reserved", "value": 0},
            {"name": "sequence", "bits": 12, "role": "sequence"}]}')""")
    assert "flake_timestamp" in plan(db, f"SELECT * FROM ids WHERE flake_timestamp(id, '{layout}') >= {DAY}")
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        db.execute("EXPLAIN ANALYZE SELECT * FROM ids WHERE flake_timestamp(id, 'none') >= now()")


def test_functions_of_others_stay_filters(server, db):
    """Functions of the same name stay calls, and so does flake's own function after it was replaced."""
    query = f"SELECT * FROM ids WHERE {{}}flake_timestamp(id) >= {DAY}"
    db.execute("CREATE SCHEMA other")
    for more in "LANGUAGE sql IMMUTABLE AS 'SELECT now()'", "LANGUAGE plpgsql STABLE AS 'BEGIN RETURN now(); END'":
        db.execute(f"CREATE OR REPLACE FUNCTION other.flake_timestamp(bigint) RETURNS timestamptz {more}")
        assert "flake_plan.since" not in plan(db, query.format("other.")) and "Index Cond" not in plan(db, query.format("other."))
    assert is_range(db, query.format(""))
    # The function is in flake's schema, and has another support function.
    db.execute("""
        CREATE FUNCTION a_timestamp(id bigint, layout text) RETURNS timestamptz STABLE LANGUAGE plpgsql
            SUPPORT generate_series_int8_support AS 'BEGIN RETURN now(); END'""")
    assert "Filter: (a_timestamp(" in plan(db, f"SELECT * FROM ids WHERE a_timestamp(id, 'twitter') >= {DAY}")
    db.execute("""
        CREATE OR REPLACE FUNCTION flake_timestamp(id bigint, layout text DEFAULT 'twitter') RETURNS timestamptz
            IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS '$libdir/flake', 'flake_timestamp'""")
    assert not is_range(db, query.format(""))


def test_a_role_that_may_not_call_the_ends_gets_the_filter(db):
    db.execute("CREATE ROLE caller; GRANT SELECT ON ids TO caller")
    query = "SELECT count(*) FROM ids WHERE flake_timestamp(id) >= now() - interval '1 day'"
    for function, is_allowed in [("flake_timestamp", False), ("flake_plan.since(timestamptz, text)", True)]:
        with db.transaction(force_rollback=True):
            db.execute(f"REVOKE EXECUTE ON FUNCTION {function} FROM PUBLIC; SET LOCAL ROLE caller")
            if is_allowed:
                assert not is_range(db, query) and db.execute(query).fetchone()
            else:
                with pytest.raises(psycopg.errors.InsufficientPrivilege, match="function flake_timestamp"), db.transaction():
                    db.execute(query)
    db.execute("SET LOCAL ROLE caller")
    assert is_range(db, query)


POSTGRES_FDW = """
    CREATE EXTENSION postgres_fdw;
    CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw OPTIONS (extensions 'flake', host '{0}', dbname 'postgres');
    CREATE USER MAPPING FOR postgres SERVER far OPTIONS (user 'postgres');
    CREATE FOREIGN TABLE far_ids (id bigint, n integer) SERVER far OPTIONS (table_name 'ids');
    CREATE TABLE half_far (id bigint, n integer) PARTITION BY RANGE (n);
    CREATE TABLE near_half PARTITION OF half_far FOR VALUES FROM (0) TO (10);
    CREATE TABLE far_half PARTITION OF half_far FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (n);
    CREATE FOREIGN TABLE far_quarter PARTITION OF far_half FOR VALUES FROM (10) TO (15) SERVER far OPTIONS (table_name 'ids');
"""


@pytest.mark.parametrize("table", ["far_ids", "half_far"])
def test_foreign_tables_get_no_call_of_an_end(server, db, table):
    """An older flake on the other server may lack the functions of the ends. Constants are sent as they are."""
    if not (pg_config("--sharedir") / "extension" / "postgres_fdw.control").exists():
        pytest.skip("this PostgreSQL has no postgres_fdw")
    db.execute(POSTGRES_FDW.format(server.dir))
    for instant, is_sent_as_ids in [(DAY, True), ("now() - interval '1 day'", False), ("'2026-01-19'::date", False)]:
        text = plan(db, f"SELECT count(*) FROM (SELECT id FROM {table} WHERE flake_timestamp(id) >= {instant} OFFSET 0) s")
        text = "\n".join(line for line, in db.execute(
            f"EXPLAIN (VERBOSE, COSTS OFF) SELECT id FROM {table} WHERE flake_timestamp(id) >= {instant}"))  # fmt: skip
        assert ("flake_timestamp(" not in text) == is_sent_as_ids and "flake_plan.since" not in text, text
        if is_sent_as_ids:
            assert "WHERE ((id >= " in text


IMPOSSIBLE = {
    "twitter": [-1, -(2**63), -5_000_000], "si": [-1, -(2**63), 2**53, 2**63 - 1], "base64id": [-1, 2**60, 2**63 - 1],
    "mine": [-1, 2**50 - 1, 2**51, 0],
}  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("layout", IMPOSSIBLE)
def test_ids_that_are_not_possible_are_never_returned(db, layout):
    """The filter would raise an error for them. They are never returned or deleted, by a constant, a parameter or a column."""
    db.execute("""SELECT flake_create_layout('mine', '{"epoch": "2020-01-01T00:00:00Z", "tick": "1ms", "fields": [
        {"name": "one", "bits": 2, "role": "reserved", "value": 1}, {"name": "timestamp", "bits": 40, "role": "timestamp"},
        {"name": "sequence", "bits": 10, "role": "sequence"}]}')""")
    db.execute("CREATE TABLE few (id bigint PRIMARY KEY); CREATE TABLE instants (at timestamptz)")
    db.execute("INSERT INTO few SELECT unnest(%s::bigint[])", (IMPOSSIBLE[layout],))
    for id in IMPOSSIBLE[layout]:
        with pytest.raises(psycopg.errors.NumericValueOutOfRange), db.transaction():
            db.execute("SELECT flake_timestamp(%s, %s)", (id, layout))
    instants = ["-infinity", "infinity", "1999-01-01Z", "2026-01-01Z", "294276-12-31 23:59:59.999999Z", "4714-11-24 BC",
                *[at for at, in db.execute("SELECT (epoch + n * interval '1 us')::text FROM flake_layouts, "
                                           "generate_series(-1, 1) n "
                                           "WHERE name = %s UNION SELECT (ends_at + n * tick)::text FROM flake_layouts, "
                                           "generate_series(-1, 2) n WHERE name = %s", (layout, layout)).fetchall()]]  # fmt: skip
    db.execute("INSERT INTO instants SELECT unnest(%s::timestamptz[])", (instants,))
    for operator in "<", "<=", "=", ">=", ">":
        condition = f"flake_timestamp(id, '{layout}') {operator}"
        for at in instants:
            for type in "timestamptz", "timestamp", "date":
                try:
                    with db.transaction():
                        db.execute(f"SELECT %s::{type}", (at,))
                except psycopg.errors.DataException:
                    continue
                assert db.execute(f"DELETE FROM few WHERE {condition} '{at}'::{type}").rowcount == 0, (operator, at)
                db.execute(f"PREPARE query({type}) AS DELETE FROM few WHERE {condition} $1")
                db.execute("SET LOCAL plan_cache_mode = force_generic_plan")
                assert "flake_timestamp" not in plan(db, f"EXECUTE query('{at}')")
                assert db.execute(f"EXECUTE query('{at}')").rowcount == 0, (operator, at)
                db.execute("DEALLOCATE query")
        assert operator == "=" or db.execute(f"SELECT count(*) FROM instants JOIN few ON {condition} at").fetchone() == (0,)
    assert db.execute("SELECT count(*) FROM few").fetchone() == (len(IMPOSSIBLE[layout]),)
