"""Random filters by time on tables with ordinary and extreme IDs, by every kind of plan. They return the same rows as when the
planner does not know that they are filters by time. FLAKE_SOAK=20 tries 100,000. A third have lateral sub-queries: outer joins
make their times NULL in rows where the key is not."""

import os
import random

import pytest

SOAK = int(os.environ.get("FLAKE_SOAK", "1"))
CASES = 2000 if SOAK == 1 else 5000 * SOAK
ONE = """'{"epoch": "2020-01-01T00:00:00Z", "tick": "300us", "fields": [
    {"name": "one", "bits": 2, "role": "reserved", "value": 1}, {"name": "timestamp", "bits": 45, "role": "timestamp"},
    {"name": "sequence", "bits": 10, "role": "sequence"}]}'"""
LAYOUTS = ["twitter", "si", "base64id", "discord", "one"]
TABLES = [*LAYOUTS, "sno"]
# flake_during raises an error for spans that continue where IDs of a layout turn negative.
SPANNED = [table for table in TABLES if table != "discord"]
# The functions of spans, without their support of the planner.
ASKED = """
    CREATE FUNCTION asked(id bigint, span tstzrange, layout text) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE
        LANGUAGE c AS 'flake', 'flake_during';
    CREATE FUNCTION asked(id sno, span tstzrange) RETURNS boolean IMMUTABLE STRICT PARALLEL SAFE
        LANGUAGE c AS 'flake', 'sno_during'"""
PARALLEL = ["parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0",
            "min_parallel_index_scan_size = 0"]  # fmt: skip
COMPILED = ["jit = on", "jit_above_cost = 0", "jit_inline_above_cost = -1", "jit_optimize_above_cost = -1"]
METHODS = ["seqscan", "indexscan", "bitmapscan", "indexonlyscan", "nestloop", "hashjoin", "mergejoin", "partition_pruning"]
# As literals that other types accept too.
INSTANTS = """SELECT coalesce(quote_literal(at), 'NULL') FROM at_{}
              WHERE at IS NULL OR NOT isfinite(at) OR at BETWEEN '1900-01-01Z' AND '9999-01-01Z'"""
# The plans of a run must contain these; otherwise it has tested too little.
SHOWN = ["flake_plan.since(", "flake_plan.after(", "flake_plan.until(", "flake_plan.before(", "flake_plan.instant(",
         "flake_plan.first(", "flake_plan.last(", "flake_during(", "sno_during(", "Gather", "$1", "Index Cond",
         "One-Time Filter: false", "Filter", "Join", "BitmapOr", "Update", "Delete", "Merge on k_",
         "Left Join"]  # fmt: skip


