"""Random queries on keys of both kinds return the same rows by every plan: with and without indexes, partitions, parallel
workers and JIT, with literal values, with generic plans, and in PL/pgSQL."""

import os
import random
import time

import pytest

LASTS = 5 * int(os.environ.get("FLAKE_SOAK", "1"))
# An ID of one of these layouts is possible in the others, and in order up to the year 2070.
LAYOUTS = ["twitter", "snowflake", "discord", "leaf", "odd"]
TABLES = {
    "bare": "CREATE TABLE bare (LIKE keys)",
    "indexed": "CREATE TABLE indexed (LIKE keys); CREATE INDEX ON indexed (id); CREATE INDEX ON indexed (sid); "
    "CREATE INDEX ON indexed (flake_timestamp(id)); CREATE INDEX ON indexed (sno_metabyte(sid), id)",
    "summarized": "CREATE TABLE summarized (LIKE keys); CREATE INDEX ON summarized USING brin (id) WITH (pages_per_range = 1); "
    "CREATE INDEX ON summarized USING brin (sid) WITH (pages_per_range = 1); CREATE INDEX ON summarized USING hash (sid)",
    "by_id": "CREATE TABLE by_id (LIKE keys) PARTITION BY RANGE (id); CREATE INDEX ON by_id (id); "
    "CREATE TABLE by_id_1 PARTITION OF by_id FOR VALUES FROM (MINVALUE) TO (flake_min('2025-01-01Z')); "
    "CREATE TABLE by_id_2 PARTITION OF by_id FOR VALUES FROM (flake_min('2025-01-01Z')) TO (flake_min('2032-01-01Z')); "
    "CREATE TABLE by_id_3 PARTITION OF by_id DEFAULT",
    "by_sid": "CREATE TABLE by_sid (LIKE keys) PARTITION BY HASH (sid); CREATE INDEX ON by_sid (sid); "
    + "; ".join(f"CREATE TABLE by_sid_{n} PARTITION OF by_sid FOR VALUES WITH (MODULUS 3, REMAINDER {n})" for n in range(3)),
    "by_time": "CREATE TABLE by_time (LIKE keys) PARTITION BY RANGE (sid); CREATE INDEX ON by_time (sid); "
    "CREATE TABLE by_time_1 PARTITION OF by_time FOR VALUES FROM (MINVALUE) TO (sno_min('2028-01-01Z')); "
    "CREATE TABLE by_time_2 PARTITION OF by_time FOR VALUES FROM (sno_min('2028-01-01Z')) TO (MAXVALUE); "
    "CREATE TABLE by_time_3 PARTITION OF by_time DEFAULT",
}
PARALLEL = {
    "parallel_setup_cost": 0, "parallel_tuple_cost": 0, "min_parallel_table_scan_size": 0, "min_parallel_index_scan_size": 0,
    "max_parallel_workers_per_gather": 2,
}  # fmt: skip
ALONE = {"max_parallel_workers_per_gather": 0}
COMPILED = {"jit": "on", "jit_above_cost": 0, "jit_inline_above_cost": -1, "jit_optimize_above_cost": -1}
METHODS = ["seqscan", "indexscan", "indexonlyscan", "bitmapscan", "hashjoin", "mergejoin", "nestloop", "hashagg", "memoize",
           "partition_pruning", "material", "sort"]  # fmt: skip
# The types of the parameters.
TYPES = ["tstzrange", "text", "timestamptz", "sno"]
# The plans of a run must contain these; otherwise it has tested too little.
SHOWN = ["Index Scan", "Bitmap", "Seq Scan", "Gather", "InitPlan", "SubPlan", "flake_plan.first($", "flake_plan.first(",
         "flake_during(", "Subplans Removed", "Join", "Nested Loop", "Parallel "]  # fmt: skip


