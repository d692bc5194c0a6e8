"""Filters by time in plain SQL. Each shape becomes a range of IDs in the first statement of a new session, with the rows and
the estimates of a range written by hand. Other shapes return the right rows too."""

import itertools
import pathlib
import re

import pytest

from waiting import processor_seconds

TABLES = """
    CREATE TABLE ids (id bigint PRIMARY KEY, n integer, at timestamptz);
    INSERT INTO ids SELECT flake_make(at, '{"sequence": 7}'), n, at
    FROM (SELECT n, timestamptz '2026-01-01Z' + n * interval '17 s' AS at FROM generate_series(0, 99999) n) s;
    CREATE VIEW orders AS SELECT *, flake_timestamp(id) AS created_at FROM ids;
    CREATE VIEW barred WITH (security_barrier) AS SELECT *, flake_timestamp(id) AS created_at FROM ids WHERE n % 2 = 0;
    CREATE FUNCTION created_at(ids) RETURNS timestamptz IMMUTABLE LANGUAGE sql AS 'SELECT flake_timestamp($1.id)';
    CREATE TABLE moments (n integer PRIMARY KEY, at timestamptz, local timestamp);
    INSERT INTO moments SELECT n, timestamptz '2026-01-19Z' + n * interval '1 h', timestamp '2026-01-19' + n * interval '1 h'
    FROM generate_series(1, 300) n;
    CREATE TABLE converted (id bigint PRIMARY KEY, n integer);
    INSERT INTO converted SELECT id, n FROM ids UNION ALL SELECT n, -n FROM generate_series(-1000, 1000) n;
    CREATE VIEW readable AS
        SELECT *, CASE WHEN id >= 1000000 THEN flake_timestamp(id) END AS created_at FROM converted;
    CREATE DOMAIN order_id AS bigint;
    CREATE TABLE domained (id order_id PRIMARY KEY);
    INSERT INTO domained SELECT id FROM ids;
    CREATE TABLE snos (id sno PRIMARY KEY);
    INSERT INTO snos SELECT sno_make(at, 5) FROM ids;
    SELECT flake_create_layout('mine', '{"like": "si", "epoch": "2025-01-01T00:00:00Z", "tick": "700us"}');
    CREATE TABLE mine (id bigint PRIMARY KEY);
    INSERT INTO mine SELECT flake_min(at, 'mine') + 3 FROM ids;
    CREATE TABLE discord (id bigint PRIMARY KEY);
    INSERT INTO discord SELECT flake_make(at + years * interval '1 year', '{}', 'discord') FROM ids, (VALUES (0), (80)) v (years)
    WHERE n % 10 = 0;
    CREATE TABLE parts (id bigint PRIMARY KEY, n integer) PARTITION BY RANGE (id);
    CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (flake_min('2026-01-05Z'));
    CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (flake_min('2026-01-05Z')) TO (flake_min('2026-01-10Z'));
    CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (flake_min('2026-01-10Z')) TO (MAXVALUE);
    INSERT INTO parts SELECT id, n FROM ids;
    CREATE TABLE secret (id bigint PRIMARY KEY, n integer);
    INSERT INTO secret SELECT id, n FROM ids;
    CREATE POLICY half ON secret USING (n % 2 = 0);
    ALTER TABLE secret ENABLE ROW LEVEL SECURITY;
    CREATE ROLE reader LOGIN;
    GRANT SELECT ON secret, barred TO reader;
    ANALYZE;
"""
OPTIONS = "-c timezone=UTC -c enable_seqscan=off -c enable_bitmapscan=off"
# The tables have rows at these instants.
DAY = "'2026-01-19Z'"


@pytest.fixture(scope="module")
def server(servers):
    server = servers()
    server.sql("SET timezone = 'UTC'; " + TABLES)
    # now() lies in the middle of the tables' time, so that it finds rows.
    server.sql("CREATE FUNCTION noon() RETURNS timestamptz STABLE LANGUAGE sql AS $$SELECT '2026-01-19 12:00Z'::timestamptz$$")
    return server


def first_plan(server, query, *before, options=OPTIONS, **connection):
    """Returns the plan of a session that has planned nothing before, and has not loaded the library."""
    with server.connect(options=options, **connection) as db:
        for command in before:
            db.execute(command)
        # Listing settings would show whether the library is loaded.
        assert "flake.so" not in pathlib.Path(f"/proc/{db.info.backend_pid}/maps").read_text()
        return "\n".join(line for line, in db.execute("EXPLAIN (COSTS OFF) " + query))


