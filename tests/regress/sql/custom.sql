-- Layouts of one's own.
SET timezone = 'UTC';
SET datestyle = ISO;
SET intervalstyle = postgres;

SELECT flake_create_layout('later', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z"}');
SELECT flake_create_layout('kinds', '{ "epoch": "2024-01-01T00:00:00Z", "tick": "1ms",
    "fields": [ {"name": "timestamp", "bits": 41, "role": "timestamp"},
                {"name": "kind",      "bits": 6,  "role": "tag"},
                {"name": "worker",    "bits": 8,  "role": "worker"},
                {"name": "sequence",  "bits": 8,  "role": "sequence"} ],
    "text": "base62" }');
SELECT name, epoch, tick, bits, ids_per_tick, ends_at, sortable_until, text_form, generates, source
FROM flake_layouts WHERE source = 'custom' ORDER BY name \gx

-- They do what built-in ones do.
CREATE TABLE things (
    id bigint PRIMARY KEY DEFAULT flake_next('kinds', 7),
    created_at timestamptz GENERATED ALWAYS AS (flake_timestamp(id, 'kinds')) STORED
);
INSERT INTO things SELECT FROM generate_series(1, 1000);
SELECT count(DISTINCT id), bool_and(created_at BETWEEN now() - interval '1 minute' AND clock_timestamp()) AS timely,
       array_agg(DISTINCT (flake_decode(id, 'kinds')).fields->>'kind') AS kinds,
       bool_and(flake_from_text(flake_to_text(id, 'kinds'), 'kinds') = id) AS text,
       count(*) FILTER (WHERE flake_during(id, tstzrange(now() - interval '1 minute', NULL), 'kinds')) AS during
FROM things;
SELECT (flake_decode(flake_next('kinds'), 'kinds')).fields->>'kind' AS without_a_tag;
SELECT flake_next('kinds', 63) > 0 AS largest_tag;
SELECT flake_next('kinds', 64);
SELECT flake_next('kinds', -1);

-- Two names for the same bits share a generator: never one ID twice.
SELECT flake_create_layout('alias', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z", "text": "base58"}');
SELECT flake_create_layout('alias2', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1000us",
    "fields": [ {"name": "time", "bits": 41, "role": "timestamp"}, {"name": "node", "bits": 10, "role": "worker"},
                {"name": "count", "bits": 12, "role": "sequence"} ]}');
SELECT count(*), count(DISTINCT id) FROM (
    SELECT unnest(ARRAY[flake_next('later'), flake_next('alias'), flake_next('alias2')]) AS id FROM generate_series(1, 20000)) s;

-- Every mistake has its own error.
CREATE PROCEDURE try(definition jsonb) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM flake_create_layout('mistake', definition);
    RAISE NOTICE 'created';
    PERFORM flake_drop_layout('mistake');
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE '% %', SQLSTATE, SQLERRM;
END $$;
CALL try('[]');
CALL try('["twitter"]');
CALL try('"twitter"');
CALL try('{"like": "twitter", "fields": [["t", 41, "timestamp"]]}');
CALL try('{}');
CALL try('{"like": "twittre"}');
CALL try('{"like": "later"}');
CALL try('{"like": "twitter", "epok": 1}');
CALL try('{"like": "twitter", "epoch": "yesterday"}');
CALL try('{"like": "twitter", "epoch": 0}');
CALL try('{"like": "twitter", "epoch": "2999-01-01T00:00:00Z"}');
CALL try('{"like": "twitter", "epoch": "2024-01-01T00:00:00.0000001Z"}');
CALL try('{"like": "twitter", "tick": "0ms"}');
CALL try('{"like": "twitter", "tick": "1 hour"}');
CALL try('{"like": "twitter", "tick": "99999999999999999999s"}');
CALL try('{"like": "twitter", "text": "base63"}');
CALL try('{"like": "twitter", "fields": {}}');
CALL try('{"like": "twitter", "fields": []}');
CALL try('{"epoch": "2024-01-01T00:00:00Z", "fields": []}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "time"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 1, "role": "flag"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": -1, "role": "timestamp"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 0, "role": "timestamp"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 999, "role": "timestamp"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp", "extra": 1}]}');
CALL try('{"like": "twitter", "fields": [{"name": "w", "bits": 41, "role": "worker"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 40, "role": "timestamp"}, {"name": "u", "bits": 20, "role": "timestamp"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp"}, {"name": "s", "bits": 24, "role": "sequence"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp"}, {"name": "s", "bits": 5, "role": "sequence"}, {"name": "u", "bits": 5, "role": "sequence"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp"}, {"name": "s", "bits": 5, "role": "tag"}, {"name": "u", "bits": 5, "role": "tag"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp"}, {"name": "t", "bits": 5, "role": "worker"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp"}, {"name": "", "bits": 5, "role": "worker"}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp"}, {"name": "r", "bits": 2, "role": "reserved", "value": 4}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp"}, {"name": "w", "bits": 2, "role": "worker", "reversed": true}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 41, "role": "timestamp", "value": 3}]}');
CALL try('{"like": "twitter", "fields": [{"name": "t", "bits": 40, "role": "timestamp"}, {"name": "a", "bits": 1, "role": "worker"}, {"name": "b", "bits": 1, "role": "worker"}, {"name": "c", "bits": 1, "role": "worker"}, {"name": "d", "bits": 1, "role": "worker"}, {"name": "e", "bits": 1, "role": "worker"}]}');
-- The largest timestamp, and the smallest.
CALL try('{"epoch": "1970-01-01T00:00:00Z", "tick": "1us", "fields": [{"name": "t", "bits": 64, "role": "timestamp"}]}');
CALL try('{"epoch": "-004713-11-24T00:00:00Z", "tick": "9223372036854775807us", "fields": [{"name": "t", "bits": 1, "role": "timestamp"}]}');
-- The earliest epoch is the first timestamptz; an earlier one could not be shown.
CALL try('{"like": "twitter", "epoch": "-004713-11-23T23:59:59.999999Z"}');
CALL try('{"like": "twitter", "epoch": "-009999-01-02T01:59:59Z"}');
BEGIN;
SELECT flake_create_layout('earliest', '{"like": "twitter", "epoch": "-004713-11-24T00:00:00Z"}');
SELECT flake_timestamp(0, 'earliest'), flake_min('4714-11-24 BC', 'earliest');
ROLLBACK;
-- JSON that PostgreSQL accepts, and no reader of definitions.
CALL try('{"like": "twitter", "tick": 1e400}');
CALL try(('{"like": ' || repeat('[', 1000) || repeat(']', 1000) || '}')::jsonb);
DROP PROCEDURE try;
SELECT flake_create_layout('later', '{"like": "twitter"}');
SELECT flake_create_layout('sno', '{"like": "twitter"}');
SELECT flake_create_layout('', '{"like": "twitter"}');
SELECT flake_create_layout('my layout', '{"like": "twitter"}');
SELECT flake_create_layout(repeat('x', 64), '{"like": "twitter"}');

-- A definition cannot be changed, nor made by hand.
ALTER SERVER kinds OPTIONS (SET definition '{"like": "twitter", "epoch": "2025-01-01T00:00:00Z"}');
SELECT flake_next('kinds');
SELECT count(*) FROM flake_layouts;
ALTER SERVER kinds OPTIONS (SET definition '{"like": "nothing"}');
ALTER SERVER kinds OPTIONS (DROP definition);
ALTER SERVER kinds OPTIONS (ADD host 'here');
CREATE SERVER handmade FOREIGN DATA WRAPPER flake_layout OPTIONS (definition '{"like": "twitter"}');
SELECT flake_next('handmade');
-- Objects that name a layout have to go first.
SELECT flake_drop_layout('kinds');
DROP TABLE things;
SELECT flake_drop_layout('handmade'), flake_drop_layout('kinds');

-- A transaction that ends otherwise leaves nothing.
BEGIN;
SELECT flake_create_layout('passing', '{"like": "twitter"}');
SELECT flake_next('passing') > 0 AS made;
SAVEPOINT s;
SELECT flake_drop_layout('passing');
SELECT flake_next('passing');
ROLLBACK TO s;
SELECT flake_next('passing') > 0 AS made;
ROLLBACK;
SELECT flake_next('passing');

-- The name is used again, with other bits.
SELECT flake_create_layout('again', '{"like": "twitter"}');
SELECT flake_timestamp(0, 'again'), flake_next('again') > 0 AS made;
SELECT flake_drop_layout('again'), flake_create_layout('again', '{"like": "si"}');
SELECT flake_timestamp(0, 'again'), flake_next('again') < 2::bigint ^ 53 AS made;
SELECT flake_drop_layout(name) FROM flake_layouts WHERE source = 'custom';

-- Privileges.
CREATE ROLE regress_flake_user;
SET ROLE regress_flake_user;
\set VERBOSITY terse
SELECT flake_create_layout('mine', '{"like": "twitter"}');
SELECT flake_drop_layout('mine');
RESET ROLE;
\set VERBOSITY default
DO $$ BEGIN
    EXECUTE (SELECT format('GRANT %s TO regress_flake_user', extowner::regrole) FROM pg_extension WHERE extname = 'flake');
END $$;
SET ROLE regress_flake_user;
SELECT flake_create_layout('mine', '{"like": "twitter"}');
SELECT flake_next('mine') > 0 AS made;
SELECT flake_drop_layout('mine');
RESET ROLE;
DROP ROLE regress_flake_user;

-- A layout of two ticks may have more IDs in each than bigint counts.
SELECT flake_create_layout('wide', '{"epoch": "2020-01-01T00:00:00Z", "tick": "1000000000s", "fields": [
    {"name": "time", "bits": 1, "role": "timestamp"}, {"name": "worker", "bits": 63, "role": "worker"}]}');
SELECT ids_per_tick, increasing FROM flake_layouts WHERE name = 'wide';
SELECT flake_drop_layout('wide');

-- The longest tick is shown to the microsecond.
SELECT flake_create_layout('long', '{"epoch": "-004000-01-01T00:00:00Z", "tick": "9223372036854775807us", "fields": [
    {"name": "time", "bits": 1, "role": "timestamp"}, {"name": "sequence", "bits": 12, "role": "sequence"}]}');
SELECT tick, ends_at FROM flake_layouts WHERE name = 'long';
SELECT flake_drop_layout('long');
