-- flake for servers that cannot install an extension: the functions of the extension in SQL and PL/pgSQL, for the built-in layouts.
--
--   psql -v ON_ERROR_STOP=1 -f flake.sql
--
-- creates them in the first schema of the search_path, and what they need in the schema "flake". One of several databases that make
-- IDs for the same data gets its number before, as PGOPTIONS="-c flake.node_id=1 -c flake.node_count=2", or later by
-- flake_set_node. docs/how-to/managed.md says what this edition promises, and how to go from here to the extension.

BEGIN;

CREATE SCHEMA flake;

-- All is created in this schema, and what is for callers is moved at the end. In a schema where others create functions and operators,
-- one that fits the types of a call better than PostgreSQL's own would run as each caller.
DO $$
BEGIN
    IF pg_catalog.current_schema() IS NULL THEN
        RAISE 'no schema of the search_path exists' USING ERRCODE = '3F000', HINT = 'SET search_path = public;';
    END IF;
    IF current_user OPERATOR(pg_catalog.=) 'flake' THEN
        RAISE 'role "flake" cannot own this edition' USING ERRCODE = '55000',
            DETAIL = 'It would create its own tables in the schema "flake", which is the first of its search_path.',
            HINT = 'Run this file as another role.';
    END IF;
    PERFORM pg_catalog.set_config('flake_edition.schema', pg_catalog.current_schema()::text, true);
    PERFORM pg_catalog.set_config('search_path', 'flake, pg_temp', true);
END $$;

-- Names in a body of PL/pgSQL are looked up when it runs: such a function sets its search_path, or is called by ones that do. Setting it
-- would cost too much in flake.known, which only compares texts.

-- Layouts ----------------------------------------------------------------------------------------------------------------

CREATE TYPE flake.layout AS (
    name text,
    epoch bigint, -- the start of tick 0, in microseconds
    tick bigint, -- the length of a tick, in microseconds
    last bigint, -- the last tick
    ordered bigint, -- the last tick up to which the order of IDs is the order of time; NULL if it never is
    ticks integer[], -- where the ticks lie: a shift and a number of bits
    turned text, -- whether their bits are in reverse (r), or only in IDs whose flag is 0 (f)
    flag integer, -- the bit that is the flag
    fixed_mask bigint, -- the bits that are the same in all IDs
    fixed bigint, -- what they hold
    random bigint, -- the bits that are random
    worker integer[], -- where the parts of the worker lie, the coarsest first
    sequence integer[], -- where the sequence lies
    fields jsonb, -- where each of the fields but the ticks lies
    bits integer, -- how many bits an ID has
    definition jsonb, -- the fields, the most significant one first
    increasing boolean,
    generates boolean,
    text_form text,
    source text
);

-- generated
CREATE FUNCTION flake.names() RETURNS text[] IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN ARRAY['twitter', 'snowflake', 'si', 'si_single', 'uniqueid', 'uniqueid_v3', 'base64id', 'discord', 'instagram', 'mastodon', 'sonyflake', 'sonyflake_v2', 'tsid', 'leaf', 'baidu', 'seata', 'yitter', 'pgedge', 'pgedge_1_0', 'influxdb', 'weibo', 'linkedin', 'cockroach', 'simpleflake', 'pgactive'];