SHAPES = {
    "literal": (f"SELECT * FROM ids WHERE flake_timestamp(id) >= {DAY}", r"\(id >= '20\d+'::bigint\)"),
    "constant on the left": (f"SELECT * FROM ids WHERE {DAY} < flake_timestamp(id)", r"\(id >= '20\d+'::bigint\)"),
    "before": (f"SELECT * FROM ids WHERE flake_timestamp(id) < {DAY}", r"\(\(id <= '20\d+'::bigint\) AND \(id >= "
                                                            r"'0'::bigint\)\)"),
    "between": (f"SELECT * FROM ids WHERE flake_timestamp(id) BETWEEN {DAY} AND '2026-01-20Z'",
                r"\(\(id >= '20\d+'::bigint\) AND \(id <= '20\d+'::bigint\)\)"),
    "equal": (f"SELECT * FROM ids WHERE flake_timestamp(id) = {DAY}", r"\(\(id >= '\d+'::bigint\) AND \(id <= '\d+'::bigint\)\)"),
    "in": (f"SELECT * FROM ids WHERE flake_timestamp(id) IN ({DAY})", r"\(\(id >= '\d+'::bigint\) AND \(id <= '\d+'::bigint\)\)"),
    "now": ("SELECT * FROM ids WHERE flake_timestamp(id) >= now() - interval '1 day'",
            r"\(id >= flake_plan.since\(\(now\(\) - '1 day'::interval\), 'twitter'::text\)\)"),
    "sub-query": ("SELECT * FROM ids WHERE flake_timestamp(id) > (SELECT max(at) - interval '1 h' FROM moments)",
                  r"\(id >= flake_plan.after\(\$0, 'twitter'::text\)\)|"
                  r"\(id >= flake_plan.after\(\(InitPlan (?:1|expr_1)\)\.col1, 'twitter'::text\)\)"),
    "view": ("SELECT * FROM orders WHERE created_at > now() - interval '1 day'", r"\(id >= flake_plan.after\(\(now\(\) - "),
    "join": ("SELECT * FROM moments m JOIN ids ON flake_timestamp(ids.id) >= m.at AND flake_timestamp(ids.id) < m.at + "
             "interval '1 h' "
             "WHERE m.n = 3", r"\(\(id >= flake_plan.since\(m.at, 'twitter'::text\)\) AND \(id <= flake_plan.before\("),
    "left join": (f"SELECT m.n, o.id FROM moments m LEFT JOIN orders o ON o.created_at < m.at AND o.created_at >= {DAY} "
                  f"WHERE m.n < 3",
                  r"\(\(id <= flake_plan.before\(m.at, 'twitter'::text\)\) AND \(id >= '20\d+'::bigint\)\)"),
    "condition of an outer join": (
        f"SELECT m.n FROM moments m LEFT JOIN moments k ON k.n = m.n LEFT JOIN ids ON ids.n = k.n AND "
        f"flake_timestamp(ids.id) >= {DAY}",
        r"\(id >= '20\d+'::bigint\)"),
    "exists": ("SELECT n FROM moments m WHERE EXISTS (SELECT FROM ids WHERE flake_timestamp(id) > m.at)", r"\(id >= "
                                                            r"flake_plan.after\(m.at, "),
    "in a sub-query": (f"SELECT n FROM moments WHERE n IN (SELECT n FROM orders WHERE created_at >= {DAY})", r"\(id >= "
                                                            r"'20\d+'::bigint\)"),
    "update": (f"UPDATE ids SET n = 0 WHERE flake_timestamp(id) >= {DAY}", r"\(id >= '20\d+'::bigint\)"),
    "update of a view": (f"UPDATE orders SET n = 0 WHERE created_at >= {DAY}", r"\(id >= '20\d+'::bigint\)"),
    "delete": ("DELETE FROM ids WHERE flake_timestamp(id) < now() - interval '90 days'",
               r"\(\(id <= flake_plan.before\(\(now\(\) - '90 days'::interval\), 'twitter'::text\)\) AND "
               r"\(id >= '0'::bigint\)\)"),
    "merge": ("MERGE INTO ids USING moments m ON flake_timestamp(ids.id) = m.at AND flake_timestamp(ids.id) >= now() - "
              "interval '1 h' "
              "WHEN MATCHED THEN DELETE", r"\(id >= flake_plan.since\(\(now\(\) - "),
    "grouping sets": (f"SELECT created_at, n % 2, count(*) FROM orders WHERE created_at >= {DAY} GROUP BY GROUPING SETS (1, 2)",
                      r"\(id >= '20\d+'::bigint\)"),
    "rollup of what is filtered": (f"SELECT created_at, count(*) FROM orders WHERE created_at >= {DAY} GROUP BY ROLLUP "
                                   f"(created_at)",
                                   r"\(id >= '20\d+'::bigint\)"),
    "domain": (f"SELECT * FROM domained WHERE flake_timestamp(id) >= {DAY}", r"\(\(?id\)?(::bigint)? >= '20\d+'::bigint\)"),
    "naive timestamp": ("SELECT * FROM orders WHERE created_at >= '2026-01-19'::timestamp",
                        r"\(id >= flake_plan.since\(flake_plan.instant\('2026-01-19 00:00:00'::timestamp without time zone\), "
                        r"'twitter'::text\)\)"),
    "date": ("SELECT * FROM orders WHERE created_at < '2026-01-19'::date",
             r"\(\(id <= flake_plan.before\(flake_plan.instant\('2026-01-19'::date\), 'twitter'::text\)\) AND "
             r"\(id >= '0'::bigint\)\)"),
    "date beyond timestamptz": ("SELECT * FROM orders WHERE created_at < '5874897-12-31'::date", r"\(id <= flake_plan.before\("),
    "computed field": (f"SELECT o.n FROM ids o WHERE o.created_at >= {DAY}", r"\(id >= '20\d+'::bigint\)"),
    "converted table": (f"SELECT * FROM readable WHERE created_at < {DAY}",
                        r"\(id <= '20\d+'::bigint\) AND \(id >= ('?1000000'?|'0')(::bigint)?\)"),
    "converted table below an outer join": (
        f"SELECT m.n, r.id FROM moments m LEFT JOIN readable r ON r.n = m.n WHERE r.created_at >= {DAY}", r"\(id >= "
                                                            r"'20\d+'::bigint\)"),
    "sno": (f"SELECT * FROM snos WHERE sno_timestamp(id) < {DAY}", r"\(id <= '\w{16}'::sno\)"),
    "sno by now": ("SELECT * FROM snos WHERE sno_timestamp(id) >= now() - interval '1 day'",
                   r"\(id >= flake_plan.since\(\(now\(\) - "),
    "custom layout": (f"SELECT * FROM mine WHERE flake_timestamp(id, 'mine') >= {DAY}",
                      r"\(\(id >= '\d+'::bigint\) AND \(id <= '9007199254740991'::bigint\)\)"),
    "lateral": ("SELECT m.n, l.id FROM moments m, LATERAL (SELECT id FROM ids WHERE flake_timestamp(id) >= m.at ORDER BY id "
                "LIMIT 1) l",
                r"\(id >= flake_plan.since\(m.at, "),
    "correlated": ("SELECT n, (SELECT count(*) FROM ids WHERE flake_timestamp(id) >= m.at) FROM moments m",
                   r"\(id >= flake_plan.since\(m\.at, "),
    "with other conditions": (f"SELECT * FROM ids WHERE n > 5 AND (n < 9 OR n > 50) AND flake_timestamp(id) >= {DAY}",
                              r"\(id >= '20\d+'::bigint\)"),
    "barrier view": (f"SELECT * FROM barred WHERE created_at >= {DAY}", r"\(id >= '20\d+'::bigint\)"),
    "arms with conditions of a UNION ALL": (
        f"SELECT * FROM (SELECT * FROM orders WHERE n > 2 UNION ALL SELECT * FROM orders WHERE n > 3) u WHERE created_at >= "
        f"{DAY}",
        r"\(id >= '20\d+'::bigint\).*Index Cond: \(id >= '20\d+'::bigint\)"),
}  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("shape", SHAPES)
def test_a_filter_is_a_range_in_a_sessions_first_statement(server, shape):
    query, condition = SHAPES[shape]
    plan = first_plan(server, query)
    assert re.search(f"Index Cond: .*?({condition})", plan, re.S), plan
    assert "flake_timestamp" not in plan or shape in ("merge", "rollup of what is filtered", "grouping sets"), plan


