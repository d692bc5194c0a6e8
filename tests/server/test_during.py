"""Queries by time over many IDs: their plans, and their rows compared with the time in the IDs."""

import itertools

import psycopg
import pytest


@pytest.fixture(scope="module")
def many(server):
    """A table with an ID for every 51 seconds of 197 days."""
    with server.connect() as db:
        db.execute("""
            CREATE TABLE ids (id bigint PRIMARY KEY);
            INSERT INTO ids SELECT flake_min(timestamptz '2026-01-01Z') + (n * 51000::bigint << 22) + n % 4194304
            FROM generate_series(0, 333333) n;
            ANALYZE ids""")
        db.execute("CREATE INDEX ids_time ON ids (flake_timestamp(id))")
        db.execute("SET timezone = 'UTC'")
        yield db


def plan(db, query, *parameters):
    return "\n".join(line for line, in db.execute("EXPLAIN (COSTS OFF) " + query, parameters or None))


def test_a_span_is_planned_as_a_range_of_ids(many):
    literal = plan(many, "SELECT * FROM ids WHERE flake_during(id, '[2026-03-01Z,2026-03-02Z)')")
    assert "using ids_pkey" in literal and "Index Cond: ((id >= '" in literal
    now = plan(many, "SELECT * FROM ids WHERE flake_during(id, tstzrange(now() - interval '1 hour', now()))")
    assert "Index Cond: ((id >= flake_plan.first(tstzrange((now()" in now
    many.execute("SET plan_cache_mode = force_generic_plan")
    many.execute("PREPARE during(tstzrange) AS SELECT * FROM ids WHERE flake_during(id, $1)")
    generic = plan(many, "EXECUTE during('[2026-03-01Z,2026-03-02Z)')")
    many.execute("RESET plan_cache_mode")
    assert "flake_plan.first($1" in generic and "Cond: ((id >=" in generic
    # The planner knows how many rows to expect.
    rows = many.execute("EXPLAIN (FORMAT json) SELECT * FROM ids WHERE flake_during(id, '[2026-03-01Z,2026-03-02Z)')")
    assert 800 < rows.fetchone()[0][0]["Plan"]["Plan Rows"] < 3400


@pytest.fixture(scope="module")
def spans(many):
    many.execute("""
        CREATE TABLE spans (n integer, span tstzrange, layout text);
        INSERT INTO spans SELECT n, tstzrange(at, at + interval '1 hour'), 'twitter'
        FROM (SELECT n, timestamptz '2026-01-01Z' + n * interval '1 day' AS at FROM generate_series(0, 190) n) s;
        CREATE TABLE snos (id sno PRIMARY KEY);
        INSERT INTO snos SELECT sno_make(timestamptz '2026-01-01Z' + n * interval '17 s') FROM generate_series(0, 99999) n;
        ANALYZE spans, snos""")
    return many


@pytest.fixture(scope="module")
def dear(spans):
    """Functions that record their calls, the list of calls, and a table with fewer IDs."""
    told = []
    spans.execute("""
        CREATE TABLE near (id bigint PRIMARY KEY);
        INSERT INTO near SELECT id FROM ids WHERE flake_during(id, '[2026-01-07Z,2026-01-10Z)');
        ANALYZE near""")
    for name, type, result in [("span", "tstzrange", "[2026-01-08Z,2026-01-08 01:00Z)"), ("layout", "text", "twitter")]:
        spans.execute(f"""
            CREATE FUNCTION dear_{name}(n integer) RETURNS {type} STABLE LANGUAGE plpgsql
                AS $$BEGIN RAISE NOTICE 'called'; RETURN '{result}'; END$$""")
    spans.add_notice_handler(lambda notice: told.append(notice.message_primary))
    return told