CREATE FUNCTION flake.known(name text) RETURNS flake.layout IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RETURN CASE name
        WHEN 'twitter' THEN ROW('twitter', 1288834974657000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, '-9223372036854775808', 0, 0, '{{17,5},{12,5}}', '{{0,12}}', '{"datacenter": "{{17,5}}", "worker": "{{12,5}}", "sequence": "{{0,12}}"}', 63, '[{"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 5, "name": "datacenter", "role": "worker"}, {"bits": 5, "name": "worker", "role": "worker"}, {"bits": 12, "name": "sequence", "role": "sequence"}]', true, true, 'decimal', 'Twitter''s Snowflake of 2010, with its own epoch')::flake.layout
        WHEN 'snowflake' THEN ROW('snowflake', 1609459200000000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, '-9223372036854775808', 0, 0, '{{17,5},{12,5}}', '{{0,12}}', '{"datacenter": "{{17,5}}", "worker": "{{12,5}}", "sequence": "{{0,12}}"}', 63, '[{"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 5, "name": "datacenter", "role": "worker"}, {"bits": 5, "name": "worker", "role": "worker"}, {"bits": 12, "name": "sequence", "role": "sequence"}]', true, true, 'decimal', 'Twitter''s division of the bits, with a recent epoch')::flake.layout
        WHEN 'si' THEN ROW('si', 1609459200000000, 1000, 1099511627775, 1099511627775, '{13,40}', NULL, NULL, '-9007199254740992', 0, 0, '{{8,5}}', '{{0,8}}', '{"machine": "{{8,5}}", "sequence": "{{0,8}}"}', 53, '[{"bits": 40, "name": "timestamp", "role": "timestamp"}, {"bits": 5, "name": "machine", "role": "worker"}, {"bits": 8, "name": "sequence", "role": "sequence"}]', true, true, 'decimal', 'Snowflake-SI of litert/uuid.js: 53 bits, exact as a JavaScript number')::flake.layout
        WHEN 'si_single' THEN ROW('si_single', 1609459200000000, 1000, 1099511627775, 1099511627775, '{13,40}', NULL, NULL, '-9007199254740992', 0, 0, '{}', '{{0,13}}', '{"sequence": "{{0,13}}"}', 53, '[{"bits": 40, "name": "timestamp", "role": "timestamp"}, {"bits": 13, "name": "sequence", "role": "sequence"}]', true, true, 'decimal', 'Snowflake-SI of litert/uuid.js without a machine number')::flake.layout
        WHEN 'uniqueid' THEN ROW('uniqueid', 0, 1000, 4398046511103, NULL, '{22,42}', 'r', NULL, 64512, 0, 0, '{{0,4},{4,6}}', '{{16,6}}', '{"sequence": "{{16,6}}", "generator": "{{4,6}}", "cluster": "{{0,4}}"}', 64, '[{"bits": 42, "name": "timestamp", "role": "timestamp", "reversed": true}, {"bits": 6, "name": "sequence", "role": "sequence"}, {"bits": 6, "name": "zero", "role": "reserved"}, {"bits": 6, "name": "generator", "rank": 1, "role": "worker"}, {"bits": 4, "name": "cluster", "role": "worker"}]', false, true, 'hex', 'eight-byte IDs of java-uniqueid 1.0 to 1.13')::flake.layout
        WHEN 'uniqueid_v3' THEN ROW('uniqueid_v3', 0, 1000, 4398046511103, NULL, '{22,42}', 'f', 12, 0, 0, 0, '{{0,4},{13,3},{4,8}}', '{{16,6}}', '{"sequence": "{{16,6}}", "generator": "{{13,3},{4,8}}", "mode": "{{12,1}}", "cluster": "{{0,4}}"}', 64, '[{"bits": 42, "name": "timestamp", "role": "timestamp", "reversed": true}, {"bits": 6, "name": "sequence", "role": "sequence"}, {"bits": 3, "name": "generator", "rank": 1, "role": "worker"}, {"bits": 1, "name": "mode", "role": "flag"}, {"bits": 8, "name": "generator", "rank": 1, "role": "worker"}, {"bits": 4, "name": "cluster", "role": "worker"}]', false, false, 'hex', 'eight-byte IDs of java-uniqueid since 3.2, which reads older IDs too')::flake.layout
        WHEN 'base64id' THEN ROW('base64id', 1519862400000000, 1000000, 4294967295, 4294967295, '{28,32}', NULL, NULL, '-1152921504606846976', 0, 511, '{{19,9}}', '{{9,10}}', '{"worker": "{{19,9}}", "sequence": "{{9,10}}", "random": "{{0,9}}"}', 60, '[{"bits": 32, "name": "timestamp", "role": "timestamp"}, {"bits": 9, "name": "worker", "role": "worker"}, {"bits": 10, "name": "sequence", "role": "sequence"}, {"bits": 9, "name": "random", "role": "random"}]', true, true, 'base64url_reversed', '60-bit IDs of uexky, shown as ten characters')::flake.layout
        WHEN 'discord' THEN ROW('discord', 1420070400000000, 1000, 4398046511103, 2199023255551, '{22,42}', NULL, NULL, 0, 0, 0, '{{17,5},{12,5}}', '{{0,12}}', '{"worker": "{{17,5}}", "process": "{{12,5}}", "increment": "{{0,12}}"}', 64, '[{"bits": 42, "name": "timestamp", "role": "timestamp"}, {"bits": 5, "name": "worker", "role": "worker"}, {"bits": 5, "name": "process", "role": "worker"}, {"bits": 12, "name": "increment", "role": "sequence"}]', true, true, 'decimal', 'Discord''s API')::flake.layout
        WHEN 'instagram' THEN ROW('instagram', 1314220021721000, 1000, 2199023255551, 1099511627775, '{23,41}', NULL, NULL, 0, 0, 0, '{{10,13}}', '{{0,10}}', '{"shard": "{{10,13}}", "sequence": "{{0,10}}"}', 64, '[{"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 13, "name": "shard", "role": "worker"}, {"bits": 10, "name": "sequence", "role": "sequence"}]', true, true, 'decimal', 'Instagram''s PL/pgSQL function of 2012')::flake.layout
        WHEN 'mastodon' THEN ROW('mastodon', 0, 1000, 281474976710655, 140737488355327, '{16,48}', NULL, NULL, 0, 0, 0, '{}', '{{0,16}}', '{"tail": "{{0,16}}"}', 64, '[{"bits": 48, "name": "timestamp", "role": "timestamp"}, {"bits": 16, "name": "tail", "role": "sequence"}]', true, true, 'decimal', 'Mastodon''s timestamp_id()')::flake.layout
        WHEN 'sonyflake' THEN ROW('sonyflake', 1409529600000000, 10000, 549755813887, 549755813887, '{24,39}', NULL, NULL, '-9223372036854775808', 0, 0, '{{0,16}}', '{{16,8}}', '{"sequence": "{{16,8}}", "machine": "{{0,16}}"}', 63, '[{"bits": 39, "name": "timestamp", "role": "timestamp"}, {"bits": 8, "name": "sequence", "role": "sequence"}, {"bits": 16, "name": "machine", "role": "worker"}]', true, true, 'decimal', 'sony/sonyflake 1')::flake.layout
        WHEN 'sonyflake_v2' THEN ROW('sonyflake_v2', 1735689600000000, 10000, 549755813887, 549755813887, '{24,39}', NULL, NULL, '-9223372036854775808', 0, 0, '{{0,16}}', '{{16,8}}', '{"sequence": "{{16,8}}", "machine": "{{0,16}}"}', 63, '[{"bits": 39, "name": "timestamp", "role": "timestamp"}, {"bits": 8, "name": "sequence", "role": "sequence"}, {"bits": 16, "name": "machine", "role": "worker"}]', true, true, 'decimal', 'sony/sonyflake 2 with its default widths')::flake.layout
        WHEN 'tsid' THEN ROW('tsid', 1577836800000000, 1000, 4398046511103, 2199023255551, '{22,42}', NULL, NULL, 0, 0, 0, '{{12,10}}', '{{0,12}}', '{"node": "{{12,10}}", "counter": "{{0,12}}"}', 64, '[{"bits": 42, "name": "timestamp", "role": "timestamp"}, {"bits": 10, "name": "node", "role": "worker"}, {"bits": 12, "name": "counter", "role": "sequence"}]', true, true, 'crockford32', 'tsid-creator and hypersistence-tsid with 1,024 nodes')::flake.layout
        WHEN 'leaf' THEN ROW('leaf', 1288834974657000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, '-9223372036854775808', 0, 0, '{{12,10}}', '{{0,12}}', '{"worker": "{{12,10}}", "sequence": "{{0,12}}"}', 63, '[{"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 10, "name": "worker", "role": "worker"}, {"bits": 12, "name": "sequence", "role": "sequence"}]', true, true, 'decimal', 'Meituan''s Leaf')::flake.layout
        WHEN 'baidu' THEN ROW('baidu', 1463673600000000, 1000000, 268435455, 268435455, '{35,28}', NULL, NULL, '-9223372036854775808', 0, 0, '{{13,22}}', '{{0,13}}', '{"worker": "{{13,22}}", "sequence": "{{0,13}}"}', 63, '[{"bits": 28, "name": "timestamp", "role": "timestamp"}, {"bits": 22, "name": "worker", "role": "worker"}, {"bits": 13, "name": "sequence", "role": "sequence"}]', true, true, 'decimal', 'baidu/uid-generator with its default widths, used up since 2024-11-20')::flake.layout
        WHEN 'seata' THEN ROW('seata', 1588435200000000, 1000, 2199023255551, NULL, '{12,41}', NULL, NULL, '-9223372036854775808', 0, 0, '{{53,10}}', '{{0,12}}', '{"worker": "{{53,10}}", "sequence": "{{0,12}}"}', 63, '[{"bits": 10, "name": "worker", "role": "worker"}, {"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 12, "name": "sequence", "role": "sequence"}]', false, true, 'decimal', 'Apache Seata since 1.4')::flake.layout
        WHEN 'yitter' THEN ROW('yitter', 1582136402000000, 1000, 2251799813685247, 2251799813685247, '{12,51}', NULL, NULL, '-9223372036854775808', 0, 0, '{{6,6}}', '{{0,6}}', '{"worker": "{{6,6}}", "sequence": "{{0,6}}"}', 63, '[{"bits": 51, "name": "timestamp", "role": "timestamp"}, {"bits": 6, "name": "worker", "role": "worker"}, {"bits": 6, "name": "sequence", "role": "sequence"}]', true, false, 'decimal', 'yitter/IdGenerator with its default widths, which reserves sequence numbers')::flake.layout
        WHEN 'pgedge' THEN ROW('pgedge', 1672531200000000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, '-9223372036854775808', 0, 0, '{{12,10}}', '{{0,12}}', '{"node": "{{12,10}}", "count": "{{0,12}}"}', 63, '[{"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 10, "name": "node", "role": "worker"}, {"bits": 12, "name": "count", "role": "sequence"}]', true, false, 'decimal', 'pgEdge/snowflake since 1.2, which numbers its own nodes')::flake.layout
        WHEN 'pgedge_1_0' THEN ROW('pgedge_1_0', 1672531200000000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, '-9223372036854775808', 0, 0, '{{0,10}}', '{{10,12}}', '{"count": "{{10,12}}", "node": "{{0,10}}"}', 63, '[{"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 12, "name": "count", "role": "sequence"}, {"bits": 10, "name": "node", "role": "worker"}]', true, false, 'decimal', 'pgEdge/snowflake up to 1.1')::flake.layout
        WHEN 'influxdb' THEN ROW('influxdb', 1491696000000000, 1000, 4398046511103, 2199023255551, '{22,42}', NULL, NULL, 0, 0, 0, '{{12,10}}', '{{0,12}}', '{"machine": "{{12,10}}", "sequence": "{{0,12}}"}', 64, '[{"bits": 42, "name": "timestamp", "role": "timestamp"}, {"bits": 10, "name": "machine", "role": "worker"}, {"bits": 12, "name": "sequence", "role": "sequence"}]', true, true, 'base64ordered', 'InfluxDB')::flake.layout
        WHEN 'weibo' THEN ROW('weibo', 515483463000000, 1000000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, '-9223372036854775808', 0, 0, '{{18,4}}', '{{0,18}}', '{"idc": "{{18,4}}", "sequence": "{{0,18}}"}', 63, '[{"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 4, "name": "idc", "role": "worker"}, {"bits": 18, "name": "sequence", "role": "sequence"}]', true, false, 'decimal', 'Weibo''s message IDs, by weibocom/breeze')::flake.layout
        WHEN 'linkedin' THEN ROW('linkedin', 0, 1000, 4398046511103, 2199023255551, '{22,42}', NULL, NULL, 0, 0, 4194303, '{}', '{}', '{"opaque": "{{0,22}}"}', 64, '[{"bits": 42, "name": "timestamp", "role": "timestamp"}, {"bits": 22, "name": "opaque", "role": "random"}]', true, false, 'decimal', 'LinkedIn''s activity URNs, by their published samples')::flake.layout
        WHEN 'cockroach' THEN ROW('cockroach', 1420070400000000, 10, 281474976710655, 281474976710655, '{15,48}', NULL, NULL, '-9223372036854775808', 0, 0, '{{0,15}}', '{}', '{"node": "{{0,15}}"}', 63, '[{"bits": 48, "name": "timestamp", "role": "timestamp"}, {"bits": 15, "name": "node", "role": "worker"}]', true, false, 'decimal', 'CockroachDB''s unique_rowid()')::flake.layout
        WHEN 'simpleflake' THEN ROW('simpleflake', 946702800000000, 1000, 2199023255551, 1099511627775, '{23,41}', NULL, NULL, 0, 0, 8388607, '{}', '{}', '{"random": "{{0,23}}"}', 64, '[{"bits": 41, "name": "timestamp", "role": "timestamp"}, {"bits": 23, "name": "random", "role": "random"}]', true, false, 'decimal', 'SawdustSoftware/simpleflake, whose IDs differ by chance')::flake.layout
        WHEN 'pgactive' THEN ROW('pgactive', 1475796139634000, 1000, 1099511627775, 549755813887, '{24,40}', NULL, NULL, 0, 0, 0, '{{14,10}}', '{{0,14}}', '{"node": "{{14,10}}", "sequence": "{{0,14}}"}', 64, '[{"bits": 40, "name": "timestamp", "role": "timestamp"}, {"bits": 10, "name": "node", "role": "worker"}, {"bits": 14, "name": "sequence", "role": "sequence"}]', true, true, 'decimal', 'aws/pgactive''s pgactive_snowflake_id_nextval()')::flake.layout
        END;
END $$;
-- end of generated

CREATE FUNCTION flake.layouts() RETURNS SETOF flake.layout IMMUTABLE PARALLEL SAFE ROWS 24 LANGUAGE sql
    BEGIN ATOMIC SELECT l.* FROM unnest(flake.names()) name, LATERAL flake.known(name) l; END;

CREATE FUNCTION flake.named(name text) RETURNS flake.layout IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.known(name);
BEGIN
    IF l.name IS NULL THEN
        RAISE 'layout "%" does not exist', left(name, 100) USING ERRCODE = '22023',
            DETAIL = 'Names of layouts are case-sensitive.',
            HINT = format('Known layouts: %s. Only the extension knows custom ones.', array_to_string(flake.names(), ', '));
    END IF;
    RETURN l;
END $$;

-- The number whose parts lie in these runs of bits.
CREATE FUNCTION flake.number(id bigint, runs integer[]) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    number bigint := 0;
BEGIN
    FOR n IN 1 .. cardinality(runs) / 2 LOOP
        number := (number << runs[n][2]) | ((id >> runs[n][1]) & ((1::bigint << runs[n][2]) - 1));
    END LOOP;
    RETURN number;
END $$;

-- How many numbers these runs of bits hold.
CREATE FUNCTION flake.numbers(runs integer[]) RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN 1::bigint << COALESCE((SELECT sum(runs[n][2]) FROM generate_series(1, cardinality(runs) / 2) n), 0)::integer;

-- A number with its lowest bits in reverse.
CREATE FUNCTION flake.reversed(number bigint, bits integer) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN lpad(reverse(right(number::bit(64)::text, bits)), 64, '0')::bit(64)::bigint;

-- An ID's tick as its bits hold it, and back.
CREATE FUNCTION flake.turned(tick bigint, id bigint, l flake.layout) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    IF l.turned = 'r' OR l.turned = 'f' AND (id >> l.flag) & 1 = 0 THEN
        RETURN flake.reversed(tick, l.ticks[2]);
    END IF;
    RETURN tick;
END $$;

-- The tick of an ID, which has to be possible in the layout.
CREATE FUNCTION flake.tick(id bigint, l flake.layout) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    tick bigint := flake.turned((id >> l.ticks[1]) & ((1::bigint << l.ticks[2]) - 1), id, l);
    wrong record;
    shift integer := l.bits;