@pytest.mark.matrix
@pytest.mark.parametrize("table, condition, parameter", [
    ("ids", "flake_timestamp(id) >= $1", "timestamptz"), ("orders", "created_at >= $1", "timestamptz"),
    ("orders", "created_at >= $1", "timestamp"), ("orders", "created_at >= $1", "date"),
    ("snos", "sno_timestamp(id) >= $1", "date"),
])  # fmt: skip
def test_a_parameter_of_a_generic_plan_is_a_range(server, table, condition, parameter):
    prepare = f"PREPARE query({parameter}) AS SELECT * FROM {table} WHERE {condition}"
    plan = first_plan(server, f"EXECUTE query({DAY})", prepare, options=OPTIONS + " -c plan_cache_mode=force_generic_plan")
    instant = r"\$1" if parameter == "timestamptz" else r"flake_plan.instant\(\$1\)"
    assert re.search(rf"Index Cond: \(id >= flake_plan.since\({instant}", plan), plan


@pytest.mark.parametrize("condition, partitions", [
    (f"flake_timestamp(id) >= {DAY}", "3"), ("flake_timestamp(id) < '2026-01-05Z'", "1"),
    ("flake_timestamp(id) >= '2026-01-05Z' AND flake_timestamp(id) < '2026-01-09Z'", "2"),
    ("flake_timestamp(id) = '2026-01-07Z'", "2"), ("flake_timestamp(id) < '2010-01-01Z'", ""),
])  # fmt: skip
def test_partitions_are_chosen_when_it_is_planned(server, condition, partitions):
    plan = first_plan(server, f"SELECT * FROM parts WHERE {condition}")
    assert set(re.findall(r"on parts_(\d)", plan)) == set(partitions), plan