@pytest.fixture(scope="module")
def db(server):
    with server.connect(options="-c timezone=Europe/Berlin -c jit=off") as db:
        db.execute(f"SELECT flake_create_layout('one', {ONE}); {ASKED}")
        for table in TABLES:
            key = "sno" if table == "sno" else "bigint"
            time = "sno_timestamp(id)" if table == "sno" else f"flake_timestamp(id, '{table}')"
            # Neighboring ticks, at the beginning and at the end of the layout, and where its IDs turn negative.
            made = {
                "sno": "SELECT sno_make('2026-01-01Z'::timestamptz + n / 3 * interval '4 ms', n % 256, n, n, n % 2 = 0) "
                "UNION ALL VALUES ('2222222222222222'::sno), ('xxxxxxxxxxxxxxxx')",
            }.get(table, f"""
                SELECT flake_make(at, '{{}}', '{table}') | (n % 3) FROM (
                    SELECT n, '2026-01-01Z'::timestamptz + n / 3 * tick AS at UNION ALL
                    SELECT n, epoch + n % 5 * tick UNION ALL SELECT n, ends_at - n % 5 * tick UNION ALL
                    SELECT n, sortable_until + (n % 9 - 4) * tick) s
                WHERE at BETWEEN epoch AND ends_at
                UNION ALL VALUES (CASE WHEN name IN ('twitter', 'discord') THEN 9223372036854775807
                                       ELSE flake_max(ends_at, name) END)""")  # fmt: skip
            layouts = "" if table == "sno" else f", (SELECT * FROM flake_layouts WHERE name = '{table}') l"
            db.execute(f"""
                CREATE TABLE k_{table} (id {key}, n integer);
                INSERT INTO k_{table} SELECT DISTINCT id FROM generate_series(0, 20) n {layouts}, LATERAL ({made}) m (id);
                WITH numbered AS (SELECT ctid, row_number() OVER (ORDER BY id) AS number FROM k_{table})
                UPDATE k_{table} k SET n = number FROM numbered WHERE numbered.ctid = k.ctid;
                INSERT INTO k_{table} VALUES (NULL, -1);
                CREATE INDEX ON k_{table} (id);
                CREATE TABLE p_{table} (id {key}, n integer) PARTITION BY RANGE (id)""")
            middle = "SELECT quote_literal(percentile_disc(0.5) WITHIN GROUP (ORDER BY id))"
            middle, = db.execute(f"{middle} FROM k_{table}").fetchone()
            db.execute(f"""
                CREATE TABLE p_{table}_1 PARTITION OF p_{table} FOR VALUES FROM (MINVALUE) TO ({middle});
                CREATE TABLE p_{table}_2 PARTITION OF p_{table} FOR VALUES FROM ({middle}) TO (MAXVALUE);
                CREATE TABLE p_{table}_3 PARTITION OF p_{table} DEFAULT;
                INSERT INTO p_{table} SELECT * FROM k_{table}; CREATE INDEX ON p_{table} (id);
                CREATE TABLE at_{table} AS SELECT row_number() OVER () AS n, at FROM (
                    SELECT DISTINCT at + o * interval '1 us' AS at FROM (SELECT {time} AS at FROM k_{table}) s,
                        unnest('{{-1, 0, 1}}'::int[]) o WHERE at IS NOT NULL
                    UNION ALL VALUES ('infinity'), ('-infinity'), (NULL), ('4714-11-24Z BC'), ('294276-12-31Z'),
                                     (now())) s""")  # fmt: skip
        db.execute("ANALYZE")
        yield db


