"""Queries by time on a million IDs: the plan, and the rows against those of the time inside."""

import random

import pytest

from conftest import SECONDS


@pytest.fixture(scope="module")
def million(server):
    """An ID of every 17 seconds of 197 days."""
    with server.connect() as db:
        db.execute("""
            CREATE TABLE ids (id bigint PRIMARY KEY);
            INSERT INTO ids SELECT flake_min(timestamptz '2026-01-01Z') + (n * 17000::bigint << 22) + n % 4194304
            FROM generate_series(0, 999999) n;
            ANALYZE ids""")
        db.execute("CREATE INDEX ids_time ON ids (flake_timestamp(id))")
        db.execute("SET timezone = 'UTC'")
        yield db


def plan(db, query, *parameters):
    return "\n".join(line for line, in db.execute("EXPLAIN (COSTS OFF) " + query, parameters or None))


def test_plans(million):
    literal = plan(million, "SELECT * FROM ids WHERE flake_during(id, '[2026-03-01Z,2026-03-02Z)')")
    assert "using ids_pkey" in literal and "Index Cond: ((id >= '" in literal
    now = plan(million, "SELECT * FROM ids WHERE flake_during(id, tstzrange(now() - interval '1 hour', now()))")
    assert "Index Cond: ((id >= flake_first(tstzrange((now()" in now
    million.execute("SET plan_cache_mode = force_generic_plan")
    million.execute("PREPARE during(tstzrange) AS SELECT * FROM ids WHERE flake_during(id, $1)")
    generic = plan(million, "EXECUTE during('[2026-03-01Z,2026-03-02Z)')")
    million.execute("RESET plan_cache_mode")
    assert "flake_first($1" in generic and "Cond: ((id >=" in generic
    # The planner knows how many rows to expect.
    rows = million.execute("EXPLAIN (FORMAT json) SELECT * FROM ids WHERE flake_during(id, '[2026-03-01Z,2026-03-02Z)')")
    assert 2500 < rows.fetchone()[0][0]["Plan"]["Plan Rows"] < 10000


def test_the_same_rows_as_by_the_time_inside(million):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    edges = ["empty", "(,)", "(,2026-01-01Z)", "[2026-07-16 18:13:03Z,)", "[1999-01-01Z,2026-01-01 00:00:34Z]",
             "[2026-01-01Z,2026-01-01Z]", "(2026-01-01Z,2026-01-01 00:00:17Z)", "[infinity,)", "(,-infinity]"]  # fmt: skip
    for number in range(100 * SECONDS):
        if number < len(edges):
            span = edges[number]
        else:
            # Ends on a tick, on its last microsecond, or anywhere; spans of up to two hours.
            start = chance.randrange(-3_000_000_000, 17_000_000_000_000 + 3_000_000_000)
            start -= start % chance.choice([1, 1000, 17_000_000])
            length = chance.choice([0, 1, 999, 1000, 17_000_000, chance.randrange(7_200_000_000)])
            span, = million.execute("""
                SELECT tstzrange(zero + %s * interval '1 us', zero + %s * interval '1 us', %s)::text
                FROM (SELECT '2026-01-01Z'::timestamptz) t (zero)""",
                (start, start + length, chance.choice(["[]", "[)", "()", "(]"]))).fetchone()  # fmt: skip
        within = "SELECT count(*), sum(id) FROM ids WHERE flake_during(id, %s::text::tstzrange)"
        by_id = million.execute(within, (span,)).fetchone()
        by_time = million.execute("""
            SELECT count(*), sum(id) FROM ids
            WHERE tstzrange(flake_timestamp(id), flake_timestamp(id) + interval '1 ms') && %s::text::tstzrange
              AND flake_timestamp(id) BETWEEN COALESCE(lower(%s::text::tstzrange), '-infinity') - interval '1 s'
                                          AND COALESCE(upper(%s::text::tstzrange), 'infinity')""",
            (span, span, span)).fetchone()  # fmt: skip
        assert by_id == by_time, (span, seed)