def test_partitions_are_chosen_when_it_starts(server):
    plan = first_plan(server, "SELECT * FROM parts WHERE flake_timestamp(id) >= now() - interval '1 day'")
    assert "Subplans Removed: 2" in plan, plan
    with server.connect(options=OPTIONS) as db:
        rows = db.execute("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "
                          "SELECT * FROM parts WHERE flake_timestamp(id) < (SELECT at - interval '16 days' FROM moments "
                          "WHERE n = 1)")  # fmt: skip
        assert "\n".join(line for line, in rows).count("never executed") == 2


def test_a_policy_stays_a_filter(server):
    plan = first_plan(server, f"SELECT * FROM secret WHERE flake_timestamp(id) >= {DAY}", user="reader")
    assert re.search(r"Index Cond: \(id >= '\d+'::bigint\)\n *Filter: \(\(?n % 2\)? = 0\)", plan), plan
    plan = first_plan(server, f"SELECT * FROM barred WHERE created_at >= {DAY}", user="reader")
    assert re.search(r"Index Cond: \(id >= '\d+'::bigint\)\n *Filter: \(\(?n % 2\)? = 0\)", plan), plan


ESTIMATES = [
    ("flake_timestamp(id) >= '2026-01-05Z'", "id >= flake_min('2026-01-05Z')"),
    ("flake_timestamp(id) > '2026-01-05Z'", "id >= flake_max('2026-01-05Z') + 1"),
    ("flake_timestamp(id) < '2026-01-05Z'", "id <= flake_min('2026-01-05Z') - 1"),
    ("flake_timestamp(id) <= '2026-01-05Z'", "id <= flake_max('2026-01-05Z')"),
    ("flake_timestamp(id) = '2026-01-05Z'", "id BETWEEN flake_min('2026-01-05Z') AND flake_max('2026-01-05Z')"),
    ("flake_timestamp(id) BETWEEN '2026-01-05Z' AND '2026-01-06Z'", "id BETWEEN flake_min('2026-01-05Z') AND "
                                                                    "flake_max('2026-01-06Z')"),
    ("flake_timestamp(id) >= noon() - interval '1 day'", "id >= flake_min(noon() - interval '1 day')"),
    ("flake_timestamp(id) < noon()", "id <= flake_min(noon()) - 1"),
    ("flake_timestamp(id) < '2026-01-05'::date", "id <= flake_min('2026-01-05'::date) - 1"),
    ("flake_timestamp(id) >= '2026-01-05'::timestamp", "id >= flake_min('2026-01-05'::timestamp)"),
    ("flake_timestamp(id) < $1", "id <= flake_min($1) - 1"), ("flake_timestamp(id) >= $1", "id >= flake_min($1)"),
    ("flake_timestamp(id) >= $1 AND flake_timestamp(id) < $2", "id >= flake_min($1) AND id < flake_min($2)"),
    ("flake_timestamp(id) >= (SELECT noon())", "id >= flake_min((SELECT noon()))"),
    ("flake_timestamp(id) < (SELECT noon())", "id <= flake_min((SELECT noon()))"),
]  # fmt: skip