@pytest.fixture(scope="module")
def db(server):
    with server.connect() as db:
        definition = '{"like": "twitter", "epoch": "2012-01-01T00:00:00Z", "tick": "700us"}'
        db.execute("SELECT flake_create_layout('odd', %s)", (definition,))
        db.execute("SELECT setseed(0.5)")
        db.execute(f"""
            CREATE TABLE keys (n integer, layout text, id bigint, sid sno, span tstzrange);
            INSERT INTO keys
            SELECT n, layout, CASE WHEN n % 50 > 0 THEN flake_min(at, layout) + (random() * 1000000)::int END,
                   CASE WHEN n % 40 > 0 THEN sno_make(at, n % 256, n % 7, n % 3) END,
                   CASE WHEN n % 30 > 0 THEN tstzrange(at, at + random() * interval '100 days', '[]') END
            FROM generate_series(1, 1000) n,
                 LATERAL (SELECT ('{{{",".join(LAYOUTS)}}}'::text[])[1 + n % {len(LAYOUTS)}] AS layout,
                                 timestamptz '2022-01-01Z' + (random() ^ 2 + 0 * n) * interval '18 years' AS at) s;
            INSERT INTO keys SELECT n + 10000, layout, id, sid, span FROM keys WHERE n % 20 = 1;
            CREATE TABLE spans AS SELECT n, span, layout FROM keys ORDER BY n LIMIT 30;
            CREATE FUNCTION keep(span tstzrange) RETURNS tstzrange LANGUAGE plpgsql AS 'BEGIN RETURN span; END'""")
        for table, definition in TABLES.items():
            db.execute(f"{definition}; INSERT INTO {table} SELECT * FROM keys")
        db.execute("ANALYZE")
        yield db


