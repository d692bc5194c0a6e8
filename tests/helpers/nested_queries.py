"""Random queries with flake's functions nested in arguments, views and groups. Each query has three forms: with flake's
functions, with the same C functions unknown to the planner, and with PostgreSQL's own comparisons."""

import re

# A call of flake_during and of sno_during in each form.
FORMS = {
    "flake": ("flake_during({key}, {span}{layout})", "sno_during({sid}, {span})"),
    "calls": ("asked({key}, {span}{layout})", "sno_asked({sid}, {span})"),
    "comparisons": ("(({span}) @> flake_timestamp({key}{layout}))", "(({span}) @> sno_timestamp({sid}))"),
}
TABLES = """
    CREATE TABLE ids (n integer, id bigint PRIMARY KEY, sid sno, span tstzrange, layout text);
    INSERT INTO ids
    SELECT n, flake_min(at), sno_make(at), tstzrange(at, at + interval '5 days'), CASE n % 2 WHEN 0 THEN 'leaf' ELSE 'twitter' END
    FROM (SELECT n, '2026-01-01Z'::timestamptz + n * interval '1 day' AS at FROM generate_series(1, 9) n) s;
    ANALYZE ids;
    CREATE FUNCTION asked(id bigint, span tstzrange, layout text DEFAULT 'twitter') RETURNS boolean
        IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'flake', 'flake_during';
    CREATE FUNCTION sno_asked(id sno, span tstzrange) RETURNS boolean
        IMMUTABLE STRICT PARALLEL SAFE LANGUAGE c AS 'flake', 'sno_during';
    CREATE FUNCTION dear(span tstzrange) RETURNS tstzrange STABLE LANGUAGE plpgsql AS 'BEGIN RETURN span; END';
    CREATE FUNCTION inlined(span tstzrange) RETURNS tstzrange STABLE LANGUAGE sql AS 'SELECT COALESCE(span, ''empty'')'"""