class Query:
    """A random query. {key} stands for a key and {during} for the function of spans; $1 and $2 may be parameters."""

    def __init__(self, chance, table, instants):
        self.chance, self.table, self.instants = chance, table, instants
        self.values = [chance.choice(instants), chance.choice(instants)]
        self.type = chance.choice(["timestamptz", "timestamptz", "timestamp", "date"])
        self.view = None
        if chance.random() < 1 / 3:
            self.text = self.lateral()
            return
        condition = self.condition(depth=2)
        source, beside = f"{chance.choice('kp')}_{table}", f"at_{table}"
        joined = self.comparison(chance.choice(["o.at", "o.at", "o.at + interval '1 us'"]))
        self.text = chance.choice([
            f"SELECT n FROM {source} t WHERE {condition}", f"SELECT n FROM {source} t WHERE {condition}",
            f"SELECT n FROM {source} t WHERE {condition}",
            f"SELECT t.n, o.n FROM {source} t JOIN {beside} o ON {joined} WHERE o.n % 19 = {chance.randrange(19)} AND "
            f"{condition}",
            f"SELECT o.n, t.n FROM {beside} o LEFT JOIN {source} t ON {joined} AND {condition} WHERE o.n % 19 = "
            f"{chance.randrange(19)}",
            f"SELECT t.n, u.n FROM {source} t LEFT JOIN {source} u ON u.n = t.n + 1 LEFT JOIN {beside} o ON {joined} AND "
            f"{condition}"
            f" WHERE t.n % 7 = {chance.randrange(7)}",
            f"SELECT o.n FROM {beside} o WHERE o.n % 7 = {chance.randrange(7)} AND {chance.choice(['', 'NOT'])} EXISTS "
            f"(SELECT FROM {source} t WHERE {joined} AND {condition})",
            f"SELECT n % 3, count(*) FROM {source} t WHERE {condition} GROUP BY ROLLUP (n % 3)",
            f"SELECT max(t.id), count(*) FROM {source} t WHERE {condition}",
            f"DELETE FROM {source} t WHERE {condition} RETURNING n",
            f"UPDATE {source} t SET n = 1000 + n WHERE {condition} RETURNING n",
            f"DELETE FROM {source} t USING {beside} o WHERE o.n % 19 = 2 AND {joined} AND {condition} RETURNING t.n",
            f"SELECT n FROM (SELECT * FROM {source} UNION ALL SELECT * FROM {source} WHERE n > 5) t WHERE {condition}",
        ])  # fmt: skip

    def lateral(self):
        """A query with a sub-query that refers to a table beside it, perhaps in a view, and returns its time or its key. Most
        rows of the table have no match, so outer joins make the results of the sub-query NULL."""
        chance = self.chance
        source, other = f"{chance.choice('kp')}_{self.table}", f"k_{self.table}"
        # The key may belong to the table beside the sub-query, or to a table in it.
        inner = chance.choice([
            f"{other} b", f"{other} b JOIN {other} c ON c.n = b.n", f"{other} b LEFT JOIN {other} c ON c.n = b.n + 1",
            f"(SELECT * FROM {other} WHERE n % 2 = 0 OFFSET 0) b", "generate_series(1, 3) b (n)",
        ])  # fmt: skip
        if chance.random() < 0.6:
            column, name, asked = f"{self.time()} AS ts", "ts", "s.ts"
        else:
            column, name, asked = "{key} AS id", "id", self.time().replace("{key}", "s.id")
        lateral = f"LATERAL (SELECT {column} FROM {inner} WHERE b.n = t.n AND b.n % {chance.choice([2, 3, 5])} = 0) s"
        joined = f"{source} t {chance.choice(['LEFT JOIN', 'LEFT JOIN', 'LEFT JOIN', 'JOIN'])} {lateral} ON true"
        if chance.random() < 0.3:
            self.view = f"CREATE TEMP VIEW v AS SELECT t.n, s.{name} FROM {joined}"
            joined, asked = "v", asked.replace("s.", "v.").replace("t.n", "v.n")
        number, nested = ("v.n", "v") if self.view else ("t.n", f"({joined})")
        conditions = [f"{asked} {chance.choice(['<', '<=', '=', '>=', '>'])} {self.instant()}" for _ in range(2)]
        condition = chance.choice([conditions[0], conditions[0], " AND ".join(conditions), f"({' OR '.join(conditions)})",
                                   f"{conditions[0]} AND {number} > {chance.randrange(100)}"])  # fmt: skip
        return chance.choice([
            f"SELECT {number}, {asked} FROM {joined} WHERE {condition}",
            f"SELECT {number}, {asked} FROM {joined} WHERE {condition}",
            f"SELECT {number}, d.n FROM {joined} LEFT JOIN {other} d ON d.n = 3 AND {condition}",
            f"SELECT d.n, {number} FROM {other} d LEFT JOIN {nested} ON {condition} AND {number} = d.n WHERE d.n < 9",
            f"SELECT count(*), max({number}) FROM {joined} WHERE {condition}",
            f"DELETE FROM {other} d USING {joined} WHERE d.n = {number} AND {condition} RETURNING d.n",
            f"UPDATE {other} d SET n = d.n + 1000 FROM {joined} WHERE d.n = {number} AND {condition} RETURNING d.n",
            f"MERGE INTO {other} d USING (SELECT {number} AS n FROM {joined} WHERE {condition}) m ON d.n = m.n "
            "WHEN MATCHED THEN UPDATE SET n = d.n + 1000",
        ])  # fmt: skip

    def time(self):
        time = "sno_timestamp({key})" if self.table == "sno" else f"flake_timestamp({{key}}, '{self.table}')"
        return time if self.chance.random() < 0.9 else f"CASE WHEN t.n < 150 THEN {time} END"

    def instant(self):
        value = self.chance.choice(self.instants)
        if self.chance.random() < 0.4:
            return self.chance.choice(["$1", "$2"])
        type = self.chance.choice(["timestamptz", "timestamptz", "timestamp", "date"])
        literal = f"{value}::{type}"
        return self.chance.choice([literal, literal, "now()", f"(SELECT {literal})", "now() - interval '1 day'"])

    def comparison(self, instant):
        operator, time = self.chance.choice(["<", "<=", "=", ">=", ">"]), self.time()
        return self.chance.choice([f"{time} {operator} {instant}", f"{instant} {operator} {time}"])

    def during(self):
        """Neither end of a span may be above the other, so both are open in a part of it."""
        layout = "" if self.table == "sno" else f", '{self.table}'"
        since, until = f"tstzrange({self.instant()}, NULL)", f"tstzrange(NULL, {self.instant()}, '[]')"
        return f"{{during}}({{key}}, {self.chance.choice([since, until, f'{since} * {until}'])}{layout})"

    def condition(self, depth):
        if self.table in SPANNED and self.chance.random() < 0.2:
            return self.during()
        if depth and self.chance.random() < 0.5:
            form = self.chance.choice(["({} AND {})", "({} AND {})", "({} OR {})", "NOT ({} OR {})", "({} AND NOT {})"])
            return form.format(self.condition(depth - 1), self.condition(depth - 1))
        return self.chance.choice([
            self.comparison(self.instant()), self.comparison(self.instant()), self.comparison(self.instant()),
            f"{self.time()} BETWEEN {self.instant()} AND {self.instant()}",
            f"{self.time()} IN ({self.instant()}, {self.instant()})",
            f"t.n > {self.chance.randrange(200)}", f"({self.time()} < {self.instant()}) IS NOT TRUE",
        ])  # fmt: skip