@pytest.mark.parametrize("condition", [
    "flake_during(id, dear_span(7))", "flake_during(id, dear_span(7), dear_layout(7))",
    "flake_during(id, dear_span(7)) AND flake_during(id, dear_span(8))",
])  # fmt: skip
def test_an_expensive_function_is_not_called_for_each_row(spans, dear, condition):
    """The planner itself calls the function to estimate the number of rows."""
    query = f"SELECT count(*) FROM ids WHERE {condition}"
    text = plan(spans, query)
    assert "Index Cond: ((id >= flake_plan.first(" in text and "flake_during" not in text, text
    dear.clear()
    assert spans.execute(query).fetchone() == (71,)
    assert 2 <= len(dear) // condition.count("dear") <= 6


UNION = """SELECT n, count(*) FROM (SELECT id, 7 AS n FROM near UNION ALL SELECT id, 8 FROM near) u
    WHERE flake_during(id, {}) GROUP BY n ORDER BY n"""
EXISTS = """SELECT count(*) FILTER (
        WHERE EXISTS (SELECT FROM ids WHERE ids.id = k.id AND flake_during(ids.id, dear_span(7))) AND {})
    FROM (SELECT id, 8::bigint AS n FROM near WHERE flake_during(id, '[2026-01-08 00:30Z,2026-01-08 02:00Z)')) k"""