def estimate(db, query):
    return db.execute(f"EXPLAIN (FORMAT json) {query}").fetchone()[0][0]["Plan"]["Plan Rows"]


@pytest.mark.matrix
@pytest.mark.parametrize("table", ["ids", "parts", "nullable"])
@pytest.mark.parametrize("filter, range", ESTIMATES)
def test_estimates_are_the_ranges_own(server, table, filter, range):
    with server.connect(options="-c timezone=UTC -c plan_cache_mode=force_generic_plan") as db:
        # If the instant is unknown, the guard against impossible IDs counts NULLs as rows that it excludes.
        if table == "nullable" and "< " in filter and ("$1" in filter or "SELECT" in filter) and "$2" not in filter:
            range = f"{range} AND id IS NOT NULL"
        if table == "nullable":
            db.execute("CREATE TEMP TABLE nullable AS SELECT CASE WHEN n % 3 > 0 THEN id END AS id FROM ids; ANALYZE nullable; "
                       "CREATE INDEX ON nullable (id)")  # fmt: skip
        found = []
        for condition in filter, range:
            db.execute(f"PREPARE query(timestamptz, timestamptz) AS SELECT FROM {table} WHERE {condition}")
            found.append(estimate(db, f"EXECUTE query({DAY}, {DAY})"))
            db.execute("DEALLOCATE query")
        assert found[0] == found[1], found
    assert found[0] != 50000 or "noon" in filter


@pytest.mark.parametrize("filter, range", [
    ("flake_timestamp(ids.id) < m.at", "ids.id <= flake_min(m.at) - 1"),
    ("flake_timestamp(ids.id) >= m.at", "ids.id >= flake_min(m.at)"),
    ("flake_timestamp(ids.id) >= m.at AND flake_timestamp(ids.id) < m.at + interval '1 h'",
     "ids.id >= flake_min(m.at) AND ids.id <= flake_min(m.at + interval '1 h')"),
])  # fmt: skip
def test_estimates_beside_columns_are_the_ranges_own(server, filter, range):
    with server.connect() as db:
        assert estimate(db, f"SELECT FROM moments m JOIN ids ON {filter}") == estimate(db, f"SELECT FROM moments m JOIN ids "
                                                            f"ON {range}")


# Queries without a range: the filter stays, and the rows are the same as by the stored time.
UNSERVED = {
    "flattened UNION ALL": ("SELECT n FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders) u WHERE created_at >= {0}",
                            "SELECT n FROM (SELECT * FROM ids UNION ALL SELECT * FROM ids) u WHERE at >= {0}"),
    "materialized": ("WITH o AS MATERIALIZED (SELECT * FROM orders) SELECT n FROM o WHERE created_at >= {0}",
                     "SELECT n FROM ids WHERE at >= {0}"),
    "window": ("SELECT n FROM (SELECT n, created_at, row_number() OVER (ORDER BY id) FROM orders) o WHERE created_at >= {0}",
               "SELECT n FROM ids WHERE at >= {0}"),
    "date of it": ("SELECT n FROM orders WHERE created_at::date = {0}::date", "SELECT n FROM ids WHERE at::date = {0}::date"),
    "date_trunc": ("SELECT n FROM orders WHERE date_trunc('day', created_at) = {0}",
                   "SELECT n FROM ids WHERE date_trunc('day', at) = {0}"),
    "any": ("SELECT n FROM orders WHERE created_at = ANY (ARRAY[{0}::timestamptz, '2026-01-07 00:00Z'])",
            "SELECT n FROM ids WHERE at = ANY (ARRAY[{0}::timestamptz, '2026-01-07 00:00Z'])"),
    "or": ("SELECT n FROM orders WHERE created_at >= {0} OR n = 5", "SELECT n FROM ids WHERE at >= {0} OR n = 5"),
    "not equal": ("SELECT n FROM orders WHERE created_at <> {0}", "SELECT n FROM ids WHERE at <> {0}"),
    "volatile": ("SELECT n FROM orders WHERE created_at >= {0} + random() * interval '0'", "SELECT n FROM ids WHERE at >= {0}"),
    "column of the same row": ("SELECT n FROM orders WHERE created_at >= at AND created_at <= at", "SELECT n FROM ids"),
    "sub-query of the same row": (
        "SELECT n FROM orders o WHERE n < 90 AND created_at >= (SELECT min(at) - interval '18 days 1 hour' FROM moments m "
        "WHERE m.n * 10 > o.n)",
        "SELECT n FROM ids o WHERE n < 90 AND at >= (SELECT min(at) - interval '18 days 1 hour' FROM moments m WHERE m.n * "
        "10 > o.n)"),
    "equal to a column": ("SELECT o.n FROM moments m JOIN orders o ON o.created_at = m.at", "SELECT o.n FROM moments m JOIN "
                                                            "ids o ON o.at = m.at"),
    "a layout of each row": ("SELECT n FROM (SELECT *, CASE WHEN n < 0 THEN 'si' ELSE 'twitter' END AS l FROM ids) i "
                             "WHERE flake_timestamp(id, l) >= {0}", "SELECT n FROM ids WHERE at >= {0}"),
    "CASE with another value": ("SELECT n FROM (SELECT n, CASE WHEN id >= 5 THEN flake_timestamp(id) ELSE now() END AS t "
                                "FROM ids) i "
                                "WHERE t >= {0}", "SELECT n FROM ids WHERE at >= {0}"),
}  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("shape", UNSERVED)
def test_filters_that_a_range_would_change_stay_filters(server, shape):
    queries = [query.format("'2026-01-19 00:00:15Z'::timestamptz") for query in UNSERVED[shape]]
    with server.connect(options="-c timezone=UTC") as db:
        plan = "\n".join(line for line, in db.execute(f"EXPLAIN (COSTS OFF, VERBOSE) {queries[0]}"))
        rows = [sorted(db.execute(query).fetchall()) for query in queries]
    assert "flake_timestamp(" in plan and "flake_plan.since" not in plan, plan
    assert rows[0] == rows[1]
    assert rows[0] or shape in ("date of it", "date_trunc", "any", "equal to a column")