class Query:
    """A random query of one text. It has parameters $1 to $4, and {table} for its table."""

    def __init__(self, chance):
        self.chance = chance
        self.values = [[self.literal(type) for type in TYPES] for _ in range(2)]
        self.condition = self.any_condition("t.", depth=2)
        kind = chance.choice(["filter", "filter", "count", "group", "first", "join", "left join", "in", "makes"])
        where = f"WHERE {self.condition}"
        other = self.any_condition("u.", depth=0)
        self.inner = {
            "filter": f"SELECT n, t.id, t.sid FROM {{table}} t {where}",
            "count": "SELECT count(*), sum(n), min(t.id), max(t.sid), min(t.sid), count(DISTINCT t.sid), "
            f"count(*) FILTER (WHERE {self.any_condition('t.', depth=0)}) FROM {{table}} t {where}",
            "group": f"SELECT sno_metabyte(t.sid) % 4 AS byte, count(*), max(t.sid) FROM {{table}} t {where} GROUP BY 1",
            "first": f"SELECT t.sid, n FROM {{table}} t {where} ORDER BY t.sid {chance.choice(['', 'DESC'])}, n LIMIT 5",
            "join": f"SELECT t.n, u.n AS other FROM {{table}} t JOIN {{table}} u ON t.sid = u.sid AND {other} {where}",
            "left join": "SELECT s.n, count(t.n), max(t.sid) FROM spans s "
            f"LEFT JOIN {{table}} t ON {chance.choice(['sno_during(t.sid, s.span)', 'flake_during(t.id, s.span, s.layout)'])} "
            f"AND {self.condition} GROUP BY s.n",
            "in": f"SELECT n FROM {{table}} t {where} AND t.sid {chance.choice(['', 'NOT'])} IN "
            f"(SELECT u.sid FROM {{table}} u WHERE u.sid IS NOT NULL AND {other})",
            # A call in FROM makes one ID, and a call in the select list makes one for each row.
            "makes": "SELECT count(*), count(DISTINCT f), count(DISTINCT g), count(DISTINCT h) "
            "FROM (SELECT f.f, g, flake_next('twitter') AS h "
            f"FROM {{table}} t, flake_next('twitter') f, sno_next() g {where} OFFSET 0) s",
        }[kind]
        self.is_filter = kind == "filter"

    def at(self):
        return f"{self.chance.choice([2022, 2024, 2025, 2026, 2028, 2032, 2039])}-0{self.chance.randint(1, 9)}-01 12:00Z"

    def literal(self, type):
        if type == "tstzrange":
            ends = sorted([self.at(), self.at()])
            if self.chance.random() < 0.1:
                return self.chance.choice(["empty", "(,)"])
            lower, upper = (end if self.chance.random() < 0.9 else "" for end in ends)
            return f"{self.chance.choice('[(')}{lower},{upper}{self.chance.choice('])')}"
        return {"text": lambda: self.chance.choice(LAYOUTS), "timestamptz": self.at, "sno": lambda: "9d5ve82222224229"}[type]()

    def instant(self):
        return self.chance.choice([f"'{self.at()}'::timestamptz", "$3", f"(SELECT lower(span) FROM spans WHERE n = {self.row()})",
                                   "(SELECT max(upper(span)) FROM spans)"])  # fmt: skip

    def row(self):
        return self.chance.randint(1, 29)

    def span(self, prefix):
        bounds = self.chance.choice(["[]", "[)", "()", "(]"])
        return self.chance.choice([
            f"'{self.literal('tstzrange')}'::tstzrange", "$1", f"(SELECT span FROM spans WHERE n = {self.row()})",
            f"tstzrange({self.instant()}, NULL, '{bounds}')", f"tstzrange(NULL, {self.instant()}, '{bounds}')",
            f"$1 * (SELECT span FROM spans WHERE n = {self.row()})", f"{prefix}span",
            f"(SELECT s.span FROM spans s WHERE s.n = {prefix}n % 40)", "tstzrange($3, $3 + interval '900 days')",
        ])  # fmt: skip

    def layout(self, prefix):
        return self.chance.choice([f"'{self.chance.choice(LAYOUTS)}'", "$2", f"{prefix}layout",
                                   f"(SELECT layout FROM spans WHERE n = {self.row()})"])  # fmt: skip

    def any_condition(self, prefix, depth):
        if depth and self.chance.random() < 0.6:
            form = self.chance.choice(["({} AND {})", "({} AND {})", "({} OR {})", "({} AND NOT COALESCE({}, false))"])
            return form.format(self.any_condition(prefix, depth - 1), self.any_condition(prefix, depth - 1))
        compare = self.chance.choice(["<", "<=", ">=", ">"])
        one, other = self.chance.choice([("min", "max"), ("max", "min"), ("min", "min")])
        return self.chance.choice([
            f"flake_during({prefix}id, {self.span(prefix)})",
            f"flake_during({prefix}id, {self.span(prefix)}, {self.layout(prefix)})",
            f"sno_during({prefix}sid, {self.span(prefix)})", f"sno_during({prefix}sid, {self.span(prefix)})",
            f"{prefix}id {compare} flake_{one}({self.instant()}, {self.layout(prefix)})",
            f"{prefix}id BETWEEN flake_{one}({self.instant()}) AND flake_{other}({self.instant()})",
            f"flake_timestamp({prefix}id) {compare} {self.instant()}",
            f"flake_timestamp({prefix}id, {self.layout(prefix)}) {compare} {self.instant()}",
            f"{prefix}sid {compare} sno_{one}({self.instant()})", f"{prefix}sid {compare} $4",
            f"{prefix}sid = ANY (ARRAY(SELECT k.sid FROM keys k WHERE k.n < 100 AND k.span && $1))",
            f"(flake_decode({prefix}id, {self.layout(prefix)})).created_at {compare} {self.instant()}",
        ])  # fmt: skip

    def text(self, table, parameters):
        """The query with these expressions for its parameters, as one text."""
        inner = substitute(self.inner, parameters).replace("{table}", table)
        return f"SELECT coalesce(string_agg(q::text, ';' ORDER BY q::text), '') FROM ({inner}) q"


def substitute(text, parameters):
    for number, parameter in enumerate(parameters, 1):
        text = text.replace(f"${number}", parameter)
    return text


def literals(values):
    return [f"'{value}'::{type}" for value, type in zip(values, TYPES, strict=True)]


def configure(db, *settings):
    db.execute("RESET ALL; SET timezone = 'UTC'; SET statement_timeout = '60s'")
    db.execute("; ".join(f"SET {key} = {value}" for some in settings for key, value in some.items()))


def expected(db, query):
    """Returns the rows when flake_during and sno_during stay calls."""
    configure(db, ALONE, {"jit": "off", "enable_indexscan": "off", "enable_bitmapscan": "off", "enable_indexonlyscan": "off"})
    texts = [query.text("bare", literals(values)) for values in query.values]
    return [db.execute(with_calls(text)).fetchone()[0] for text in texts]


def with_calls(text):
    """Returns the query with spans that the planner takes for volatile."""
    for function in "flake_during(", "sno_during(":
        pieces = text.split(function)
        text = pieces[0] + "".join(function + keep_second_argument(piece) for piece in pieces[1:])
    return text


