-- Queries by time, on IDs.
SET timezone = 'UTC';
SET datestyle = ISO;
SET enable_bitmapscan = off;
SET enable_seqscan = off;

CREATE TABLE events (id bigint PRIMARY KEY);
-- An ID of every hour of a week, and the two ends of the layout.
INSERT INTO events SELECT flake_make('2026-01-01Z'::timestamptz + n * interval '1 hour', '{"worker": 5, "sequence": 9}')
FROM generate_series(0, 167) n;
INSERT INTO events VALUES (0), (9223372036854775807);
ANALYZE events;

-- The planner makes it a range of IDs.
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE flake_during(id, '[2026-01-02Z,2026-01-03Z)');
PREPARE span(tstzrange) AS SELECT count(*) FROM events WHERE flake_during(id, $1);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE span('[2026-01-02Z,2026-01-03Z)');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE flake_during(id, tstzrange(now() - interval '1 hour', NULL), 'twitter');

-- Every kind of bound. The IDs are of full hours.
SELECT span, (SELECT count(*) FROM events WHERE flake_during(id, span))
FROM (VALUES
    ('[2026-01-02Z,2026-01-03Z)'::tstzrange), ('[2026-01-02Z,2026-01-03Z]'), ('(2026-01-02Z,2026-01-03Z)'),
    ('(2026-01-02 00:00:00.001Z,2026-01-02 01:00Z)'), ('[2026-01-02 00:00:00.0009Z,2026-01-02 00:00:00.001Z)'),
    ('(2026-01-02 00:00:00.0009Z,2026-01-02 00:00:00.001Z)'),
    ('[2026-01-02Z,2026-01-02Z]'), ('[2026-01-02Z,2026-01-02Z)'), ('empty'),
    ('[2026-01-07Z,)'), ('(,2026-01-02Z)'), ('(,)'), ('[-infinity,infinity]'), ('[2026-01-07Z,infinity)'),
    ('(-infinity,2026-01-02Z]'), ('[infinity,infinity]'), ('[-infinity,-infinity]'),
    ('[1999-01-01Z,2000-01-01Z)'), ('[1999-01-01Z,2026-01-02Z)'), ('[1999-01-01Z,2010-11-04 01:42:54.657Z)'),
    ('[1999-01-01Z,2010-11-04 01:42:54.657Z]'), ('[2080-07-10 17:30:30.208999Z,2100-01-01Z)'), ('[2080-07-10 17:30:30.209Z,2100-01-01Z)'),
    ('[4714-11-24 00:00:00Z BC,294276-12-31 23:59:59.999999Z]')) v (span);
SELECT flake_during(1, NULL), flake_during(NULL, '[2026-01-02Z,2026-01-03Z)'), flake_during(1, '[2026-01-02Z,2026-01-03Z)', NULL);
SELECT flake_plan.first('empty'), flake_plan.last('empty');

-- Layouts that turn negative: an open end means up to the turn; test_errors.py has what is beyond it.
SELECT name, sortable_until FROM flake_layouts WHERE sortable_until < ends_at ORDER BY name;
SELECT flake_during(flake_make('2026-01-01Z', '{}', 'discord'), '[2026-01-01Z,)', 'discord'),
       flake_during(flake_make('2084-09-06 15:47:35.551Z', '{}', 'discord'), '[2084-01-01Z,2084-09-06 15:47:35.552Z)', 'discord');