BEGIN
    IF id & l.fixed_mask = l.fixed AND tick <= l.last THEN
        RETURN tick;
    END IF;
    FOR wrong IN SELECT f->>'name' AS name, (f->>'bits')::integer AS bits, f->>'role' AS role, COALESCE(f->>'value', '0') AS value
        FROM jsonb_array_elements(l.definition) f
    LOOP
        shift := shift - wrong.bits;
        EXIT WHEN wrong.role = 'reserved' AND flake.number(id, ARRAY[ARRAY[shift, wrong.bits]])::text <> wrong.value;
    END LOOP;
    RAISE 'ID % is not possible in layout "%"', id, l.name USING ERRCODE = '22003',
        HINT = 'Check that the ID was made with this layout.',
        DETAIL = CASE
            WHEN l.bits < 64 AND id >> l.bits <> 0 THEN format('IDs of this layout are from 0 to %s.', ~(-1::bigint << l.bits))
            WHEN wrong.role = 'reserved' THEN format('Its field "%s" is %s, but must be %s.', wrong.name,
                flake.number(id, ARRAY[ARRAY[shift, wrong.bits]]), wrong.value)
            ELSE 'Its time is later than the type timestamptz can hold.' END;
END $$;

-- An instant of microseconds since 1970. Days and the rest are added apart, since an interval times a number is exact for these only.
-- Times are at interval '0', as a session's TimeZone can define an abbreviation "UTC" of its own.
CREATE FUNCTION flake.instant(microseconds bigint) RETURNS timestamptz IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN (timestamp '1970-01-01' + microseconds / 86400000000 * interval '1 day'
            + microseconds % 86400000000 * interval '1 microsecond') AT TIME ZONE interval '0';

CREATE FUNCTION flake.out_of_range(at timestamptz, l flake.layout, last bigint) RETURNS bigint
    IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'timestamp out of range for layout "%"', l.name USING ERRCODE = '22008',
        DETAIL = format('%s is not between %s and %s.', at, flake.instant(l.epoch), flake.instant(l.epoch + (last + 1) * l.tick - 1)),
        HINT = 'The view flake_layouts shows the epoch and the last tick of every layout.';
END $$;

-- The tick that holds an instant, not rounded; NULL for an infinite one.
CREATE FUNCTION flake.tick_at(at timestamptz, l flake.layout) RETURNS numeric
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
    IF NOT isfinite(at) THEN
        RETURN NULL;
    END IF;
    RETURN (extract(epoch FROM at AT TIME ZONE interval '0') * 1000000 - l.epoch) / l.tick;
END $$;

CREATE FUNCTION flake.ordered(layout text) RETURNS flake.layout
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
BEGIN
    IF l.ordered IS NULL THEN
        RAISE 'IDs of layout "%" are not ordered by time', layout USING ERRCODE = '22023',
            DETAIL = 'The order of its bits is not the order of time, so the IDs of a span of time are not a range.',
            HINT = 'Use flake_timestamp(id, layout) instead, which can be indexed.';
    END IF;
    RETURN l;
END $$;

-- The smallest and the largest ID of a tick, in a layout whose IDs are ordered by time.
CREATE FUNCTION flake.smallest(tick bigint, l flake.layout) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN (tick << l.ticks[1]) | l.fixed;
CREATE FUNCTION flake.largest(tick bigint, l flake.layout) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN (tick << l.ticks[1]) | l.fixed | (((1::bigint << l.ticks[1]) - 1) & ~l.fixed_mask);

-- Reading IDs ------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake.start_of(id bigint, layout text) RETURNS timestamptz
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
BEGIN
    RETURN flake.instant(l.epoch + flake.tick(id, l) * l.tick);
END $$;

-- The planner puts the expression in the call's place, which makes IDs of twitter cheap to read.
CREATE FUNCTION flake_timestamp(id bigint, layout text DEFAULT 'twitter') RETURNS timestamptz IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN layout = 'twitter' AND id >= 0
        THEN (timestamp '2010-11-04 01:42:54.657' + (id >> 22) / 86400000 * interval '1 day'
              + (id >> 22) % 86400000 * interval '1 millisecond') AT TIME ZONE interval '0'
        ELSE flake.start_of(id, layout) END;

CREATE TYPE flake_parts AS (layout text, created_at timestamptz, worker bigint, sequence bigint, fields jsonb);

CREATE FUNCTION flake_decode(id bigint, layout text DEFAULT 'twitter') RETURNS flake_parts
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
    tick bigint := flake.tick(id, l);
    numbers jsonb;
BEGIN
    SELECT jsonb_object_agg(key, flake.number(id, value::integer[])) INTO numbers FROM jsonb_each_text(l.fields);
    RETURN (l.name, flake.instant(l.epoch + tick * l.tick), flake.number(id, l.worker), flake.number(id, l.sequence),
            numbers || jsonb_build_object('timestamp', tick));
END $$;

CREATE FUNCTION flake_explain(id bigint, layout text DEFAULT 'twitter') RETURNS text
    STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
    tick bigint := flake.tick(id, l);
    start bigint := l.epoch + tick * l.tick;
    field record;
    shift integer := l.bits;
    number bigint;
    line text := '';
    places integer[] := '{}';
    labels text[] := '{}';
    drawn integer;
    lines text[] := '{}';
BEGIN
    FOR field IN SELECT 'unused' AS name, 64 - l.bits AS bits, 'reserved' AS role WHERE l.bits < 64
        UNION ALL SELECT f->>'name', (f->>'bits')::integer, f->>'role' FROM jsonb_array_elements(l.definition) f
    LOOP
        shift := CASE WHEN field.name = 'unused' THEN shift ELSE shift - field.bits END;
        number := CASE WHEN field.name = 'unused' THEN 0 ELSE (id >> shift) & ((1::bigint << field.bits) - 1) END;
        places := places || length(line);
        line := line || right(number::bit(64)::text, field.bits) || ' ';
        labels := array_append(labels, format('+- %s bit%s  %s', lpad(field.bits::text, 2),
            CASE WHEN field.bits = 1 THEN ' ' ELSE 's' END,
            CASE WHEN field.role = 'reserved' THEN field.name
                 ELSE format('%s = %s', field.name, CASE WHEN field.role = 'timestamp' THEN tick ELSE number END) END));
    END LOOP;
    FOR n IN REVERSE cardinality(places) .. 1 LOOP
        line := rtrim(line);
        drawn := 0;
        lines := array_append(lines, '');
        FOR m IN 1 .. n - 1 LOOP
            lines[cardinality(lines)] := lines[cardinality(lines)] || repeat(' ', places[m] - drawn) || '|';
            drawn := places[m] + 1;
        END LOOP;
        lines[cardinality(lines)] := lines[cardinality(lines)] || repeat(' ', places[n] - drawn) || labels[n];
    END LOOP;
    RETURN format(E'%s %s  0x%s  %s\n\n%s\n%s', l.name, id, lpad(to_hex(id), 16, '0'),
        CASE WHEN start > 253402207200999999 THEN format('%s us since 1970', start)
             ELSE to_char(flake.instant(start) AT TIME ZONE interval '0', 'YYYY-MM-DD"T"HH24:MI:SS')
                  || rtrim(rtrim(to_char(flake.instant(start) AT TIME ZONE interval '0', '.US'), '0'), '.') || 'Z' END,
        line, array_to_string(lines, E'\n'));
END $$;

