-- The time inside IDs, and what can be built on it.
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;
SET enable_bitmapscan = off;
SET enable_seqscan = off;

-- Ends of a layout; instants between ticks belong to the tick that holds them.
SELECT flake_timestamp(0), flake_timestamp(9223372036854775807);
SELECT flake_min('2010-11-04 01:42:54.657Z'), flake_max('2010-11-04 01:42:54.657Z');
SELECT flake_min('2010-11-04 01:42:54.657999Z'), flake_min('2010-11-04 01:42:54.658Z');
SELECT flake_max('2080-07-10 17:30:30.208999Z');
SELECT flake_min('2154-04-07 06:28:15.999999Z', 'base64id'), flake_max('2018-03-01Z', 'base64id');
SELECT flake_min('2021-01-01Z', 'si'), flake_max('2055-11-04 19:53:47.775Z', 'si') = 2::bigint ^ 53 - 1 AS exact_in_javascript;

-- NULL in, NULL out.
SELECT flake_timestamp(NULL), flake_timestamp(1, NULL), flake_min(NULL), flake_max(NULL), flake_next(NULL),
       flake_decode(NULL::bigint) IS NULL AS decode;

-- The time zone of the session decides how it looks, not what it is.
SET timezone = 'Asia/Tokyo';
SELECT flake_timestamp(1541815603606036480);
SET timezone = 'UTC';

-- A generated column, and an index on the time inside.
CREATE TABLE tweets (
    id bigint PRIMARY KEY DEFAULT flake_next('twitter'),
    created_at timestamptz GENERATED ALWAYS AS (flake_timestamp(id)) STORED,
    body text
);
INSERT INTO tweets (id) VALUES (1541815603606036480), (1050118621198921728);
INSERT INTO tweets (body) SELECT 'new' FROM generate_series(1, 10000);
SELECT id, created_at FROM tweets WHERE body IS NULL ORDER BY id;
SELECT count(*) FROM tweets WHERE created_at BETWEEN now() - interval '1 minute' AND clock_timestamp();
CREATE INDEX tweets_time ON tweets (flake_timestamp(id, 'twitter'));
ANALYZE tweets;
EXPLAIN (COSTS OFF) SELECT * FROM tweets WHERE flake_timestamp(id, 'twitter') < '2020-01-01Z';
SELECT id FROM tweets WHERE flake_timestamp(id, 'twitter') < '2020-01-01Z';
-- Ranges of IDs use the primary key: for constants, and for instants known at execution.
EXPLAIN (COSTS OFF) SELECT * FROM tweets WHERE id >= flake_min('2018-10-10Z') AND id < flake_min('2018-10-11Z');
SELECT id FROM tweets WHERE id BETWEEN flake_min('2018-10-10 20:19:24.211Z') AND flake_max('2018-10-10 20:19:24.211Z');
PREPARE since(timestamptz) AS SELECT count(*) FROM tweets WHERE id < flake_min($1);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE since('2019-01-01Z');
EXECUTE since('2019-01-01Z');
RESET plan_cache_mode;
-- An index on the time of a layout that is not ordered by time.
CREATE TABLE spread (id bigint PRIMARY KEY DEFAULT flake_next('uniqueid'));
INSERT INTO spread SELECT FROM generate_series(1, 1000);
CREATE INDEX ON spread (flake_timestamp(id, 'uniqueid'));
EXPLAIN (COSTS OFF) SELECT count(*) FROM spread WHERE flake_timestamp(id, 'uniqueid') > '2020-01-01Z';
SELECT count(*) FROM spread WHERE flake_timestamp(id, 'uniqueid') > '2020-01-01Z';

-- Partitions by time, bounded by IDs.
CREATE TABLE events (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), kind text) PARTITION BY RANGE (id);
CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM (flake_min('2024-01-01Z')) TO (flake_min('2025-01-01Z'));
CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM (flake_min('2025-01-01Z')) TO (flake_min('2026-01-01Z'));
CREATE TABLE events_later PARTITION OF events FOR VALUES FROM (flake_min('2026-01-01Z')) TO (MAXVALUE);
INSERT INTO events (kind) VALUES ('now');
INSERT INTO events VALUES (flake_min('2024-12-31 23:59:59.999Z'), 'last of 2024'), (flake_min('2025-01-01Z'), 'first of 2025');
SELECT tableoid::regclass, kind FROM events ORDER BY id;
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id >= flake_min('2025-03-01Z') AND id < flake_min('2025-04-01Z');
EXPLAIN (COSTS OFF) SELECT * FROM events WHERE id <= flake_max('2024-06-01Z');

-- A layout in a variable, a parameter or a column may be another one in every call from the same place.
CREATE FUNCTION all_of(id bigint, layout text, OUT at timestamptz, OUT first bigint, OUT last bigint, OUT created_at timestamptz,
                       OUT text text)
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    at := flake_timestamp(id, layout);
    first := flake_min(at, layout);
    last := flake_max(at, layout);
    created_at := (flake_decode(id, layout)).created_at;
    text := flake_to_text(id, layout);
END $$;
SELECT layout, (all_of(1541815603606036480, layout)).*
FROM (VALUES ('twitter'), ('discord'), ('twitter'), ('snowflake'), ('leaf')) v (layout);
SELECT all_of(1541815603606036480, 'twitter') = all_of(1541815603606036480, 'discord') AS same;
-- A retention function for two layouts in one transaction deletes from each what is old there.
CREATE TABLE kept (layout text, id bigint);
INSERT INTO kept SELECT layout, flake_min('2026-01-01Z'::timestamptz + n * interval '1 day', layout)
FROM (VALUES ('twitter'), ('discord')) v (layout), generate_series(-50, 49) n;
CREATE PROCEDURE expire(name text, before timestamptz) LANGUAGE plpgsql AS $$
DECLARE
    oldest bigint := flake_min(before, name);
BEGIN
    DELETE FROM kept WHERE layout = name AND id < oldest;
END $$;
BEGIN;
CALL expire('discord', '2026-01-01Z');
CALL expire('twitter', '2026-01-01Z');
SELECT layout, count(*) FROM kept GROUP BY layout ORDER BY layout;
COMMIT;
-- A trigger on rows of several layouts.
ALTER TABLE kept ADD COLUMN at timestamptz;
CREATE FUNCTION set_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.at := flake_timestamp(NEW.id, NEW.layout);
    RETURN NEW;
END $$;
CREATE TRIGGER set_time BEFORE INSERT OR UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION set_time();
UPDATE kept SET id = id;
SELECT count(*) AS wrong FROM kept WHERE at IS DISTINCT FROM flake_timestamp(id, layout);
DROP TABLE kept;
DROP FUNCTION all_of, set_time;
DROP PROCEDURE expire;

DROP TABLE tweets, spread, events;
