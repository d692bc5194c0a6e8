"""Random conditions that resemble filters by time. None becomes a range of IDs, and each returns the same rows as when the
planner does not know the key. FLAKE_SOAK=20 tries 40,000."""

import os
import random
import re

import pytest

from test_time_filters_random import rows

SOAK = int(os.environ.get("FLAKE_SOAK", "1"))
CASES = 600 if SOAK == 1 else 2000 * SOAK
TABLES = """
    SET timezone = 'Europe/Berlin';
    CREATE TABLE near (id bigint PRIMARY KEY, other bigint, n integer, m integer, at timestamptz, local timestamp, layout text);
    INSERT INTO near SELECT flake_min(at), flake_min(at + (n % 5 - 2) * interval '1 h'), n, n % 3,
        at + (n % 3 - 1) * interval '1 h', at AT TIME ZONE 'Europe/Berlin', CASE WHEN n % 4 > 0 THEN 'twitter' END
    FROM (SELECT n, timestamptz '2026-10-24 12:00Z' + n * interval '10 min' AS at FROM generate_series(0, 299) n) s;
    CREATE TABLE beside AS SELECT n, at FROM near WHERE n % 7 = 0;
    CREATE SCHEMA mine;
    CREATE FUNCTION mine.flake_timestamp(id bigint) RETURNS timestamptz IMMUTABLE LANGUAGE sql
        AS $$ SELECT public.flake_timestamp(id) + interval '3 h' $$;
    CREATE FUNCTION mine.later(a timestamptz, b timestamptz) RETURNS boolean IMMUTABLE LANGUAGE plpgsql
        AS 'BEGIN RETURN a > b; END';
    CREATE OPERATOR mine.< (FUNCTION = mine.later, LEFTARG = timestamptz, RIGHTARG = timestamptz);
    ANALYZE"""
# {t} is the time of the key {k}, {i} an instant, {c} a condition on the row, {x} a small number in the row.
TIMES = [
    "CASE {x} WHEN {x} THEN {t} END", "CASE {x} WHEN {x} THEN {t} ELSE NULL END", "CASE {c} WHEN true THEN {t} END",
    "CASE WHEN {c} THEN {t} ELSE {i} END", "CASE WHEN {c} THEN {i} ELSE {t} END", "CASE WHEN {c} THEN {t} WHEN {c} THEN {i} END",
    "CASE WHEN {c} THEN {t} WHEN {c} THEN {t} END", "CASE WHEN {c} THEN CASE WHEN {c} THEN {t} END END",
    "CASE WHEN random() < 2 THEN {t} END", "CASE WHEN EXISTS (SELECT FROM beside o WHERE o.n = t.n) THEN {t} END",
    "coalesce({t}, {i})", "nullif({t}, t.at)", "greatest({t}, t.at)", "least({t}, {i})", "(SELECT {t})",
    "(ARRAY[{t}, t.at])[1 + t.n % 2]",
    "{t} + t.m * interval '1 h'", "{t} - interval '1 h'", "date_trunc('day', {t})", "({t})::date::timestamptz",
    "({t})::timestamp(0)",
    "({t} AT TIME ZONE 'UTC') AT TIME ZONE 'Europe/Berlin'", "(flake_decode({k})).created_at", "mine.flake_timestamp({k})",
    "flake_timestamp({k} + t.m)", "flake_timestamp(greatest({k}, t.other))", "flake_timestamp(-(-{k}))",
    "flake_timestamp({k}, t.layout)", "flake_timestamp({k}, CASE WHEN {c} THEN 'twitter' ELSE 'discord' END)",
]  # fmt: skip
COMPARISONS = [
    "{t} <> {i}", "{t} IS DISTINCT FROM {i}", "{t} = ANY (ARRAY[{i}, t.at])", "{t} = ANY (ARRAY[{i}, {i}])",
    "{t} >= ANY (ARRAY[{i}, {i}])", "{t} < ALL (ARRAY[{i}, t.at])", "{t} <> ALL (ARRAY[{i}, {i}])", "({t}, t.n) > ({i}, 150)",
    "({t} < {i}) IS NOT TRUE", "({t} >= {i}) IS TRUE", "({t} >= {i}) = ({c})", "({t} >= {i}) IS DISTINCT FROM ({c})",
    "{t} >= t.at", "t.local > {t}", "{t} = flake_timestamp(t.other)", "{t} >= {i} + random() * interval '0'",
    "{t} >= (SELECT max(o.at) FROM beside o WHERE o.n <= t.n)", "({t} < {i} OR {c})", "NOT ({t} < {i} AND {c})",
    "{t} OPERATOR(mine.<) {i}", "{i} OPERATOR(mine.<) {t}", "tstzrange({t}, NULL) @> {i}", "extract(epoch FROM {t} - {i}) > 0",
    "isfinite({t}) = ({t} > {i})", "to_char({t}, 'HH24') < to_char({i}, 'HH24')",
]  # fmt: skip
QUERIES = [
    "SELECT n FROM near t WHERE {}", "SELECT n FROM near t WHERE {} AND t.n > 20", "DELETE FROM near t WHERE {} RETURNING n",
    "SELECT t.n, o.n FROM near t JOIN beside o ON o.n = t.n AND {}",
    "SELECT t.n, o.n FROM beside o LEFT JOIN near t ON o.n = t.n AND {}",
    "SELECT count(*) FILTER (WHERE {}) FROM near t", "SELECT n, {} FROM near t",
    "SELECT max(n) FROM near t GROUP BY t.id HAVING {}", "UPDATE near t SET n = n + 1000 WHERE {} RETURNING n",
    "SELECT o.n FROM beside o WHERE NOT EXISTS (SELECT FROM near t WHERE o.n = t.n AND {})",
]  # fmt: skip
# Ranges of the key, even if the plan has only a constant for an end.
RANGE = re.compile(r"\((t\.)?id [<>]=? |\((t\.)?id\)::bigint [<>]=? |flake_plan\.(since|after|until|before)\(")