-- Partitions.
CREATE TABLE parts (id bigint PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (MINVALUE) TO (flake_min('2026-01-01Z'));
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (flake_min('2026-01-01Z')) TO (flake_min('2026-02-01Z'));
CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (flake_min('2026-02-01Z')) TO (MAXVALUE);
EXPLAIN (COSTS OFF) SELECT * FROM parts WHERE flake_during(id, '[2026-01-05Z,2026-01-06Z)');
-- Without a constant the partitions are chosen when the query starts.
SET plan_cache_mode = force_generic_plan;
PREPARE part(tstzrange) AS SELECT * FROM parts WHERE flake_during(id, $1);
EXPLAIN (COSTS OFF) EXECUTE part('[2026-01-05Z,2026-01-06Z)');
RESET plan_cache_mode;

-- Spans from sub-queries; tests/server/test_during.py looks at the plans.
CREATE TABLE spans (n integer, span tstzrange, layout text);
INSERT INTO spans VALUES (1, '[2026-01-02Z,2026-01-03Z)', 'twitter'), (2, 'empty', 'twitter'), (3, NULL, 'twitter'),
    (4, '[2026-01-02Z,)', NULL);
SELECT n, (SELECT count(*) FROM events WHERE flake_during(id, (SELECT s.span FROM spans s WHERE s.n = spans.n),
                                                          (SELECT s.layout FROM spans s WHERE s.n = spans.n)))
FROM spans ORDER BY n;
SELECT count(*) FROM events WHERE flake_during(id, (SELECT span FROM spans WHERE n = 9));
SELECT count(*) FROM events WHERE flake_during(id, (SELECT span FROM spans));
-- The span may come from a common table expression or a lateral join. The call may be in a list of columns, beside other
-- conditions, or in HAVING.
WITH s AS (SELECT span FROM spans WHERE n = 1) SELECT count(*) FROM events WHERE flake_during(id, (SELECT span FROM s));
SELECT n, count FROM spans, LATERAL (SELECT count(*) FROM events WHERE flake_during(id, (SELECT spans.span))) c ORDER BY n;
SELECT count(*) FILTER (WHERE flake_during(id, (SELECT span FROM spans WHERE n = 1))),
       count(*) FILTER (WHERE id > 0 AND (flake_during(id, (SELECT span FROM spans WHERE n = 1)) OR id = 9223372036854775807)),
       count(*) FILTER (WHERE NOT flake_during(id, (SELECT span FROM spans WHERE n = 1)))
FROM events;
SELECT flake_during(max(id), (SELECT span FROM spans WHERE n = 1)) AS max FROM events
HAVING flake_during(min(id) + 2006878101304246272, tstzrange((SELECT lower(span) FROM spans WHERE n = 1), NULL));
DELETE FROM events WHERE flake_during(id, (SELECT span FROM spans WHERE n = 1));
SELECT count(*) FROM events;

-- A condition that is not a range of IDs stays a call: of volatile arguments, or of a sub-query for each row.
SELECT count(*) FROM events WHERE flake_during(id, tstzrange('2026-01-03Z', clock_timestamp() + interval '100 years'));
SELECT count(*) FROM events WHERE flake_during(id, (SELECT span FROM spans WHERE spans.n = events.id * 0 + 4));

-- Definitions keep the call; constraints and predicates are understood as ranges.
CREATE VIEW a_day AS SELECT * FROM events WHERE flake_during(id, '[2026-01-04Z,2026-01-05Z)');
SELECT pg_get_viewdef('a_day') ~ 'WHERE flake_during\(' AS keeps_call;
SELECT count(*) FROM a_day;
ALTER TABLE parts_1 ADD CHECK (flake_during(id, '[2025-01-01Z,2026-01-01Z)'));
SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'parts_1'::regclass AND contype = 'c';
SET constraint_exclusion = on;
CREATE FUNCTION pg_temp.reads_nothing(query text, OUT nothing boolean) LANGUAGE plpgsql AS $$
DECLARE line text;
BEGIN
    FOR line IN EXECUTE 'EXPLAIN ' || query LOOP
        nothing := nothing IS TRUE OR line ~ 'One-Time Filter: false';
    END LOOP;
END $$;
SELECT pg_temp.reads_nothing('SELECT * FROM parts_1 WHERE id < flake_min(''2020-01-01Z'')');
RESET constraint_exclusion;
ALTER TABLE events DROP CONSTRAINT events_pkey;
CREATE INDEX events_of_a_day ON events (id) WHERE flake_during(id, '[2026-01-04Z,2026-01-05Z)');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id BETWEEN flake_min('2026-01-04 10:00Z') AND flake_min('2026-01-04 11:00Z');
EXPLAIN (COSTS OFF) SELECT * FROM a_day;
CREATE TABLE by_day (id bigint) PARTITION BY LIST (flake_during(id, '[2026-01-04Z,2026-01-05Z)'));
CREATE TABLE of_the_day PARTITION OF by_day FOR VALUES IN (true);
CREATE TABLE of_other_days PARTITION OF by_day FOR VALUES IN (false);
INSERT INTO by_day SELECT id FROM events;
SELECT tableoid::regclass, count(*) FROM by_day GROUP BY 1 ORDER BY 1;
DROP VIEW a_day;
DROP TABLE events, parts, spans, by_day;