# Places of a call with an expensive function, with the number of ranges and the rows.
PLACES = {
    "of an outer row": (
        "SELECT n, (SELECT count(*) FROM ids WHERE flake_during(id, dear_span(s.n))) FROM spans s WHERE n < 3 ORDER BY n",
        1, [(n, 71) for n in range(3)]),
    # In each branch a column is a constant, which the planner learns late.
    "below UNION ALL, of a column": (UNION.format("dear_span(u.n)"), 2, [(7, 71), (8, 71)]),
    "below UNION ALL": (UNION.format("dear_span(7)"), 2, [(7, 71), (8, 71)]),
    # The planner plans EXISTS twice, and simplifies it a third time in between.
    "below EXISTS": (EXISTS.format("true"), 1, [(35,)]),
    "below EXISTS, beside another": (EXISTS.format("flake_during(n, dear_span(8))"), 1, [(0,)]),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_an_expensive_function_makes_a_range_in_any_place(spans, dear, place):
    query, ranges, rows = PLACES[place]
    text = plan(spans, query)
    assert text.count("Index Cond: ((id >= flake_plan.first(") >= ranges, text
    assert spans.execute(query).fetchall() == rows


def test_a_call_without_a_column_stays_a_call(spans, dear):
    assert "One-Time Filter: flake_during(" in plan(spans, "SELECT FROM ids WHERE flake_during(1, dear_span(7))")
    spans.execute("PREPARE fixed(bigint) AS SELECT FROM ids WHERE flake_during($1, dear_span(7))")
    spans.execute("SET plan_cache_mode = force_generic_plan")
    assert "One-Time Filter: flake_during(" in plan(spans, "EXECUTE fixed(1)")
    spans.execute("RESET plan_cache_mode; DEALLOCATE fixed")


@pytest.mark.parametrize("span", [
    "tstzrange(clock_timestamp() - interval '1 hour', NULL)", "(SELECT span FROM spans WHERE random() < 2 LIMIT 1)",
    "(SELECT span FROM spans WHERE spans.n = ids.id % 191)", "(SELECT span FROM spans WHERE n = 7)",
], ids=["volatile", "volatile sub-query", "sub-query for each row", "sub-query"])  # fmt: skip
def test_calls_that_a_range_would_change_stay_calls(spans, span):
    text = plan(spans, f"SELECT * FROM ids WHERE flake_during(id, {span})")
    assert "Filter: flake_during(id, " in text and "Index Cond" not in text, text


@pytest.mark.matrix
def test_a_call_returns_what_the_range_does(spans):
    """With a volatile argument it stays a call."""
    spans.execute("CREATE FUNCTION keep(span tstzrange) RETURNS tstzrange LANGUAGE sql VOLATILE AS 'SELECT span'")
    spans.execute("CREATE TABLE few AS SELECT id FROM ids WHERE id % 997 = 0")
    spans.execute("CREATE TABLE few_snos AS SELECT id FROM snos LIMIT 999")
    spans.execute("INSERT INTO few VALUES (NULL), (0), (9223372036854775807), (-1), (-9223372036854775808)")
    spans.execute("INSERT INTO few_snos VALUES (NULL), ('2222222222222222'), ('xxxxxxxxxxxxxxxx')")
    ends = ["", "2026-01-01Z", "2026-01-01 00:00:00.000001Z", "2026-01-01 03:00Z", "infinity", "-infinity", "1999-01-01Z",
            "2010-11-04 01:42:54.657Z", "2080-07-10 17:30:30.208999Z", "2080-07-10 17:30:30.209Z", "2100-01-01Z",
            "4714-11-24 BC", "294276-12-31 23:59:59.999999Z"]  # fmt: skip
    compared = 0
    for left, lower, upper, right in itertools.product("[(", ends, ends, "])"):
        literal = "empty" if left == "[" and not lower + upper else f"{left}{lower},{upper}{right}"
        try:
            spans.execute("SELECT %s::tstzrange", (literal,))
        except psycopg.errors.DataException:
            continue  # the lower end is above the upper one
        compared += 1
        for table, function in [("few", "flake_during"), ("few_snos", "sno_during")]:
            call, span = spans.execute(f"""
                SELECT array_agg({function}(id, keep(%s::tstzrange)) ORDER BY id),
                       array_agg({function}(id, %s::tstzrange) ORDER BY id)
                FROM {table}""", (literal, literal)).fetchone()  # fmt: skip
            assert call == span, (literal, function)
    assert compared > 300


@pytest.fixture
def few(server):
    """A schema with some IDs, one of them without a time, and with the function without its planner support."""
    with server.connect() as db:
        db.execute("""
            CREATE SCHEMA few;
            SET search_path = few, public;
            CREATE FUNCTION asked(id bigint, span tstzrange, layout text DEFAULT 'twitter') RETURNS boolean
                IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'flake', 'flake_during';
            CREATE TABLE spans AS SELECT 1 AS n, tstzrange('2024-01-01Z', '2025-01-01Z') AS span;
            CREATE TABLE ids AS
                SELECT n, flake_min('2023-01-01Z'::timestamptz + n * interval '100 days') AS id, 'twitter' AS layout
                FROM generate_series(1, 12) n;
            INSERT INTO ids VALUES (13, NULL, 'gone')""")
        yield db
        db.execute("DROP SCHEMA few CASCADE")


def both(db, query):
    """Runs a query that calls {during}. The rows must be the same without planner support."""
    found = [db.execute(query.format(during=function)).fetchall() for function in ("flake_during", "asked")]
    assert found[0] == found[1], query
    return found[0]


def test_a_range_below_another_sub_query_finds_its_parameters(few):
    """If an operator with a sub-query calls the function, the function's parameters belong to that sub-query."""
    few.execute("""CREATE FUNCTION dear(span tstzrange) RETURNS tstzrange STABLE LANGUAGE plpgsql AS 'BEGIN RETURN span; END'""")
    for function in "flake_during", "asked":
        few.execute(f"""
            CREATE FUNCTION in_dear_{function}(id bigint, span tstzrange) RETURNS boolean STABLE
                LANGUAGE sql AS 'SELECT {function}($1, dear($2))';
            CREATE FUNCTION contains_{function}(span tstzrange, id bigint) RETURNS boolean IMMUTABLE
                LANGUAGE sql AS 'SELECT {function}($2, $1)';
            CREATE FUNCTION of_json_{function}(layout text, id jsonb) RETURNS boolean IMMUTABLE
                LANGUAGE sql AS $$SELECT {function}((id->>'id')::bigint, '(,)', layout)$$""")
    few.execute("""
        CREATE OPERATOR &&! (FUNCTION = in_dear_flake_during, LEFTARG = bigint, RIGHTARG = tstzrange);
        CREATE OPERATOR &&? (FUNCTION = in_dear_asked, LEFTARG = bigint, RIGHTARG = tstzrange);
        CREATE OPERATOR @@! (FUNCTION = contains_flake_during, LEFTARG = tstzrange, RIGHTARG = bigint);
        CREATE OPERATOR @@? (FUNCTION = contains_asked, LEFTARG = tstzrange, RIGHTARG = bigint);
        CREATE OPERATOR ##! (FUNCTION = of_json_flake_during, LEFTARG = text, RIGHTARG = jsonb);
        CREATE OPERATOR ##? (FUNCTION = of_json_asked, LEFTARG = text, RIGHTARG = jsonb)""")
    for query, rows in [
        ("SELECT (SELECT span FROM spans) @@{} ANY (SELECT id FROM ids WHERE id IS NOT NULL)", [(True,)]),
        ("SELECT (SELECT span FROM spans) @@{} ALL (SELECT id FROM ids WHERE id IS NOT NULL)", [(False,)]),
        ("SELECT count(*) FROM spans WHERE (SELECT span FROM spans) @@{} ANY (SELECT id FROM ids WHERE ids.n > spans.n)", [(1,)]),
        ("""SELECT (SELECT 'twitter'::text FROM generate_series(1, 1)) OPERATOR(few.##{}) ANY (SELECT '{{"id": 1}}'::jsonb)""",
         [(True,)]),
        ("SELECT count(*) FROM ids WHERE id &&{} ANY (SELECT span FROM spans) OR n < 0", [(4,)]),
    ]:  # fmt: skip
        assert [few.execute(query.format(sign)).fetchall() for sign in "!?"] == [rows, rows], query


def test_it_can_be_grouped_in_several_ways(few):
    arguments = "(id, '[2024-01-01Z,2025-01-01Z)')"
    call = f"{{during}}{arguments}"
    both(few, f"SELECT {call} a, NOT {call} b, count(*) FROM ids GROUP BY ROLLUP ({call}) ORDER BY 1, 2, 3")
    both(few, f"SELECT {call} AND n = 1 a, n, count(*) FROM ids GROUP BY CUBE ({call} AND n = 1, n) ORDER BY 1, 2, 3")
    both(few, f"SELECT n, count(*) FROM ids WHERE {call} GROUP BY ROLLUP (n) ORDER BY 1")
    # A call that the query does not group by becomes a range.
    assert "flake_during" not in plan(few, f"SELECT n FROM ids WHERE flake_during{arguments} GROUP BY ROLLUP (n)")


def test_a_call_that_is_never_executed_raises_no_error(few):
    """Without an ID or without a row, the layout is not looked up."""
    span = "'[2024-01-01Z,2025-01-01Z)'"
    assert both(few, f"SELECT count(*) FROM ids WHERE {{during}}(id, {span}, layout)") == [(4,)]
    assert both(few, f"SELECT count(*) FROM ids WHERE id IS NULL AND {{during}}(id, {span}, 'gone')") == [(0,)]
    case = f"SELECT count(*) FROM ids WHERE CASE WHEN layout = 'none' THEN {{during}}(n, {span}, 'uniqueid') ELSE true END"
    assert both(few, case) == [(13,)]
    # After a span that ends in the year 2120, IDs of discord are negative.
    late = "'[2024-01-01Z,2120-01-01Z)', 'discord'"
    assert both(few, case.replace(f"{span}, 'uniqueid'", late)) == [(13,)]
    assert both(few, f"SELECT count(*) FROM ids WHERE id IS NULL AND {{during}}(id, {late})") == [(0,)]
    with pytest.raises(psycopg.errors.DatetimeFieldOverflow):
        few.execute(f"SELECT flake_during(n, {late}) FROM ids")
    for layout in "gone", "uniqueid":
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            few.execute(f"SELECT flake_during(1, {span}, '{layout}')")