CREATE FUNCTION flake_make(at timestamptz, fields jsonb, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
    tick bigint := floor(flake.tick_at(at, l));
    known jsonb := l.fields || '{"timestamp": null}';
    id bigint := l.fixed;
    field record;
    runs integer[];
    bits integer;
    rest numeric;
BEGIN
    IF jsonb_typeof(fields) <> 'object' THEN
        RAISE 'fields must be a JSON object' USING ERRCODE = '22023',
            DETAIL = 'Its keys are names of fields, its values their numbers.',
            HINT = 'For example: {"worker": 3, "sequence": 7}. Omitted fields are 0.';
    END IF;
    FOR field IN SELECT key AS name, value::text AS value FROM jsonb_each(fields) ORDER BY key COLLATE "C" LOOP
        IF field.value !~ '^[0-9]+(\.0+)?$' OR field.value::numeric >= 18446744073709551616 THEN
            RAISE 'invalid value for field "%" of layout "%": %', field.name, l.name,
                CASE WHEN length(field.value) > 40 THEN left(field.value, 40) || '...' ELSE field.value END
                USING ERRCODE = CASE WHEN field.value ~ '^[-0-9]' THEN '22003' ELSE '22023' END,
                DETAIL = 'Fields hold whole numbers that are not negative.',
                HINT = 'The view flake_layouts shows the fields of every layout.';
        END IF;
    END LOOP;
    IF tick IS NULL OR tick NOT BETWEEN 0 AND l.last THEN
        PERFORM flake.out_of_range(at, l, l.last);
    END IF;
    FOR field IN SELECT key AS name FROM jsonb_object_keys(fields) key
        WHERE key <> 'timestamp' AND NOT known ? key ORDER BY key COLLATE "C" LOOP
        RAISE 'layout "%" has no field "%"', l.name, left(field.name, 63) USING ERRCODE = '22023',
            DETAIL = format('Its fields are %s.', (SELECT string_agg(f->>'name', ', ' ORDER BY place)
                FROM jsonb_array_elements(l.definition) WITH ORDINALITY f (f, place) WHERE f->>'role' <> 'reserved')),
            HINT = 'The view flake_layouts shows the fields of every layout.';
    END LOOP;
    IF (fields->>'timestamp')::numeric <> tick THEN
        RAISE 'timestamp % does not match the given time in layout "%"', trunc((fields->>'timestamp')::numeric), l.name USING ERRCODE = '22023',
            DETAIL = format('The tick of the given time is %s.', tick),
            HINT = 'Omit the timestamp from the fields, or give the time that it stands for.';
    END IF;
    FOR field IN SELECT key AS name, trunc(value::numeric) AS number FROM jsonb_each_text(fields) ORDER BY key COLLATE "C" LOOP
        CONTINUE WHEN field.name = 'timestamp';
        runs := (known->>field.name)::integer[];
        SELECT sum(runs[n][2]) INTO bits FROM generate_series(1, cardinality(runs) / 2) n;
        IF field.number >= 1::bigint << bits THEN
            RAISE '% % is out of range for layout "%"', field.name, field.number, l.name USING ERRCODE = '22003',
                DETAIL = format('The valid range is 0 to %s.', (1::bigint << bits) - 1),
                HINT = 'The view flake_layouts shows the fields of every layout.';
        END IF;
        rest := field.number;
        FOR n IN REVERSE cardinality(runs) / 2 .. 1 LOOP
            id := id | ((rest % (1::bigint << runs[n][2]))::bigint << runs[n][1]);
            rest := div(rest, (1::bigint << runs[n][2]));
        END LOOP;
    END LOOP;
    RETURN id | (flake.turned(tick, id, l) << l.ticks[1]);
END $$;

-- Text -------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake.digits(form text) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN CASE form
        WHEN 'decimal' THEN '0123456789'
        WHEN 'hex' THEN '0123456789abcdef'
        WHEN 'crockford32' THEN '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
        WHEN 'base64url_reversed' THEN 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
        WHEN 'base64ordered' THEN '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~' END;

-- The bits of a digit, where every digit has as many.
CREATE FUNCTION flake.digit_bits(form text) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN CASE form WHEN 'hex' THEN 4 WHEN 'crockford32' THEN 5 WHEN 'base64url_reversed' THEN 6 WHEN 'base64ordered' THEN 6 END;

-- An ID as the number that is written for it, and back.
CREATE FUNCTION flake.displayed(id bigint, l flake.layout) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN CASE WHEN l.text_form = 'base64url_reversed'
        THEN id & ~(((1::bigint << l.ticks[2]) - 1) << l.ticks[1]) | (flake.reversed(id >> l.ticks[1], l.ticks[2]) << l.ticks[1])
        ELSE id END;

CREATE FUNCTION flake_to_text(id bigint, layout text DEFAULT 'twitter') RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
    tick bigint := flake.tick(id, l);
    bits integer := flake.digit_bits(l.text_form);
    written text := '';
    number bigint := flake.displayed(id, l);
BEGIN
    IF bits IS NULL THEN
        RETURN CASE WHEN id < 0 THEN id + 18446744073709551616 ELSE id END;
    END IF;
    FOR shift IN 0 .. l.bits - 1 BY bits LOOP
        written := substr(flake.digits(l.text_form), ((number >> shift) & ((1 << least(bits, 64 - shift)) - 1))::integer + 1, 1)
            || written;
    END LOOP;
    RETURN written;
END $$;

CREATE FUNCTION flake_from_text(text text, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
    form text := l.text_form;
    read text := CASE form WHEN 'hex' THEN lower(text COLLATE "C")
        WHEN 'crockford32' THEN translate(upper(text COLLATE "C"), 'OIL', '011') ELSE text END;
    digits text := flake.digits(form);
    size integer := CASE form WHEN 'decimal' THEN 1 ELSE (l.bits + flake.digit_bits(form) - 1) / flake.digit_bits(form) END;
    value integer;
    number numeric := 0;
    fault text;
    id bigint;
BEGIN
    FOR n IN 1 .. length(read) LOOP
        value := strpos(digits, substr(read, n, 1)) - 1;
        IF value < 0 THEN
            fault := format('character %s, "%s", is not a digit of this text form', n, substr(text, n, 1));
        ELSE
            number := number * length(digits) + value;
            IF number >= 18446744073709551616 THEN
                fault := format('the number exceeds 64 bits at character %s', n);
            END IF;
        END IF;
        EXIT WHEN fault IS NOT NULL;
    END LOOP;
    IF fault IS NULL AND (read = '' OR form <> 'decimal' AND length(read) <> size) THEN
        fault := format('expected %s character%s, got %s', size, CASE WHEN size = 1 THEN '' ELSE 's' END, length(read));
    ELSIF fault IS NULL AND form = 'decimal' AND read ~ '^0.' THEN
        fault := 'character 1 is a leading zero';
    END IF;
    IF fault IS NOT NULL THEN
        RAISE 'invalid input syntax for an ID of layout "%": "%"', l.name, left(text, 64) USING ERRCODE = '22P02',
            DETAIL = upper(left(fault, 1)) || substr(fault, 2) || '.', HINT = 'The view flake_layouts shows the text form of every layout.';
    END IF;
    id := CASE WHEN number >= 9223372036854775808 THEN number - 18446744073709551616 ELSE number END;
    id := flake.displayed(id, l);
    PERFORM flake.tick(id, l);
    RETURN id;
END $$;

-- IDs of an instant and of a span of time --------------------------------------------------------------------------------

CREATE FUNCTION flake.ordered_tick(at timestamptz, l flake.layout, strictly boolean) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    tick numeric := floor(flake.tick_at(at, l));
BEGIN
    RETURN CASE WHEN tick BETWEEN 0 AND l.ordered THEN tick WHEN strictly THEN flake.out_of_range(at, l, l.ordered) END;
END $$;

CREATE FUNCTION flake_min(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.ordered(layout);
BEGIN
    RETURN flake.smallest(flake.ordered_tick(at, l, true), l);
END $$;

CREATE FUNCTION flake_max(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.ordered(layout);
BEGIN
    RETURN flake.largest(flake.ordered_tick(at, l, true), l);
END $$;

-- The smallest and the largest ID whose ticks overlap a span; none is between the largest and the smallest bigint.
CREATE FUNCTION flake.span(span tstzrange, layout text, OUT first bigint, OUT last bigint)
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.ordered(layout);
    epoch timestamptz := flake.instant(l.epoch);
    turns_negative boolean := l.ordered < l.last;
    low timestamptz := nullif(lower(span), '-infinity');
    high timestamptz := nullif(upper(span), 'infinity');
    from_tick bigint := 0;
    to_tick bigint := l.ordered;
BEGIN
    IF isempty(span) OR low = 'infinity' OR high = '-infinity' THEN
        to_tick := NULL;
    ELSE
        IF low >= epoch THEN
            from_tick := flake.ordered_tick(low, l, turns_negative);
        END IF;
        IF high < epoch OR high = epoch AND NOT upper_inc(span) THEN
            to_tick := NULL;
        ELSIF high IS NOT NULL AND from_tick IS NOT NULL THEN
            -- Nothing is before the first instant of timestamptz, which is before all epochs.
            high := CASE WHEN upper_inc(span) THEN high ELSE high - interval '1 microsecond' END;
            to_tick := COALESCE(flake.ordered_tick(high, l, turns_negative), l.ordered);
        END IF;
    END IF;
    IF from_tick <= to_tick THEN
        first := flake.smallest(from_tick, l);
        last := flake.largest(to_tick, l);
    ELSE
        first := 9223372036854775807;
        last := -9223372036854775808;
    END IF;
END $$;

CREATE FUNCTION flake.first(span tstzrange, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql RETURN (flake.span(span, layout)).first;
CREATE FUNCTION flake.last(span tstzrange, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql RETURN (flake.span(span, layout)).last;

-- Not STRICT and without settings, so that the planner puts the condition in its place, which can use an index.
CREATE FUNCTION flake_during(id bigint, span tstzrange, layout text DEFAULT 'twitter') RETURNS boolean
    IMMUTABLE PARALLEL SAFE LANGUAGE sql RETURN id >= flake.first(span, layout) AND id <= flake.last(span, layout);

-- Making IDs -------------------------------------------------------------------------------------------------------------
--
-- A sequence for each layout holds the tick and the number of the last ID: nextval() gives each call another value, and lets none
-- wait for another's transaction. Where the clock is behind, the next value follows the last one. Where the clock is ahead, a session
-- raises the sequence. That takes a lock, because setval() could otherwise take back what others have got meanwhile: see flake.raised.

-- How many bits of a sequence's value are below the tick. At most half of their values are numbers of IDs.
CREATE FUNCTION flake.room(l flake.layout) RETURNS integer IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN 63 - least(l.ticks[2], 42);

CREATE TYPE flake.division AS (
    first_worker bigint, -- of the first turn
    workers bigint, -- how many workers a turn has
    sequences bigint, -- how many sequence numbers it has
    by_sequence integer -- how many turns differ by the sequence; the others differ by the worker
);

-- What one of several nodes has of a layout, divided as the extension divides it: into eight parts, four of which this edition
-- uses. NULL if a node has too few IDs.
CREATE FUNCTION flake.divided(l flake.layout, node_id bigint, node_count bigint) RETURNS flake.division
    IMMUTABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    of_node bigint := flake.numbers(l.worker) / node_count;
    parts CONSTANT integer := 8;
    d flake.division;
BEGIN
    d.by_sequence := CASE WHEN of_node >= parts THEN 1 ELSE least(flake.numbers(l.sequence), parts) END;
    d.first_worker := node_id * of_node;
    d.workers := of_node / (parts / d.by_sequence);
    d.sequences := flake.numbers(l.sequence) / d.by_sequence;
    RETURN CASE WHEN d.workers > 0 AND d.sequences > 0 THEN d END;
END $$;

DO $$
DECLARE
    layout text;
BEGIN
    FOR layout IN SELECT name FROM flake.layouts() WHERE generates LOOP
        EXECUTE format('CREATE SEQUENCE flake.%I MINVALUE 0 START 0', layout);
    END LOOP;
END $$;

-- Locked while a sequence is raised. It is no advisory lock, since every role may take these; the mode does not conflict with
-- pg_dump, and writes no WAL. Not logged, the table is in no publication.
CREATE UNLOGGED TABLE flake.gate ();

CREATE FUNCTION flake.clock() RETURNS bigint VOLATILE LANGUAGE sql
    RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;

-- How far IDs may lead the clock, in microseconds: an hour.
CREATE FUNCTION flake.max_lead() RETURNS bigint IMMUTABLE PARALLEL SAFE LANGUAGE sql RETURN 3600000000;

-- Raises a sequence to a tick, or does nothing if another session has done so. Returns a value for the caller.
--
-- Each session whose value is not in time, or not a number of an ID, waits for the lock with that one value. The others get values of the
-- tick that the sequence is in, and these end a million values before the next tick. So setval() takes nothing back, unless a quarter of a
-- million calls are canceled while they wait for the lock. If fewer values are missing, they are taken one by one.
--
-- The lock ends with the call: a subtransaction takes it and is aborted, while the sequence keeps its value. So a transaction that stays
-- open, idle or prepared does not keep others from making IDs. Nor does a client that reads nothing: while the lock is held, no message
-- is sent.
--
-- Numbers continue from tick to tick while there are few IDs, so that the lowest bits differ from insert to insert.
--
-- Its callers set the search_path, and let no message be sent.
CREATE FUNCTION flake.raised(sequence regclass, tick bigint, room integer, count bigint) RETURNS bigint
    VOLATILE LANGUAGE plpgsql AS $$
DECLARE
    value bigint;
BEGIN
    BEGIN
        LOCK TABLE flake.gate IN SHARE UPDATE EXCLUSIVE MODE;
        value := COALESCE(pg_sequence_last_value(sequence), 0);
        LOOP
            -- Also if somebody sets the sequence back meanwhile.
            value := CASE WHEN (tick << room) - value > 262144
                THEN setval(sequence, (tick << room) + CASE WHEN value & ((1::bigint << room) - 1) < count / 2
                    THEN value & ((1::bigint << room) - 1) ELSE 0 END)
                ELSE nextval(sequence) END;
            EXIT WHEN value >> room >= tick;
        END LOOP;
        RAISE SQLSTATE 'FLK01';
    EXCEPTION WHEN SQLSTATE 'FLK01' THEN
        RETURN value;
    END;
END $$;

-- Raises the error for a layout by which no IDs can be made here or now.
CREATE FUNCTION flake.refuse(layout text, clock bigint DEFAULT flake.clock()) RETURNS bigint
    STRICT SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
BEGIN
    IF NOT l.generates THEN
        RAISE 'cannot make IDs of layout "%"', layout USING ERRCODE = '22023', DETAIL = 'flake only reads IDs of this layout.',
            HINT = 'List the layouts that flake makes IDs of: SELECT name FROM flake_layouts WHERE generates.';
    ELSIF clock < l.epoch THEN
        RAISE 'the clock is before the epoch of layout "%"', layout USING ERRCODE = '55000',
            DETAIL = format('The clock says %s, and the epoch is %s.', flake.instant(clock), flake.instant(l.epoch)),
            HINT = 'Check the server''s clock; a server that has just started may not have synchronized it yet.';
    ELSIF clock >= l.epoch + (l.last + 1) * l.tick THEN
        RAISE 'reached the last tick of layout "%"', layout USING ERRCODE = '2200H',
            DETAIL = format('Its last tick ended at %s.', flake.instant(l.epoch + (l.last + 1) * l.tick)),
            HINT = 'Check the server''s clock, or use a layout with a later epoch or more timestamp bits.';
    END IF;
    RAISE 'layout "%" has too few IDs for this number of nodes', layout USING ERRCODE = '22023',
        DETAIL = 'Each node needs a worker, and a part of its IDs for each turn.', HINT = 'Use a layout with more worker bits.';
END $$;

-- Returns a later value of the sequence if this one is behind the clock, or is not the number of an ID because its tick is used up.
CREATE FUNCTION flake.in_time(value bigint, layout text, count bigint, sequence regclass, epoch bigint, length bigint, last bigint,
    room integer) RETURNS bigint
    VOLATILE SET search_path = pg_catalog, pg_temp SET client_min_messages = error LANGUAGE plpgsql AS $$
DECLARE
    clock bigint := flake.clock();
    -- The tick that the clock was in after the value was taken. It stays, so that a clock that steps back lets no session run in circles.
    since CONSTANT bigint := (clock - epoch) / length;
    lead bigint;
BEGIN
    LOOP
        IF value >> room < since AND since <= last THEN
            value := flake.raised(sequence, since, room, count);
            IF value & ((1::bigint << room) - 1) < count THEN
                RETURN value;
            END IF;
        END IF;
        lead := epoch + (value >> room) * length - clock;
        IF clock < epoch OR since > last THEN
            PERFORM flake.refuse(layout, clock);
        ELSIF lead > flake.max_lead() THEN
            RAISE 'clock is too far behind the last ID of layout "%"', layout USING ERRCODE = '55000',
                DETAIL = format('The next ID would lead the clock by %s s, and IDs lead it by up to %s s.', round(lead / 1000000.0, 3),
                    flake.max_lead() / 1000000),
                HINT = format('Check the server''s clock. IDs are made again once it has reached %s.',
                    flake.instant(clock + lead - flake.max_lead()));
        ELSIF value & ((1::bigint << room) - 1) < count THEN
            RETURN value;
        END IF;
        -- The tick is used up, and the session waits for the next one. If that is not the clock's next tick, it waits for as long as a tick
        -- lasts, so that IDs do not get further ahead of the clock.
        PERFORM pg_sleep(least(lead + length, length) / 1000000.0);
        value := flake.raised(sequence, (value >> room) + 1, room, count);
        clock := flake.clock();
    END LOOP;
END $$;

-- The statements that make an ID of a layout. Numbers that never change are written into them between @, since to look them up would
-- take longer than all else. The value comes first: a clock that is read before could be behind a value that another session has raised
-- meanwhile. Each expression counts, because a transaction prepares it anew.
CREATE FUNCTION flake.statements() RETURNS text IMMUTABLE LANGUAGE sql RETURN $body$
    value := pg_catalog.nextval('@name@');
    IF pg_catalog.to_timestamp(((value >> @room@) * @length@ + @end@) / 1000000::pg_catalog.float8) <= pg_catalog.clock_timestamp()
        OR pg_catalog.to_timestamp(((value >> @room@) * @length@ + @lead@) / 1000000::pg_catalog.float8) > pg_catalog.clock_timestamp()
        OR value & @mask@ >= @count@
    THEN
        value := flake.in_time(value, '@layout@', @count@, '@name@', @epoch@, @length@, @last@, @room@);
    END IF;
    RETURN @id@;
$body$;

-- An expression for the ID of a value. The numbers of workers and sequences follow each other in most layouts, and only the first
-- worker has to be added; the planner computes it once for a session.
CREATE FUNCTION flake.expression(l flake.layout, d flake.division) RETURNS text
    IMMUTABLE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    runs integer := cardinality(l.worker) / 2;
    is_straight boolean := l.fixed = 0 AND l.random = 0 AND l.turned IS NULL AND d.by_sequence = 1 AND l.sequence[1][1] = 0
        AND (1::bigint << l.ticks[1]) = flake.numbers(l.worker) * flake.numbers(l.sequence)
        AND l.worker[1][1] + l.worker[1][2] = l.ticks[1] AND l.worker[runs][1] = l.sequence[1][2];
    worker_is_above boolean := l.worker[runs][1] > l.sequence[1][1];
    tick text := format('(value >> %s)', flake.room(l));
    number text := format('(value & %s)', (1::bigint << flake.room(l)) - 1);
    worker text := format('(%s + (flake.turn() / %s * %s) + (%s %s))', d.first_worker, d.by_sequence, d.workers, number,
        CASE WHEN worker_is_above THEN '/ ' || d.sequences ELSE '% ' || d.workers END);
    sequence text := format('((flake.turn() %% %s * %s) + (%s %s))', d.by_sequence, d.sequences, number,
        CASE WHEN worker_is_above THEN '% ' || d.sequences ELSE '/ ' || d.workers END);
    low_bits integer := CASE WHEN runs > 1 THEN l.worker[2][2] ELSE 0 END;
    id text;
BEGIN
    IF is_straight THEN
        id := CASE flake.room(l) WHEN l.ticks[1] THEN 'value' ELSE format('(%s << %s | %s)', tick, l.ticks[1], number) END;
        RETURN format('%s + (flake.turn() * %s + %s)', id, d.workers << l.sequence[1][2], d.first_worker << l.sequence[1][2]);
    END IF;
    id := format(CASE WHEN l.turned IS NULL THEN '(%s << %s)' ELSE '(flake.reversed(%s, %3$s) << %2$s)' END, tick, l.ticks[1], l.ticks[2])
        || format(' | %s | (%s << %s)', l.fixed, sequence, l.sequence[1][1]);
    IF runs > 0 THEN
        id := id || format(' | ((%s >> %s) << %s)', worker, low_bits, l.worker[1][1]);
    END IF;
    IF runs > 1 THEN
        id := id || format(' | ((%s & %s) << %s)', worker, (1 << low_bits) - 1, l.worker[2][1]);
    END IF;
    IF l.random <> 0 THEN
        id := id || format(' | ((''x'' || pg_catalog.right(pg_catalog.gen_random_uuid()::pg_catalog.text, 12))::bit(48)::bigint & %s)', l.random);
    END IF;
    RETURN id;
END $$;

-- The same statements with the numbers of a layout on a node. The function that runs them does not set its search_path, which would
-- take longer than all else. So they name the schema of each function and operator, and group operators by parentheses.
CREATE FUNCTION flake.statements(l flake.layout, d flake.division) RETURNS text
    IMMUTABLE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    statements text := flake.statements();
    replaced record;
    operator text;
BEGIN
    IF d.workers IS NULL THEN
        RETURN format('RETURN flake.refuse(%L);', l.name);
    END IF;
    FOR replaced IN SELECT * FROM jsonb_each_text(jsonb_build_object('name', format('flake.%I', l.name), 'layout', l.name,
        'epoch', l.epoch, 'last', l.last, 'end', l.epoch + l.tick, 'lead', l.epoch - flake.max_lead(), 'length', l.tick, 'room', flake.room(l),
        'mask', (1::bigint << flake.room(l)) - 1, 'count', d.workers * d.sequences, 'id', flake.expression(l, d)))
    LOOP
        statements := replace(statements, '@' || replaced.key || '@', replaced.value);
    END LOOP;
    FOREACH operator IN ARRAY ARRAY['+', '*', '/', '%', '&', '|', '||', '<<', '>>', '<=', '>=', '>'] LOOP
        statements := replace(statements, format(' %s ', operator), format(' OPERATOR(pg_catalog.%s) ', operator));
    END LOOP;
    RETURN statements;
END $$;

-- The node and the turn --------------------------------------------------------------------------------------------------

-- The server's own number, if this role may read it.
CREATE FUNCTION flake.server() RETURNS text STABLE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT system_identifier FROM pg_control_system());
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END $$;

CREATE FUNCTION flake.database() RETURNS oid STABLE LANGUAGE sql
    RETURN (SELECT oid FROM pg_database WHERE datname = current_database());

-- The turn is which of four parts of a node's IDs a server makes, so that an old primary that still runs and the new one make different
-- IDs. Each promotion begins a timeline of the WAL, but its number does not suffice: PostgreSQL skips numbers that restores elsewhere have
-- taken, if the archive has their histories. So this sequence remembers the timelines that made IDs: the last one and its turn in the
-- lower 31 bits, and the one before it in the upper ones. What a server has replayed of IDs, it has replayed of the sequence as well.
CREATE SEQUENCE flake.turns MINVALUE 0 START 0;

-- What is remembered from the first ID of a timeline on. A new timeline has neither of the two turns that are remembered. The others
-- alternate from number to number: so two timelines that follow each other differ even if neither has replayed an ID of the other.
CREATE FUNCTION flake.followed(recorded bigint, timeline bigint) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    last bigint := recorded & 2147483647;
    before bigint := recorded >> 31;
    since bigint := timeline - (last >> 2) - 1; -- negative after an upgrade
    free bigint[];
BEGIN
    IF last >> 2 = timeline THEN
        RETURN recorded;
    END IF;
    FOR number IN (last >> 2) + 1 .. (last >> 2) + 4 LOOP
        IF (last = 0 OR number & 3 <> last & 3) AND (before = 0 OR number & 3 <> before & 3) THEN
            free := free || (number & 3);
        END IF;
    END LOOP;
    RETURN (last << 31) | (timeline << 2) | free[1 + (since % cardinality(free) + cardinality(free)) % cardinality(free)];
END $$;

-- The turn of a timeline, which is remembered. Two sessions of a server remember the same.
CREATE FUNCTION flake.turn(timeline bigint) RETURNS bigint
    VOLATILE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    recorded bigint := COALESCE(pg_sequence_last_value('flake.turns'), 0);
    followed bigint := flake.followed(recorded, timeline & 536870911);
BEGIN
    IF followed <> recorded THEN
        PERFORM setval('flake.turns', followed);
    END IF;
    RETURN followed & 3;
END $$;

-- The keys of public IDs. flake_set_node locks this table, in a mode that keeps nobody from using keys.
CREATE TABLE flake.key (
    name text COLLATE "C" PRIMARY KEY,
    secret bytea NOT NULL,
    layout text NOT NULL
);

-- The function that flake_set_node writes, and where it is. A wrapper of it would take a quarter of the time of an INSERT, because most
-- statements are planned for one row.
CREATE FUNCTION flake_next(layout text) RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE sql RETURN NULL::bigint;
CREATE FUNCTION flake.maker() RETURNS regprocedure IMMUTABLE LANGUAGE sql RETURN 'flake_next(text)'::regprocedure;

-- Writes the functions that depend on the node and the server anew. They are no rows of a table, so that a replica of all tables
-- does not get them. The one that makes IDs is SECURITY DEFINER, so that roles need no rights on the sequences, with which they could
-- take IDs back.
CREATE FUNCTION flake_set_node(node_id integer, node_count integer) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout;
    statements text;
    first text;
    others text := '';
    timeline text := 'none';
    turn text := '0';
    volatility text := 'IMMUTABLE';
BEGIN
    IF node_id < 0 OR node_id >= node_count THEN
        RAISE 'node % is out of range for % nodes', node_id, node_count USING ERRCODE = '22023',
            DETAIL = format('The valid range is 0 to %s.', node_count - 1), HINT = 'Each database has a number of its own.';
    END IF;
    -- Of two sessions, the second one would fail while it writes the functions.
    LOCK TABLE flake.key IN SHARE UPDATE EXCLUSIVE MODE;
    -- Some services withhold these functions, each by an error of its own. The name of a WAL file begins with the timeline.
    BEGIN
        PERFORM pg_walfile_name(pg_current_wal_insert_lsn());
        timeline := 'wal';
        turn := 'flake.turn((''x'' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::bigint)';
    EXCEPTION WHEN OTHERS THEN
        BEGIN
            PERFORM timeline_id FROM pg_control_checkpoint();
            timeline := 'checkpoint';
            turn := 'flake.turn((SELECT timeline_id FROM pg_control_checkpoint()))';
            volatility := 'VOLATILE';
        EXCEPTION WHEN OTHERS THEN
            NULL;
        END;
    END;
    -- A timeline lasts as long as the server runs, so a session plans its calls with the turn as a constant. During recovery, this
    -- function raises an error. The timeline of the last checkpoint changes meanwhile.
    EXECUTE format('CREATE OR REPLACE FUNCTION flake.turn() RETURNS bigint %s
        SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS %L', volatility, format('BEGIN RETURN %s; END', turn));
    PERFORM flake.turn();
    FOR l IN SELECT * FROM flake.layouts() WHERE generates LOOP
        statements := flake.statements(l, flake.divided(l, node_id, node_count));
        -- Another call would take longer than the rest, so the layout that is the default everywhere needs none.
        IF l.name = 'twitter' THEN
            first := statements;
        ELSE
            EXECUTE format('CREATE OR REPLACE FUNCTION flake.next_%s() RETURNS bigint VOLATILE PARALLEL UNSAFE LANGUAGE plpgsql AS %L',
                l.name, format('DECLARE value bigint; BEGIN %s END', statements));
            others := others || format(' ELSIF layout OPERATOR(pg_catalog.=) %L THEN RETURN flake.next_%s();', l.name, l.name);
        END IF;
    END LOOP;
    EXECUTE format('CREATE OR REPLACE FUNCTION %s(layout text) RETURNS bigint VOLATILE PARALLEL UNSAFE SECURITY DEFINER
        LANGUAGE plpgsql AS %L', (SELECT format('%I.%I', n.nspname, p.proname) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
            WHERE p.oid = flake.maker()), format($f$DECLARE value bigint;
BEGIN
    IF layout OPERATOR(pg_catalog.=) 'twitter' THEN
    %s%s
    END IF;
    RETURN flake.refuse(layout);
END$f$, first, others));
    EXECUTE format('CREATE OR REPLACE FUNCTION flake.installation(OUT node_id integer, OUT node_count integer, OUT timeline text,
        OUT server text, OUT database oid) STABLE LANGUAGE sql AS %L',
        format('SELECT %s, %s, %L, %L, %L::pg_catalog.oid', node_id, node_count, timeline, flake.server(), flake.database()));
END $$;

DO $$
BEGIN
    PERFORM flake_set_node(COALESCE(nullif(current_setting('flake.node_id', true), ''), '0')::integer,
                           COALESCE(nullif(current_setting('flake.node_count', true), ''), '1')::integer);
END $$;

CREATE FUNCTION flake.counted(layout text, count integer) RETURNS integer
    STABLE STRICT SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
BEGIN
    PERFORM flake.named(layout);
    IF count < 0 THEN
        RAISE 'count must not be negative' USING ERRCODE = '22023',
            DETAIL = format('The count is %s; the valid range is 0 to 2147483647.', count), HINT = 'Pass the number of IDs to make.';
    END IF;
    RETURN count;
END $$;

-- Clients use these IDs without a row that has them. After a crash, a sequence could make them again if its WAL were not on disk: so the
-- transaction gets an ID, and its commit waits for the disk.
CREATE FUNCTION flake_batch(layout text, count integer) RETURNS SETOF bigint VOLATILE STRICT PARALLEL UNSAFE LANGUAGE sql
    BEGIN ATOMIC
        SELECT pg_catalog.pg_current_xact_id(), CASE pg_catalog.current_setting('synchronous_commit')
            WHEN 'off' THEN pg_catalog.set_config('synchronous_commit', 'on', true) END;
        SELECT flake_next(layout) FROM generate_series(1, flake.counted(layout, count));
    END;

CREATE FUNCTION flake_start_above(id bigint, layout text, force boolean DEFAULT false) RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp SET client_min_messages = error LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
    tick bigint := flake.tick(id, l) + 1;
    start bigint := l.epoch + tick * l.tick;
BEGIN
    IF NOT l.generates THEN
        PERFORM flake.refuse(layout);
    ELSIF start - flake.clock() > flake.max_lead() AND NOT force THEN
        RAISE 'ID is too far ahead of the clock' USING ERRCODE = '55000',
            DETAIL = format('Until %s, this layout could make no IDs.', flake.instant(start - flake.max_lead())),
            HINT = 'Check the ID, its layout, and the clock. If this is what you want, pass force => true.';
    ELSIF tick > 9223372036854775807 >> flake.room(l) THEN
        RAISE 'no ID of layout "%" can be above this one', layout USING ERRCODE = '22003',
            DETAIL = format('The last tick of its sequence is %s, and the ID is of tick %s.', 9223372036854775807 >> flake.room(l), tick - 1),
            HINT = 'Check the ID and its layout.';
    END IF;
    start := l.epoch + (flake.raised(format('flake.%I', layout), tick, flake.room(l), 0) >> flake.room(l)) * l.tick;
    RETURN flake.instant(start);
END $$;

-- Views ------------------------------------------------------------------------------------------------------------------

CREATE VIEW flake_layouts AS
    SELECT l.name, flake.instant(l.epoch) AS epoch, l.tick * interval '1 microsecond' AS tick, l.bits, l.definition AS fields,
           flake.numbers(l.worker) * flake.numbers(l.sequence)::numeric AS ids_per_tick,
           flake.instant(l.epoch + l.last * l.tick) AS ends_at, flake.instant(l.epoch + l.ordered * l.tick) AS sortable_until,
           l.increasing, l.text_form, l.generates, l.source,
           CASE WHEN l.generates AND flake.clock() BETWEEN l.epoch AND l.epoch + (l.last + 1) * l.tick - 1
                THEN div(d.workers * d.sequences * 1000000::numeric, l.tick) END AS ids_per_second
    FROM flake.layouts() l, flake.installation() i, LATERAL flake.divided(l, i.node_id, i.node_count) d;

-- The last tick of which IDs were made.
CREATE FUNCTION flake.reached(layout text) RETURNS bigint
    VOLATILE STRICT SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
BEGIN
    RETURN COALESCE(pg_sequence_last_value(format('flake.%I', layout)::regclass), 0) >> flake.room(flake.named(layout));
END $$;

-- The columns whose default makes IDs, and whether their type holds no ID.
CREATE FUNCTION flake.uses(OUT place text, OUT layout text, OUT type text, OUT is_narrow boolean) RETURNS SETOF record
    STABLE SET search_path = pg_catalog, pg_temp LANGUAGE sql
    BEGIN ATOMIC
        SELECT format('%s.%I', a.attrelid::regclass, a.attname), made.layout, format_type(a.atttypid, a.atttypmod),
               CASE t.typtype WHEN 'd' THEN t.typbasetype ELSE t.oid END IN ('int2'::regtype, 'int4'::regtype, 'float4'::regtype, 'float8'::regtype)
        FROM pg_attrdef d JOIN pg_attribute a ON (a.attrelid, a.attnum) = (d.adrelid, d.adnum) JOIN pg_type t ON t.oid = a.atttypid
            JOIN pg_class c ON c.oid = a.attrelid,
            LATERAL (SELECT substring(pg_get_expr(d.adbin, d.adrelid) FROM $x$flake_next"?\('(\w+)'$x$) AS layout) made
        WHERE made.layout IS NOT NULL AND c.relpersistence <> 't';
    END;

-- The greatest ID of each column whose default makes IDs, if a B-tree shows it, and the table and all its partitions are the caller's own:
-- a query of another's table runs functions of its owner, in policies and in expressions of indexes. The owner of a schema can put
-- another table in a table's place, so their schemas are the caller's own, too, or a superuser's. Of a partition whose parent is
-- another's, constraint_exclusion would evaluate the parent's partition key.
CREATE FUNCTION flake.greatest_ids(OUT place text, OUT layout text, OUT id bigint) RETURNS SETOF record
    VOLATILE SET search_path = pg_catalog, pg_temp SET constraint_exclusion = off LANGUAGE plpgsql AS $$
DECLARE
    key record;
    schemas oid[] := ARRAY(
        SELECT n.oid FROM pg_namespace n JOIN pg_database d ON d.datname = current_database()
        JOIN pg_roles r ON r.oid = CASE pg_get_userbyid(n.nspowner) WHEN 'pg_database_owner' THEN d.datdba ELSE n.nspowner END
        WHERE r.rolsuper OR r.rolname = current_user);
BEGIN
    FOR key IN
        SELECT a.attrelid::regclass AS relation, a.attname AS name, made.layout,
               EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
                       WHERE i.indrelid = a.attrelid AND i.indkey[0] = a.attnum AND i.indpred IS NULL AND i.indisvalid
                           AND m.amname = 'btree')
                   AND pg_get_userbyid(t.relowner) = current_user AND t.relnamespace = ANY (schemas) AND NOT row_security_active(t.oid)
                   AND NOT EXISTS (WITH RECURSIVE child (oid) AS (
                           SELECT inhrelid FROM pg_inherits WHERE inhparent = t.oid
                           UNION SELECT inhrelid FROM pg_inherits JOIN child ON inhparent = child.oid)
                       SELECT FROM child JOIN pg_class c USING (oid) WHERE c.relowner <> t.relowner OR c.relnamespace <> ALL (schemas)) AS is_shown
        FROM pg_attrdef d JOIN pg_attribute a ON (a.attrelid, a.attnum) = (d.adrelid, d.adnum) JOIN pg_class t ON t.oid = a.attrelid,
             LATERAL (SELECT substring(pg_get_expr(d.adbin, d.adrelid) FROM $x$flake_next"?\('(\w+)'$x$) AS layout) made
        WHERE a.atttypid = 'bigint'::regtype AND t.relkind IN ('r', 'p') AND t.relpersistence <> 't'
            AND EXISTS (SELECT FROM flake.layouts() l WHERE l.name = made.layout AND l.generates)
        ORDER BY a.attrelid::regclass::text, a.attnum
    LOOP
        place := format('%s.%I', key.relation, key.name);
        layout := key.layout;
        id := NULL;
        IF key.is_shown AND has_column_privilege(key.relation, key.name, 'SELECT') THEN
            EXECUTE format('SELECT max(%I) FROM %s', key.name, key.relation) INTO id;
        END IF;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE FUNCTION flake_check(OUT name text, OUT ok boolean, OUT detail text, OUT hint text) RETURNS SETOF record
    VOLATILE STRICT PARALLEL UNSAFE ROWS 6 SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    own record;
    greatest record;
    others text;
    tick bigint;
BEGIN
    SELECT * INTO own FROM flake.installation();
    RETURN QUERY SELECT 'node number', true, format('This database is node %s of %s.', own.node_id, own.node_count), NULL;

    IF own.database <> flake.database() OR own.server IS DISTINCT FROM flake.server() THEN
        RETURN QUERY SELECT 'installation', false, 'This is a copy, or an upgraded server: it is not where flake_set_node was called last.',
            'Call flake_set_node, with another number if the original still makes IDs, and otherwise with the same one; then flake_start_above.';
    ELSIF own.server IS NULL THEN
        RETURN QUERY SELECT 'installation', NULL::boolean, 'This is the database of the installation; this role cannot read which server this is.', NULL;
    ELSE
        RETURN QUERY SELECT 'installation', true, 'This is the server and the database of the installation.', NULL;
    END IF;

    RETURN QUERY SELECT 'turn', own.timeline = 'wal', CASE own.timeline
        WHEN 'wal' THEN 'IDs contain a number that changes with the timeline of the WAL, so a new primary and the old one make different IDs.'
        WHEN 'checkpoint' THEN 'This server shows only the timeline of the last checkpoint: after a promotion, the old one until the first checkpoint.'
        ELSE 'This server does not show its timeline, so an old primary that still runs can make the IDs of its successor.' END,
        CASE own.timeline
            WHEN 'checkpoint' THEN 'After a promotion, run CHECKPOINT before sessions make IDs.'
            WHEN 'none' THEN 'Stop the old primary before you promote another server.' END;

    SELECT string_agg(DISTINCT format('%s on %s', COALESCE(r.rolname, 'PUBLIC'), o.object), ', ') INTO others
        FROM (SELECT c.oid::regclass::text AS object, c.relacl AS acl, c.relowner AS owner,
                  -- lastval() asks for this privilege.
                  CASE WHEN c.relname = 'last_value' THEN 'USAGE' ELSE '' END AS allowed FROM pg_class c
              WHERE c.relnamespace = 'flake'::regnamespace
              UNION ALL SELECT 'schema flake', n.nspacl, n.nspowner, 'USAGE' FROM pg_namespace n WHERE n.nspname = 'flake') o,
             LATERAL aclexplode(o.acl) a LEFT JOIN pg_roles r ON r.oid = a.grantee
        WHERE a.grantee <> o.owner AND a.privilege_type <> o.allowed;
    RETURN QUERY SELECT 'rights', others IS NULL, COALESCE('Roles other than the owner have privileges: ' || others || '.', 'Only the owner has privileges on the sequences.'),
        CASE WHEN others IS NOT NULL THEN 'REVOKE them: such a role can set a sequence back, stop all sessions by a lock on flake.gate, or let the owner call its functions.' END;

    RETURN QUERY SELECT 'layouts', bool_and(NOT u.is_narrow) IS NOT false, CASE WHEN bool_or(u.is_narrow)
            THEN format('Columns are too narrow for their default flake_next: %s.',
                string_agg(format('%s (%s)', u.place, u.type), ', ' ORDER BY u.place) FILTER (WHERE u.is_narrow))
            ELSE COALESCE('Column defaults make IDs of ' || string_agg(DISTINCT u.layout, ', ') || '.', 'No column default makes IDs.') END,
        CASE WHEN bool_or(u.is_narrow) THEN 'Let these columns and those that refer to them be of type bigint, because each INSERT fails.' END
        FROM flake.uses() u;

    FOR greatest IN
        SELECT g.*, l AS of, flake.reached(g.layout) AS reached, (flake.clock() - l.epoch) / l.tick AS now,
               l.ordered IS NOT NULL AS is_ordered
        FROM flake.greatest_ids() g, LATERAL flake.named(g.layout) l
    LOOP
        BEGIN
            tick := flake.tick(greatest.id, greatest.of);
        EXCEPTION WHEN numeric_value_out_of_range THEN
            RETURN QUERY SELECT 'greatest ID of ' || greatest.place, false, SQLERRM || '.', 'Check that the ID was made with this layout.';
            CONTINUE;
        END;
        ok := CASE WHEN greatest.is_ordered THEN tick <= greatest.reached END;
        RETURN QUERY SELECT 'greatest ID of ' || greatest.place, ok, CASE
            WHEN NOT greatest.is_ordered THEN format('IDs of layout "%s" are not ordered by time.', greatest.layout)
            WHEN ok THEN 'New IDs are made after it.'
            WHEN NOT ok AND tick > greatest.now THEN format('The ID %s belongs to a time that is still to come: new IDs are below it.', greatest.id)
            WHEN NOT ok THEN format('The sequence is before the ID %s: it was made elsewhere, or somebody has set the sequence back.', greatest.id)
            ELSE 'The table is empty, has another owner than this role, or no index shows the greatest ID.' END,
            CASE WHEN NOT ok THEN format('SELECT flake_start_above(%s, %L);', greatest.id, greatest.layout) END;
    END LOOP;
END $$;

-- Public IDs, where pgcrypto is ------------------------------------------------------------------------------------------

CREATE FUNCTION flake.unknown_key(name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    RAISE 'key "%" does not exist', name USING ERRCODE = '42704', DETAIL = 'Keys are rows of the table flake.key.',
        HINT = 'Create one with flake_create_key.';
END $$;

CREATE FUNCTION flake.secret() RETURNS bytea VOLATILE LANGUAGE sql
    RETURN substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 16);

CREATE FUNCTION flake_import_key(name text, layout text, secret bytea, force boolean DEFAULT false) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    place text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'pgcrypto');
    l flake.layout := flake.named(layout);
BEGIN
    IF length(secret) <> 16 THEN
        RAISE 'secret of a key must have 16 bytes, not %', length(secret) USING ERRCODE = '22023',
            DETAIL = 'It is an AES-128 key.', HINT = 'flake_create_key makes one from random numbers.';
    END IF;
    IF name !~ '^[a-z]([a-z_]{0,61}[a-z])?$' THEN
        RAISE 'invalid name for a key: "%"', left(name, 63) USING ERRCODE = '22023',
            DETAIL = 'A name has up to 63 of the letters a to z, and underscores between them.',
            HINT = 'Choose a short name, such as "usr": public IDs begin with it.';
    END IF;
    IF place IS NULL THEN
        RAISE 'extension "pgcrypto" does not exist' USING ERRCODE = '55000', DETAIL = 'Public IDs are enciphered by its AES.',
            HINT = 'CREATE EXTENSION pgcrypto;';
    END IF;
    -- Its schema differs from database to database.
    EXECUTE format('CREATE OR REPLACE FUNCTION flake.encipher(block bytea, secret bytea) RETURNS bytea IMMUTABLE LANGUAGE sql
        RETURN %s.encrypt(block, secret, ''aes-ecb/pad:none''::text)', place);
    EXECUTE format('CREATE OR REPLACE FUNCTION flake.decipher(block bytea, secret bytea) RETURNS bytea IMMUTABLE LANGUAGE sql
        RETURN %s.decrypt(block, secret, ''aes-ecb/pad:none''::text)', place);
    -- Until the names were looked up, the owner may have put other functions there. Only a superuser makes functions in C.
    IF (SELECT count(*) <> 2 FROM pg_depend d JOIN pg_proc p ON p.oid = d.refobjid JOIN pg_language g ON g.oid = p.prolang
        WHERE d.classid = 'pg_proc'::regclass AND d.refclassid = 'pg_proc'::regclass AND g.lanname = 'c'
            AND d.objid IN ('flake.encipher(bytea, bytea)'::regprocedure, 'flake.decipher(bytea, bytea)'::regprocedure))
    THEN
        RAISE 'extension "pgcrypto" is being replaced' USING ERRCODE = '55000', HINT = 'Try again.';
    END IF;
    IF EXISTS (SELECT FROM flake.key k WHERE k.secret = $3 AND k.name <> $1) THEN
        RAISE 'secret belongs to key "%" already', (SELECT k.name FROM flake.key k WHERE k.secret = $3 LIMIT 1) USING ERRCODE = '42710',
            DETAIL = 'With another name, its public IDs would have two spellings.',
            HINT = 'Use that key, or create one with a secret of its own with flake_create_key.';
    END IF;
    INSERT INTO flake.key AS k VALUES ($1, $3, l.name) ON CONFLICT ON CONSTRAINT key_pkey
        DO UPDATE SET secret = excluded.secret, layout = excluded.layout WHERE $4;
    IF NOT FOUND THEN
        RAISE 'key "%" already exists', name USING ERRCODE = '42710', DETAIL = 'Keys are rows of the table flake.key.',
            HINT = 'Choose another name. To replace the secret of a key, call flake_import_key with force.';
    END IF;
END $$;

-- The secret is no argument of a statement that a log could show.
CREATE FUNCTION flake_create_key(name text, layout text) RETURNS void VOLATILE STRICT PARALLEL UNSAFE LANGUAGE sql
    BEGIN ATOMIC SELECT flake_import_key(name, layout, flake.secret()); END;

CREATE FUNCTION flake_drop_key(name text) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM flake.key k WHERE k.name = $1;
    IF NOT FOUND THEN
        PERFORM flake.unknown_key($1);
    END IF;
END $$;

CREATE FUNCTION flake.secret(key text) RETURNS bytea STABLE STRICT LANGUAGE plpgsql AS $$
DECLARE
    secret bytea := (SELECT k.secret FROM flake.key k WHERE k.name = key);
BEGIN
    -- After a restore without privileges, the REVOKEs at the end of this file are missing.
    IF EXISTS (SELECT FROM pg_proc p
               WHERE p.proname IN ('flake_seal', 'flake_seal_uuid', 'flake_unseal') AND p.pronargs = 2 AND p.prosecdef
                   AND pg_get_userbyid(p.proowner) = current_user AND has_function_privilege('public', p.oid, 'EXECUTE'))
    THEN
        RAISE 'all roles may seal and open public IDs' USING ERRCODE = '55000',
            DETAIL = 'PUBLIC may execute these functions, as after a restore without privileges.',
            HINT = 'REVOKE EXECUTE ON FUNCTION flake_seal(bigint, text), flake_seal_uuid(bigint, text), flake_unseal(uuid, text), flake_unseal(text, text) FROM PUBLIC; GRANT EXECUTE again to the roles that seal and open.';
    END IF;
    IF secret IS NULL THEN
        PERFORM flake.unknown_key(key);
    END IF;
    RETURN secret;
END $$;

-- Whether a block is a uuid of version 8.
CREATE FUNCTION flake.is_marked(block bytea) RETURNS boolean IMMUTABLE LANGUAGE sql
    RETURN get_byte(block, 6) >> 4 = 8 AND get_byte(block, 8) >> 6 = 2;

CREATE FUNCTION flake.sealed(id bigint, key text) RETURNS bytea STABLE STRICT LANGUAGE plpgsql AS $$
DECLARE
    secret bytea := flake.secret(key);
    block bytea := int8send((id >> 16 << 16) | 32768 | ((id >> 4) & 4095)) || int8send((1::bigint << 63) | ((id & 15) << 58));
BEGIN
    -- Cycle walking, after 64 times on average.
    LOOP
        block := flake.encipher(block, secret);
        EXIT WHEN flake.is_marked(block);
    END LOOP;
    RETURN block;
END $$;

CREATE FUNCTION flake.opened(sealed bytea, key text) RETURNS bigint STABLE LANGUAGE plpgsql AS $$
DECLARE
    secret bytea := flake.secret(key);
    block bytea := sealed;
    upper bigint;
    lower bigint;
BEGIN
    -- Without this, each block before the end of a walk would open as well.
    IF flake.is_marked(sealed) IS NOT TRUE THEN
        RETURN NULL;
    END IF;
    LOOP
        block := flake.decipher(block, secret);
        EXIT WHEN flake.is_marked(block);
    END LOOP;
    upper := ('x' || encode(substr(block, 1, 8), 'hex'))::bit(64)::bigint;
    lower := ('x' || encode(substr(block, 9, 8), 'hex'))::bit(64)::bigint;
    RETURN CASE WHEN lower & ((1::bigint << 58) - 1) = 0
        THEN (upper & ~65535::bigint) | ((upper & 4095) << 4) | ((lower >> 58) & 15) END;
END $$;

CREATE FUNCTION flake_seal_uuid(id bigint, key text) RETURNS uuid
    STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
BEGIN
    RETURN encode(flake.sealed(id, key), 'hex')::uuid;
END $$;

CREATE FUNCTION flake_seal(id bigint, key text) RETURNS text
    STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    bits text := '00' || ('x' || encode(flake.sealed(id, key), 'hex'))::bit(128)::text;
    written text := key || '_';
BEGIN
    FOR n IN 0 .. 25 LOOP
        written := written || substr('0123456789abcdefghjkmnpqrstvwxyz', substr(bits, 5 * n + 1, 5)::bit(5)::integer + 1, 1);
    END LOOP;
    RETURN written;
END $$;

CREATE FUNCTION flake_unseal(sealed uuid, key text) RETURNS bigint
    STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
BEGIN
    RETURN flake.opened(uuid_send(sealed), key);
END $$;

CREATE FUNCTION flake_unseal(sealed text, key text) RETURNS bigint
    STABLE STRICT PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    bits text := '';
    block bytea;
BEGIN
    IF starts_with(sealed, key || '_') THEN
        IF substr(sealed, length(key) + 2) ~ '^[0-7][0-9a-hjkmnp-tv-z]{25}$' THEN
            FOR n IN length(key) + 2 .. length(sealed) LOOP
                bits := bits || (strpos('0123456789abcdefghjkmnpqrstvwxyz', substr(sealed, n, 1)) - 1)::bit(5)::text;
            END LOOP;
            block := int8send(substr(bits, 3, 64)::bit(64)::bigint) || int8send(substr(bits, 67)::bit(64)::bigint);
        END IF;
    ELSIF sealed ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' THEN
        block := uuid_send(sealed::uuid);
    END IF;
    RETURN flake.opened(block, key);
END $$;

-- Rights -----------------------------------------------------------------------------------------------------------------

-- Default privileges may have taken rights on functions and types, and given rights on the schema, on tables, sequences and keys.
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA flake TO PUBLIC;
GRANT USAGE ON TYPE flake_parts, flake.layout, flake.division TO PUBLIC;
GRANT SELECT ON flake_layouts TO PUBLIC;

-- Roles seal and open by these functions, which read all secrets, if the owner grants EXECUTE.
REVOKE EXECUTE ON FUNCTION flake_seal(bigint, text), flake_seal_uuid(bigint, text), flake_unseal(uuid, text), flake_unseal(text, text)
    FROM PUBLIC;

DO $$
DECLARE
    given record;
BEGIN
    FOR given IN
        SELECT c.oid::regclass::text AS object, CASE WHEN c.relkind = 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind, a.grantee
        FROM pg_class c, LATERAL aclexplode(c.relacl) a
        WHERE c.relnamespace = 'flake'::regnamespace AND c.relkind IN ('r', 'S') AND a.grantee <> c.relowner
        UNION SELECT p.oid::regprocedure::text, 'FUNCTION', a.grantee FROM pg_proc p, LATERAL aclexplode(p.proacl) a
        WHERE p.pronamespace = 'flake'::regnamespace AND p.proname ~ '^flake_(un)?seal' AND a.grantee <> p.proowner
        -- A function of another role that fits the types of a call better would run as the owner.
        UNION SELECT n.nspname, 'SCHEMA', a.grantee FROM pg_namespace n, LATERAL aclexplode(n.nspacl) a
        WHERE n.nspname = 'flake' AND a.grantee <> n.nspowner
    LOOP
        EXECUTE format('REVOKE ALL ON %s %s FROM %s', given.kind, given.object,
            CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE given.grantee::regrole::text END);
    END LOOP;
END $$;
GRANT USAGE ON SCHEMA flake TO PUBLIC;

-- What is for callers goes to where they look for it.
DO $$
DECLARE
    moved record;
BEGIN
    FOR moved IN
        SELECT 'FUNCTION' AS kind, oid::regprocedure::text AS object FROM pg_proc
        WHERE pronamespace = 'flake'::regnamespace AND starts_with(proname, 'flake_')
        UNION SELECT CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TYPE' END, relname::text FROM pg_class
        WHERE relnamespace = 'flake'::regnamespace AND starts_with(relname, 'flake_')
    LOOP
        EXECUTE format('ALTER %s %s SET SCHEMA %I', moved.kind, moved.object, current_setting('flake_edition.schema'));
    END LOOP;
END $$;

COMMIT;
