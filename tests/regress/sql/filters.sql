-- Filters by time, and the functions that they are planned as; tests/server/test_time_filters.py looks at all shapes.
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
SET enable_seqscan = off;
SET enable_bitmapscan = off;

-- The IDs on one side of an instant: at a tick's start, within it, and at the ends of the layout.
SELECT at, flake_plan.since(at), flake_plan.after(at), flake_plan.until(at), flake_plan.before(at)
FROM (VALUES ('2026-01-01Z'::timestamptz), ('2026-01-01 00:00:00.000001Z'), ('-infinity'), ('2010-11-04 01:42:54.656999Z'),
             ('2010-11-04 01:42:54.657Z'), ('2080-07-10 17:30:30.208Z'), ('2080-07-10 17:30:30.208001Z'), ('infinity')) v (at);
SELECT at, flake_plan.since(at), flake_plan.after(at), flake_plan.until(at), flake_plan.before(at)
FROM (VALUES ('2026-01-01Z'::timestamptz), ('2026-01-01 00:00:00.000001Z'), ('-infinity'), ('2010-01-01Z'),
             ('2079-09-07 15:47:35.548Z'), ('infinity')) v (at);
-- If IDs turn negative, a range ends at the turn.
SELECT flake_plan.since('2084-09-06 15:47:35.551Z', 'discord'), flake_plan.since('2084-09-06 15:47:35.552Z', 'discord'),
       flake_plan.before('2090-01-01Z', 'discord');
SELECT flake_plan.instant('2026-01-01 12:00'::timestamp), flake_plan.instant('2026-01-01'::date), flake_plan.instant('infinity'::date),
       flake_plan.instant('-infinity'::timestamp), flake_plan.instant('5874897-12-31'::date), flake_plan.instant('4714-11-24 BC'::date);
SET timezone = 'Asia/Tokyo';
SELECT flake_plan.instant('2026-01-01'::date), flake_plan.instant('2026-01-01 09:00'::timestamp), flake_plan.instant('4714-11-24 BC'::date);
SET timezone = 'UTC';

CREATE TABLE events (id bigint PRIMARY KEY, kind text);
INSERT INTO events SELECT flake_min('2026-01-01Z'::timestamptz + n * interval '1 hour') FROM generate_series(0, 999) n;
CREATE VIEW readable AS SELECT *, flake_timestamp(id) AS created_at FROM events;
EXPLAIN (COSTS OFF) SELECT * FROM readable WHERE created_at >= '2026-01-02Z' AND created_at < '2026-01-03Z';
EXPLAIN (COSTS OFF) SELECT * FROM readable WHERE created_at > now() - interval '1 day';
EXPLAIN (COSTS OFF) SELECT * FROM readable WHERE created_at <= '2026-01-02'::date;
EXPLAIN (COSTS OFF) SELECT * FROM readable WHERE '2026-01-02Z' = created_at;
CREATE FUNCTION pg_temp.reads_nothing(query text, OUT nothing boolean) LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        nothing := nothing IS TRUE OR line ~ 'One-Time Filter: false';
    END LOOP;
END $$;
SELECT pg_temp.reads_nothing('SELECT * FROM readable WHERE created_at < ''1999-01-01Z''');
SELECT count(*), min(created_at), max(created_at) FROM readable WHERE created_at > '2026-01-02Z' AND created_at <= '2026-01-03Z';
SELECT count(*) FROM readable WHERE created_at = '2026-01-02Z';
SELECT count(*) FROM readable WHERE created_at = '2026-01-02 00:00:00.0005Z';
-- An ID that is not possible has no time.
INSERT INTO events VALUES (-1, 'sentinel');
SELECT count(*) FROM events WHERE flake_timestamp(id + 0) < '2027-01-01Z';
SELECT count(*) FROM readable WHERE created_at < '2027-01-01Z';
DELETE FROM readable WHERE created_at < '2027-01-01Z';
SELECT * FROM events;
-- A layout whose IDs turn negative.
INSERT INTO events SELECT flake_make('2026-01-01Z'::timestamptz + n * interval '20 years', '{}', 'discord') FROM generate_series(0, 4) n;
SET enable_bitmapscan = on;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE flake_timestamp(id, 'discord') >= '2060-01-01Z';
SELECT flake_timestamp(id, 'discord') FROM events WHERE kind IS NULL AND flake_timestamp(id, 'discord') >= '2060-01-01Z' ORDER BY 1;
SELECT flake_timestamp(id, 'discord') FROM events WHERE kind IS NULL AND flake_timestamp(id, 'discord') < '2100-01-01Z' ORDER BY 1;
DROP TABLE events CASCADE;
