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
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE flake_during(id, tstzrange(now() - interval '1 hour', now()));
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
SELECT flake_first('empty'), flake_last('empty');

-- Layouts that turn negative: up to the turn, an open end means up to the turn, and beyond it is an error.
SELECT name, sortable_until FROM flake_layouts WHERE sortable_until < ends_at ORDER BY name;
SELECT flake_during(flake_make('2026-01-01Z', '{}', 'discord'), '[2026-01-01Z,)', 'discord'),
       flake_during(flake_make('2084-09-06 15:47:35.551Z', '{}', 'discord'), '[2084-01-01Z,2084-09-06 15:47:35.552Z)', 'discord');
SELECT flake_during(1, '[2026-01-01Z,2085-01-01Z)', 'discord');
SELECT flake_during(1, '[2085-01-01Z,)', 'discord');
SELECT flake_max('2085-01-01Z', 'discord');
SELECT flake_during(1, '[2026-01-01Z,2027-01-01Z)', 'uniqueid');
SELECT flake_during(1, 'empty', 'uniqueid');

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
DROP TABLE events, parts;