def test_flake_during_serves_a_flattened_union_all(server):
    plan = first_plan(server, f"SELECT n FROM (SELECT * FROM orders UNION ALL SELECT * FROM orders) u WHERE "
                              f"flake_during(id, tstzrange({DAY}, NULL))")
    assert plan.count("Index Cond: ((id >= '") == 2, plan


def test_each_shape_returns_the_rows_of_the_stored_time(server):
    """The number of rows is the same as by the stored time."""
    ats = ["'2026-01-19Z'", "'2026-01-01 00:00:17Z'", "'2026-01-01 00:00:16.999999Z'", "'2026-01-01 00:00:17.000001Z'"]
    with server.connect(options="-c timezone=UTC") as db:
        for operator, at, table in itertools.product(["<", "<=", "=", ">=", ">"], ats, ["orders", "barred", "readable"]):
            more = " AND n % 2 = 0" if table == "barred" else ""
            wanted = db.execute(f"SELECT count(*) FROM ids WHERE at {operator} {at}{more}").fetchone()
            found = db.execute(f"SELECT count(*) FROM {table} WHERE created_at {operator} {at}").fetchone()
            assert found == wanted, (operator, at, table)


@pytest.mark.parametrize("sides", [[("a", ">=", "since")] * 2, [("a", ">=", "since"), ("b", "<=", "until")]],
                         ids=["one column", "two columns"])  # fmt: skip
def test_many_filters_are_planned_fast(server, sides):
    """Each filter may close the range of every other one. Processor time is measured, because the planner also needs time for
    the ranges."""
    written = ["flake_timestamp({key}) {operator} now() - interval '{n} s'",
               "{key} {operator} flake_plan.{end}(now() - interval '{n} s', 'twitter')"]  # fmt: skip
    with server.connect(options="-c jit=off") as db:
        db.execute("CREATE TEMP TABLE two (a bigint, b bigint); SELECT flake_timestamp(1)")
        took = []
        for shape in written:
            conditions = [shape.format(key=key, operator=operator, end=end, n=n)
                          for n in range(2000) for key, operator, end in sides]  # fmt: skip
            before = processor_seconds(db)
            for _ in range(3):
                text = "".join(line for line, in db.execute(f"EXPLAIN SELECT FROM two WHERE {' AND '.join(conditions)}"))
            assert "flake_plan.since(" in text and "flake_timestamp(" not in text
            took.append(processor_seconds(db) - before)
    print(took)
    assert took[0] < 6 * took[1], took