def written(text, names):
    for name, instead in names.items():
        text = text.replace(name, instead)
    return text


def rows(db, text, query, is_generic):
    """Returns the rows of a query on this key, or the rows that it has left in the table, and the plan."""
    if not is_generic:
        for number, value in enumerate(query.values, 1):
            text = text.replace(f"${number}", f"{value}::{query.type}")
    call = text
    if is_generic:
        db.execute(f"PREPARE query({query.type}, {query.type}) AS {text}")
        call = f"EXECUTE query({query.values[0]}, {query.values[1]})"
    plan = "\n".join(line for line, in db.execute(f"EXPLAIN (COSTS OFF) {call}"))
    cursor = db.execute(call)
    if not cursor.description:
        cursor = db.execute(f"SELECT n, count(*) FROM k_{query.table} GROUP BY n")
    found = cursor.fetchall()
    if is_generic:
        db.execute("DEALLOCATE query")
    return sorted(found, key=repr), plan


@pytest.mark.matrix
def test_random_filters_return_the_same_rows(db):
    seed = int(os.environ.get("FLAKE_SEED", random.randrange(2**32)))
    print("FLAKE_SEED =", seed)
    chance = random.Random(seed)
    instants = {table: [at for at, in db.execute(INSTANTS.format(table))] for table in TABLES}
    shown, replaced, not_empty = set(), 0, 0
    for number in range(CASES):
        table = chance.choice(TABLES)
        query = Query(chance, table, instants[table])
        is_generic = "$" in query.text and chance.random() < 0.6
        settings = [f"enable_{method} = off" for method in METHODS if chance.random() < 0.25]
        settings += chance.choices([PARALLEL, COMPILED, []], [1, 1, 20])[0]
        during, found = "sno_during" if table == "sno" else "flake_during", []
        for known in {"{key}": "t.id", "{during}": during}, {"{key}": "coalesce(t.id, t.id)", "{during}": "asked"}:
            with db.transaction(force_rollback=True):
                for setting in ["plan_cache_mode = force_generic_plan", *settings]:
                    db.execute(f"SET LOCAL {setting}")
                if query.view:
                    db.execute(written(query.view, known))
                found.append(rows(db, written(query.text, known), query, is_generic))
        (known, plan), (unknown, _) = found
        assert known == unknown, (seed, number, query.text, query.values, query.type, is_generic, settings, plan)
        replaced += "_since(" in plan or "_until(" in plan or "timestamp(" not in plan
        not_empty += bool(known)
        shown.update(what for what in SHOWN if what in plan)
    print(f"{CASES} filters, {replaced} of them replaced, {not_empty} with rows")
    assert replaced > CASES / 4 and not_empty > CASES / 4 and shown == set(SHOWN), set(SHOWN) - shown