def keep_second_argument(piece):
    """Changes `id, span) …` to `id, keep(span)) …`."""
    start = piece.index(",") + 1
    depth = 0
    for end in range(start, len(piece)):
        if depth == 0 and piece[end] in ",)" and not is_quoted(piece, end):
            return f"{piece[:start]} keep({piece[start:end]}){piece[end:]}"
        if not is_quoted(piece, end):
            depth += {"(": 1, ")": -1}.get(piece[end], 0)
    raise AssertionError(piece)


def is_quoted(text, place):
    return text.count("'", 0, place) % 2 == 1


def run(db, query, mode, table):
    """Runs the query with both lists of values. Returns the texts and the plan."""
    if mode in ("generic", "custom"):
        db.execute(f"SET plan_cache_mode = force_{mode}_plan")
        db.execute(f"PREPARE query({', '.join(TYPES)}) AS {query.text(table, ['$1', '$2', '$3', '$4'])}")
        calls = [f"EXECUTE query({', '.join(literals(values))})" for values in query.values]
    elif mode in ("function", "loop"):
        names = ["p1", "p2", "p3", "p4"]
        body, declared = f"RETURN QUERY {query.text(table, names)};", ""
        if mode == "loop":
            condition, declared = substitute(query.condition, names), "DECLARE t record; rows text[] := '{}';"
            body = f"""FOR t IN SELECT * FROM {table} LOOP
                           IF {condition} THEN rows := rows || ROW(t.n, t.id, t.sid)::text; END IF;
                       END LOOP;
                       RETURN QUERY SELECT coalesce(string_agg(r, ';' ORDER BY r), '') FROM unnest(rows) r;"""
        arguments = ", ".join(f"{name} {type}" for name, type in zip(names, TYPES, strict=True))
        db.execute(f"""CREATE FUNCTION pg_temp.run({arguments}) RETURNS SETOF text LANGUAGE plpgsql AS $$
                       {declared} BEGIN {body} END $$""")
        calls = [f"SELECT pg_temp.run({', '.join(literals(values))})" for values in query.values]
    else:
        calls = [query.text(table, literals(values)) for values in query.values]
    with db.transaction():
        texts = [db.execute(call).fetchone()[0] for call in calls]
        plan = "\n".join(line for line, in db.execute(f"EXPLAIN {calls[0]}"))
    db.execute("DEALLOCATE ALL; DROP FUNCTION IF EXISTS pg_temp.run(tstzrange, text, timestamptz, sno)")
    return texts, plan


@pytest.mark.matrix
def test_random_queries_return_the_same_rows_by_every_plan(db):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    jit, = db.execute("SELECT pg_jit_available()").fetchone()
    shown, runs, not_empty = set(), 0, 0
    wants = {*SHOWN, *(["JIT:"] if jit else [])}
    ends = time.monotonic() + LASTS
    # A slow machine takes longer to see all plans.
    while time.monotonic() < ends or (runs < 4000 and (wants - shown or not_empty <= 5)):
        query = Query(chance)
        wanted = expected(db, query)
        not_empty += wanted[0] not in ("", "(0)")
        for _ in range(4):
            modes = ["literal", "generic", "generic", "custom", "function"]
            mode = chance.choice([*modes, "loop", "loop"] if query.is_filter else modes)
            table = chance.choice(list(TABLES))
            off = {f"enable_{method}": "off" for method in METHODS if chance.random() < 0.2}
            # In a loop, workers and compilation would start for each row.
            workers = ALONE if mode == "loop" else chance.choice([PARALLEL, ALONE, ALONE])
            if workers is PARALLEL:
                # The same holds for a nested loop that cannot materialize its inner side.
                off.pop("enable_material", None)
            compiled = COMPILED if jit and mode != "loop" and chance.random() < 0.1 else {"jit": "off"}
            configure(db, off, compiled, workers)
            texts, plan = run(db, query, mode, table)
            assert texts == wanted, (seed, mode, table, off, compiled, workers, query.inner, query.values, plan)
            shown.update(what for what in wants if what in plan)
            runs += 1
    print(runs, "plans,", not_empty, "queries with rows")
    assert not_empty > 5 and shown == wants, wants - shown