class NearMiss:
    """A random query. {k} stands for the key, and $1 and $2 may be parameters."""

    def __init__(self, chance):
        self.chance, self.type = chance, chance.choice(["timestamptz", "timestamp", "date"])
        self.values = [self.literal(), self.literal()]
        time = "flake_timestamp({k})"
        if chance.random() < 0.6:
            operator = chance.choice(["<", "<=", "=", ">=", ">"])
            condition = chance.choice(["{t} " + operator + " {i}", "{i} " + operator + " {t}"])
            time = self.filled(chance.choice(TIMES), time)
        else:
            condition = chance.choice(COMPARISONS)
        self.text = chance.choice(QUERIES).replace("{}", self.filled(condition, time))

    def literal(self):
        return f"'2026-10-{self.chance.randrange(24, 28)} {self.chance.randrange(24):02}:{self.chance.choice([0, 10, 15])}:00'"

    def filled(self, shape, time):
        parts = {"{t}": lambda: time, "{i}": self.instant, "{c}": self.condition, "{x}": self.number}
        return re.sub(r"\{[ticx]\}", lambda found: parts[found[0]](), shape)

    def instant(self):
        return self.chance.choice([f"{self.literal()}::timestamptz", f"({self.chance.choice(['$1', '$2'])})::timestamptz",
                                   f"(now() - now() + {self.literal()}::timestamptz)"])  # fmt: skip

    def condition(self):
        return self.chance.choice([f"t.n > {self.chance.randrange(300)}", "t.m = 1", f"t.n % 5 < {self.chance.randrange(6)}"])

    def number(self):
        return self.chance.choice(["t.m", "t.n % 3", "(t.n + t.m) % 4"])


@pytest.fixture(scope="module")
def db(server):
    with server.connect(options="-c timezone=Europe/Berlin -c jit=off") as db:
        db.execute(TABLES)
        yield db


@pytest.mark.matrix
def test_conditions_that_resemble_filters_stay_what_they_are(db):
    seed = int(os.environ.get("FLAKE_SEED", random.randrange(2**32)))
    print("FLAKE_SEED =", seed)
    chance, not_empty = random.Random(seed), 0
    for number in range(CASES):
        query = NearMiss(chance)
        is_generic = "$" in query.text and chance.random() < 0.6
        seqscan = chance.choice(["on", "off"])
        found = []
        for key in "t.id", "coalesce(t.id, t.id)":
            with db.transaction(force_rollback=True):
                db.execute(f"SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL enable_seqscan = {seqscan}")
                found.append(rows(db, query.text.replace("{k}", key), query, is_generic))
        (known, plan), (unknown, _) = found
        told = f"FLAKE_SEED={seed} {number}: {query.text} {query.values} {query.type} {is_generic}\n{plan}"
        assert known == unknown, told
        assert not RANGE.search(plan), told
        not_empty += known not in ([], [(0,)])
    print(f"{CASES} near misses, {not_empty} with rows")
    assert not_empty > CASES / 4