class Nested:
    """A random query. Its calls stay `flake_during` and `sno_during` with arguments in braces until it is written in one of the
    forms."""

    def __init__(self, chance):
        self.chance = chance
        self.depth = int(2 ** chance.uniform(0, 6))
        self.width = int(2 ** chance.uniform(0, 8 - self.depth.bit_length()))
        self.settings = {"cpu_operator_cost": chance.choice(["DEFAULT", "DEFAULT", "0", "1e300"])}
        self.views = []
        self.query = self.any_query()

    def pick(self, **choices):
        return choices[self.chance.choice(list(choices))]()

    def any_query(self):
        condition = self.conditions("t.")
        table = "ids"
        if self.chance.random() < 0.3:
            table = self.make_views()
        return self.pick(
            filter=lambda: f"SELECT n FROM {table} t WHERE {condition}",
            listed=lambda: f"SELECT n, {condition}, {self.span('t.', self.depth)} FROM {table} t",
            count=lambda: f"SELECT count(*) FILTER (WHERE {condition}) FROM {table} t",
            group=lambda: f"SELECT {condition}, count(*) FROM {table} t GROUP BY {condition}",
            sets=lambda: f"SELECT n, count(*) FILTER (WHERE {condition}) FROM {table} t GROUP BY GROUPING SETS ((n), ())",
            rollup=lambda: f"SELECT {condition}, n, count(*) FROM {table} t GROUP BY ROLLUP ({condition}, n)",
            having=lambda: f"SELECT n, id FROM {table} t GROUP BY CUBE (n, id, sid, span, layout) HAVING {condition}",
            distinct=lambda: f"SELECT DISTINCT ON ({condition}) {condition} FROM {table} t ORDER BY {condition}",
            join=lambda: f"SELECT t.n, u.n FROM {table} t LEFT JOIN ids u ON {self.conditions('u.')} WHERE {condition}",
            exists=lambda: f"""SELECT n, EXISTS (SELECT FROM ids u WHERE u.n = t.n AND {self.conditions('u.')}) OR {condition}
                               FROM {table} t""",
            union=lambda: f"""SELECT n FROM (SELECT 1 AS n, id, sid, span, layout FROM ids
                              UNION ALL SELECT 2, id, sid, 'empty', 'twitter' FROM {table}) t WHERE {condition}""",
            rows=lambda: f"SELECT count(*) FROM flake_batch('twitter', CASE WHEN {self.conditions('')} THEN 1 ELSE 2 END) t",
        )  # fmt: skip

    def make_views(self):
        """Makes views, each on the one before. A view mentions its span more than once only if there are few views."""
        below = "ids"
        mentions = self.chance.choice([1, 1, 2])
        for level in range(self.chance.randint(1, 7 if mentions == 2 else 30)):
            span = f"CASE WHEN {self.call('t.', 't.span', depth=1)} THEN {'t.span' if mentions == 2 else self.span('', 1)} END"
            self.views.append(f"nested_{level} AS SELECT n, id, sid, {span} AS span, layout FROM {below} t")
            below = f"nested_{level}"
        return below

    def conditions(self, row):
        """Returns conditions. Without a row, they contain no column."""
        all = [self.call(row, self.span(row, self.depth), self.depth) for _ in range(self.width)]
        return "(" + self.chance.choice([" OR ", " AND "]).join(all) + ")"

    def call(self, row, span, depth):
        if self.chance.random() < 0.3:
            return f"{{sno_during|{self.sid(row)}|{span}}}"
        layout = self.layout(row, depth) if self.chance.random() < 0.5 else ""
        return f"{{flake_during|{self.key(row, depth)}|{span}|{layout}}}"

    def condition(self, row, depth):
        call = self.call(row, self.span(row, depth - 1), depth - 1)
        return self.chance.choice([call, call, f"NOT {call}", f"{call} IS NOT NULL", f"{call} = ANY (SELECT true)"])

    def span(self, row, depth):
        fixed = ["'[2026-01-02Z,2026-01-07Z)'::tstzrange", "tstzrange('2026-01-04Z'::text::timestamptz, NULL)",
                 "dear('[2026-01-02Z,2026-01-07Z)')", "(SELECT s.span FROM ids s ORDER BY s.n LIMIT 1)"]  # fmt: skip
        if depth <= 0:
            return self.chance.choice([*fixed, *([f"{row}span"] if row else [])])
        # One of these places has a deep nest, and the others end soon.
        short = min(depth - 1, 1)
        return self.pick(
            case=lambda: f"CASE WHEN {self.condition(row, depth)} THEN {self.span(row, 0)} ELSE {self.span(row, 0)} END",
            result=lambda: f"CASE WHEN {self.condition(row, short)} THEN {self.span(row, depth - 1)} ELSE 'empty' END",
            product=lambda: f"({self.span(row, depth - 1)} * {self.span(row, 0)})",
            inlined=lambda: f"inlined({self.span(row, depth - 1)})",
            dear=lambda: f"dear({self.span(row, depth - 1)})",
            selected=lambda: f"(SELECT {self.span(row, depth - 1)})" if depth < 8 else self.span(row, depth - 1),
        )

    def key(self, row, depth):
        fixed = "flake_min('2026-01-03Z'::timestamptz)"
        leaf = self.chance.choice([f"{row}id", f"{row}id", fixed]) if row else fixed
        if depth <= 0 or self.chance.random() < 0.8:
            return leaf
        return f"CASE WHEN {self.condition(row, depth // 2)} THEN {leaf} ELSE {fixed} END"

    def sid(self, row):
        fixed = "sno_make('2026-01-03Z')"
        return self.chance.choice([f"{row}sid", fixed]) if row else fixed

    def layout(self, row, depth):
        if depth <= 0 or self.chance.random() < 0.7:
            return self.chance.choice(["'twitter'", "'leaf'::text", f"{row}layout" if row else "'leaf'"])
        return f"CASE WHEN {self.condition(row, depth // 2)} THEN 'twitter' ELSE 'leaf' END"

    def written(self, form):
        """Returns the commands that prepare the query, and the query."""
        views = [f"CREATE TEMP VIEW {write(view, form)}" for view in self.views]
        return [*(f"SET {name} = {value}" for name, value in self.settings.items()), *views], write(self.query, form)


# A call whose arguments contain no unwritten call.
INNERMOST = re.compile(r"\{(flake|sno)_during\|([^{}|]*)\|([^{}|]*)(?:\|([^{}|]*))?\}")


def write(text, form):
    during, sno_during = FORMS[form]

    def call(match):
        kind, key, span, layout = match.groups()
        if kind == "sno":
            return sno_during.format(sid=key, span=span)
        return during.format(key=key, span=span, layout=f", {layout}" if layout else "")

    count = 1
    while count:
        text, count = INNERMOST.subn(call, text)
    return text
