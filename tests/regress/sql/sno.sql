-- The type sno.
SET timezone = 'UTC';
SET datestyle = ISO;
\getenv srcdir PG_ABS_SRCDIR

-- Snos of the original: text, bytes, parts and back (tests/vectors/sno.csv).
CREATE TEMP TABLE vectors (given_us bigint, starts_us bigint, tick_tock bit, metabyte int, partition int, sequence int,
                           bytes text, text sno);
\set load '\\copy vectors FROM ''' :srcdir '/../vectors/sno.csv'' WITH (FORMAT csv, HEADER)'
:load
CREATE TEMP VIEW checked AS
SELECT *, text AS id, to_timestamp(0) + given_us * interval '1 us' AS given_at,
       to_timestamp(0) + starts_us * interval '1 us' AS starts_at
FROM vectors;
SELECT count(*),
       count(*) FILTER (WHERE id::bytea = decode(bytes, 'hex') AND decode(bytes, 'hex')::sno = id) AS bytes,
       count(*) FILTER (WHERE sno_send(id) = decode(bytes, 'hex')) AS sent,
       count(*) FILTER (WHERE sno_encode(decode(bytes, 'hex')) = id::text AND sno_decode(id::text) = id::bytea) AS codec,
       count(*) FILTER (WHERE sno_timestamp(id) = starts_at) AS timestamp,
       count(*) FILTER (WHERE sno_metabyte(id) = metabyte AND sno_partition(id) = partition AND (sno_fields(id)).sequence = sequence
                        AND (sno_fields(id)).tick_tock = (tick_tock = '1')) AS parts,
       count(*) FILTER (WHERE sno_fields(id) = (starts_at, tick_tock = '1', metabyte, partition, sequence)::sno_parts) AS decoded,
       count(*) FILTER (WHERE sno_make(given_at, metabyte, partition, sequence, tick_tock = '1') = id) AS made,
       count(*) FILTER (WHERE id BETWEEN sno_min(given_at) AND sno_max(given_at)) AS enclosed,
       count(*) FILTER (WHERE id::uuid::sno = id AND sno_during(id, tstzrange(given_at, given_at, '[]'))) AS cast_and_during
FROM checked;
-- Bytes, texts, uuids and times have one order.
SELECT count(*) FILTER (WHERE bytea_n <> n) AS bytea, count(*) FILTER (WHERE text_n <> n) AS text,
       count(*) FILTER (WHERE uuid_n <> n) AS uuid
FROM (SELECT rank() OVER (ORDER BY id) AS n, rank() OVER (ORDER BY id::bytea) AS bytea_n,
             rank() OVER (ORDER BY id::text COLLATE "C") AS text_n, rank() OVER (ORDER BY id::uuid) AS uuid_n FROM checked) s;

SELECT sno_fields('brpk4q72xwf2m63l');
\pset format unaligned
SELECT sno_explain('brpk4q72xwf2m63l');
\pset format aligned

-- The values on disk must not change: the ten bytes and the hashes.
SELECT sno_send('brpk4q72xwf2m63l'), sno_hash('brpk4q72xwf2m63l'), sno_hash_extended('brpk4q72xwf2m63l', 0),
       sno_hash_extended('brpk4q72xwf2m63l', 7);
SELECT sno_send('2222222222222222'), sno_hash('2222222222222222'), sno_hash_extended('2222222222222222', 0);
SELECT typlen, typbyval, typalign, typstorage, typcategory FROM pg_type WHERE typname = 'sno';
SELECT count(*) FROM checked WHERE sno_hash_extended(id, 0) & 4294967295 <> sno_hash(id)::bigint & 4294967295;

-- Comparing.
SELECT a < b AS lt, a <= b AS le, a = b AS eq, a <> b AS ne, a >= b AS ge, a > b AS gt, sno_cmp(a, b) AS cmp
FROM (VALUES ('2222222222222222'::sno, '2222222222222223'::sno), ('brpk4q72xwf2m63l', 'brpk4q72xwf2m63l'),
             ('xxxxxxxxxxxxxxxx', '2222222222222222')) v (a, b);
SELECT min(id), max(id), count(DISTINCT id) FROM checked;
SELECT sno_with_metabyte('brpk4q72xwf2m63l', 254), sno_with_metabyte('brpk4q72xwf2m63l', 255);

-- Indexes, joins, partitions.
CREATE TABLE snos (id sno PRIMARY KEY DEFAULT sno_next(7), n int) WITH (autovacuum_enabled = off);
INSERT INTO snos (n) SELECT n FROM generate_series(1, 50000) n;
INSERT INTO snos VALUES (sno_make('2026-01-01Z', 1, 2, 3), 0), (sno_make('2026-01-01Z', 1, 2, 3, true), -1);
ANALYZE snos;
SELECT count(DISTINCT id), bool_and(sno_metabyte(id) = 7 AND sno_partition(id) >= 32768) AS parts,
       count(*) FILTER (WHERE id > before) AS increasing
FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before FROM snos WHERE n > 0) s;
SET enable_bitmapscan = off;
SET enable_seqscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM snos WHERE sno_during(id, '[2026-01-01Z,2026-01-02Z)');
SELECT id, n FROM snos WHERE sno_during(id, '[2026-01-01Z,2026-01-02Z)');
EXPLAIN (COSTS OFF) SELECT * FROM snos WHERE sno_during(id, tstzrange(now() - interval '1 hour', NULL));
SELECT count(*) FROM snos WHERE sno_during(id, tstzrange(now() - interval '1 hour', NULL));
SELECT sno_during(id, 'empty'), sno_during(id, '[1999-01-01Z,2000-01-01Z)'), sno_during(id, '(,)'),
       sno_during(id, '[infinity,)'), sno_during(id, NULL), sno_during(NULL, '(,)')
FROM snos WHERE n = 0;
SET max_parallel_workers_per_gather = 0;
CREATE TABLE others (id sno PRIMARY KEY) WITH (autovacuum_enabled = off);
INSERT INTO others SELECT id FROM snos;
ANALYZE others;
SET enable_hashjoin = off;
SET enable_nestloop = off;
EXPLAIN (COSTS OFF) SELECT count(*) FROM snos JOIN others USING (id);
SELECT count(*) FROM snos JOIN others USING (id);
SET enable_mergejoin = off;
SET enable_hashjoin = on;
EXPLAIN (COSTS OFF) SELECT count(*) FROM snos JOIN others USING (id);
SELECT count(*) FROM snos JOIN others USING (id);
RESET enable_hashjoin;
RESET enable_nestloop;
RESET enable_mergejoin;
SELECT count(*) AS disorder FROM (SELECT id::bytea AS id, lag(id::bytea) OVER (ORDER BY id) AS before FROM snos) s WHERE id <= before;
CREATE INDEX snos_hash ON snos USING hash (id);
CREATE TABLE plain AS SELECT * FROM snos ORDER BY id;
CREATE INDEX plain_brin ON plain USING brin (id) WITH (pages_per_range = 8);
SET enable_bitmapscan = on;
EXPLAIN (COSTS OFF) SELECT * FROM plain WHERE sno_during(id, '[2026-01-01Z,2026-01-02Z)');
SELECT count(*) FROM plain WHERE sno_during(id, '[2026-01-01Z,2026-01-02Z)');
CREATE TABLE hashed (id sno) PARTITION BY HASH (id);
CREATE TABLE hashed_0 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 0);
CREATE TABLE hashed_1 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 1);
CREATE TABLE hashed_2 PARTITION OF hashed FOR VALUES WITH (MODULUS 3, REMAINDER 2);
INSERT INTO hashed SELECT sno_make(timestamptz '2026-01-01Z' + n * interval '4 ms', n % 256, n % 65536, n % 7) FROM generate_series(1, 30000) n;
SELECT tableoid::regclass, count(*) FROM hashed GROUP BY 1 ORDER BY 1;
CREATE TABLE ranged (id sno PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE ranged_1 PARTITION OF ranged FOR VALUES FROM (MINVALUE) TO (sno_min('2026-01-01Z'));
CREATE TABLE ranged_2 PARTITION OF ranged FOR VALUES FROM (sno_min('2026-01-01Z')) TO (MAXVALUE);
SET enable_bitmapscan = off;
EXPLAIN (COSTS OFF) SELECT * FROM ranged WHERE sno_during(id, '[2026-01-05Z,2026-01-06Z)');
-- Equal keys of a B-tree are kept once.
CREATE TABLE same AS SELECT 'brpk4q72xwf2m63l'::sno AS id FROM generate_series(1, 20000);
CREATE INDEX same_id ON same (id);
SELECT pg_relation_size('same_id') < 300000 AS deduplicated;
DROP TABLE snos, others, plain, hashed, ranged, same;

-- The caller's partitions.
SELECT sno_partition(sno_next(1, 0)), sno_partition(sno_next(1, 32767)), sno_metabyte(sno_next(255, 5));
SELECT count(DISTINCT sno_next(n % 3, n % 2)) FROM generate_series(1, 3000) n;
SELECT sno_node(sno_next()) = node_id AS automatic, sno_node(sno_next(1, 32767)) = node_id AS callers FROM flake_stat;

-- Errors; tests/server/test_errors.py has more.
SELECT ''::sno;
SELECT 'BRPK4Q72XWF2M63L'::sno;
SELECT 'brpk4q72xwf2m63lx'::sno;
SELECT 'brpk4q72xwf2m6ß'::sno;
SELECT '\x00'::bytea::sno;
SELECT '00000000-0000-0000-0000-000000000000'::uuid::sno;
SELECT sno_next(-1);
SELECT sno_next(0, -1);
SELECT sno_make('2026-01-01Z', 0, 0, -1);
SELECT sno_next(NULL), sno_next(1, NULL), sno_timestamp(NULL), sno_make(NULL), sno_min(NULL), NULL::sno::text;
