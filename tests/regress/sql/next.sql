-- Making IDs.

-- All IDs are distinct and name this node; they increase where the view says so.
CREATE TEMP TABLE made AS
SELECT name AS layout, n, flake_next(name) AS id
FROM flake_layouts, generate_series(1, 1000) n
WHERE generates AND tick < '1 s'
ORDER BY name, n;
SELECT layout, count(*), count(DISTINCT id) AS "distinct",
       count(*) FILTER (WHERE flake_timestamp(id, layout) BETWEEN now() - interval '1 minute' AND clock_timestamp()) AS timely,
       count(*) FILTER (WHERE flake_node(id, layout) = node_id) AS of_this_node,
       bool_and(increasing) AS increasing, bool_and(id > before OR NOT increasing) AS as_promised
FROM (SELECT made.*, increasing, node_id, lag(id) OVER (PARTITION BY layout ORDER BY n) AS before
      FROM made JOIN flake_layouts ON name = layout, flake_stat) s
GROUP BY layout ORDER BY layout;

-- One tick of base64id is a second, and has room for these IDs.
SELECT count(DISTINCT flake_next('base64id')) FROM generate_series(1, 100);

-- flake_node is NULL for IDs of layouts that flake only reads.
SELECT name, flake_node(flake_make('2026-01-01Z', '{}', name), name) AS node FROM flake_layouts WHERE NOT generates ORDER BY name;
SELECT flake_node(1, NULL), flake_node(NULL::bigint), sno_node(NULL);

-- Random bits differ: 100 IDs with 9 random bits each hardly ever have less than 60 different ones.
SELECT count(DISTINCT (flake_decode(id, 'base64id')).fields->>'random') > 60 AS varied
FROM (SELECT flake_next('base64id') AS id FROM generate_series(1, 100) OFFSET 0) s;

-- The session makes the IDs of a parallel plan, not its workers: one call in FROM is one ID, however many of them there are.
CREATE TABLE many AS SELECT n FROM generate_series(1, 50000) n;
ALTER TABLE many SET (parallel_workers = 2);
ANALYZE many;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
EXPLAIN (COSTS OFF) SELECT flake_next('twitter') AS id FROM many WHERE n % 2 = 0;
SELECT flake_create_layout('tagged', '{"like": "twitter", "fields": [{"name": "time", "bits": 41, "role": "timestamp"},
    {"name": "kind", "bits": 6, "role": "tag"}, {"name": "sequence", "bits": 16, "role": "sequence"}]}');
SELECT count(DISTINCT id) FROM (SELECT flake_next('twitter') AS id FROM many OFFSET 0) s;
SELECT count(DISTINCT a.id) AS next, count(DISTINCT b.id) AS tagged, count(DISTINCT c.id) AS batch, count(DISTINCT d.id) AS sno,
       count(DISTINCT e.id) AS in_partition
FROM many, flake_next('twitter') a (id), flake_next('tagged', 5) b (id), flake_batch('twitter', 3) c (id), sno_next() d (id),
     sno_next(0, 7) e (id) WHERE n % 10 = 0;
DROP TABLE many;
SELECT flake_drop_layout('tagged');

-- Rolled-back IDs are not made again; savepoints and failed statements change nothing.
BEGIN;
SELECT flake_next('twitter') AS id \gset
ROLLBACK;
SELECT flake_next('twitter') > :id AS greater;
BEGIN;
SAVEPOINT s;
SELECT flake_next('twitter') AS id, 1 / (flake_next('twitter') * 0) AS fails;
ROLLBACK TO s;
SELECT flake_next('twitter') > :id AS greater;
COMMIT;

-- A read-only transaction can make IDs: nothing is written.
BEGIN READ ONLY;
SELECT flake_next('twitter') > :id AS greater;
COMMIT;
DISCARD ALL;
SELECT flake_next('twitter') > :id AS greater;
