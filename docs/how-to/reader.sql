-- Reads IDs on servers that cannot install flake: flake_timestamp, flake_decode, flake_min, flake_max and
-- flake_during, as the extension has them, for the built-in layouts. `psql -f reader.sql` creates them in the first schema of the
-- search_path. Nothing here makes IDs: without flake's memory and marks, nothing would keep the IDs of two sessions apart.

BEGIN;

-- The functions and their type find each other wherever they are called, such as in an index or while a dump is restored.
DO $$ BEGIN PERFORM set_config('search_path', format('%I, pg_temp', current_schema()), true); END $$;

CREATE TYPE flake_reader_layout AS (
    layout text,
    epoch bigint, -- the start of tick 0, in microseconds
    tick bigint, -- the length of a tick, in microseconds
    last bigint, -- the last tick
    ordered bigint, -- the last tick up to which the order of IDs is the order of time; NULL if it never is
    ticks integer[], -- where the ticks lie: a shift and a number of bits
    turned text, -- whether their bits are in reverse (r), or only in IDs whose flag is 0 (f)
    flag integer, -- the bit that is the flag
    fixed_mask bigint, -- the bits that are the same in all IDs
    fixed bigint, -- what they hold
    worker integer[], -- where the parts of the worker lie, the coarsest first
    sequence integer[], -- where the sequence lies
    fields jsonb -- where each of the other fields lies
);

CREATE FUNCTION flake_reader(layout text) RETURNS flake_reader_layout IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    l flake_reader_layout;
BEGIN
    SELECT * INTO l FROM (VALUES
-- generated
    ('twitter', 1288834974657000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, -9223372036854775808, 0, '{{17,5},{12,5}}', '{{0,12}}', '{"datacenter": "{{17,5}}", "worker": "{{12,5}}", "sequence": "{{0,12}}"}'),
    ('snowflake', 1609459200000000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, -9223372036854775808, 0, '{{17,5},{12,5}}', '{{0,12}}', '{"datacenter": "{{17,5}}", "worker": "{{12,5}}", "sequence": "{{0,12}}"}'),
    ('si', 1609459200000000, 1000, 1099511627775, 1099511627775, '{13,40}', NULL, NULL, -9007199254740992, 0, '{{8,5}}', '{{0,8}}', '{"machine": "{{8,5}}", "sequence": "{{0,8}}"}'),
    ('si_single', 1609459200000000, 1000, 1099511627775, 1099511627775, '{13,40}', NULL, NULL, -9007199254740992, 0, '{}', '{{0,13}}', '{"sequence": "{{0,13}}"}'),
    ('uniqueid', 0, 1000, 4398046511103, NULL, '{22,42}', 'r', NULL, 64512, 0, '{{0,4},{4,6}}', '{{16,6}}', '{"sequence": "{{16,6}}", "generator": "{{4,6}}", "cluster": "{{0,4}}"}'),
    ('uniqueid_v3', 0, 1000, 4398046511103, NULL, '{22,42}', 'f', 12, 0, 0, '{{0,4},{13,3},{4,8}}', '{{16,6}}', '{"sequence": "{{16,6}}", "generator": "{{13,3},{4,8}}", "mode": "{{12,1}}", "cluster": "{{0,4}}"}'),
    ('base64id', 1519862400000000, 1000000, 4294967295, 4294967295, '{28,32}', NULL, NULL, -1152921504606846976, 0, '{{19,9}}', '{{9,10}}', '{"worker": "{{19,9}}", "sequence": "{{9,10}}", "random": "{{0,9}}"}'),
    ('discord', 1420070400000000, 1000, 4398046511103, 2199023255551, '{22,42}', NULL, NULL, 0, 0, '{{17,5},{12,5}}', '{{0,12}}', '{"worker": "{{17,5}}", "process": "{{12,5}}", "increment": "{{0,12}}"}'),
    ('instagram', 1314220021721000, 1000, 2199023255551, 1099511627775, '{23,41}', NULL, NULL, 0, 0, '{{10,13}}', '{{0,10}}', '{"shard": "{{10,13}}", "sequence": "{{0,10}}"}'),
    ('mastodon', 0, 1000, 281474976710655, 140737488355327, '{16,48}', NULL, NULL, 0, 0, '{}', '{{0,16}}', '{"tail": "{{0,16}}"}'),
    ('sonyflake', 1409529600000000, 10000, 549755813887, 549755813887, '{24,39}', NULL, NULL, -9223372036854775808, 0, '{{0,16}}', '{{16,8}}', '{"sequence": "{{16,8}}", "machine": "{{0,16}}"}'),
    ('sonyflake_v2', 1735689600000000, 10000, 549755813887, 549755813887, '{24,39}', NULL, NULL, -9223372036854775808, 0, '{{0,16}}', '{{16,8}}', '{"sequence": "{{16,8}}", "machine": "{{0,16}}"}'),
    ('tsid', 1577836800000000, 1000, 4398046511103, 2199023255551, '{22,42}', NULL, NULL, 0, 0, '{{12,10}}', '{{0,12}}', '{"node": "{{12,10}}", "counter": "{{0,12}}"}'),
    ('leaf', 1288834974657000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, -9223372036854775808, 0, '{{12,10}}', '{{0,12}}', '{"worker": "{{12,10}}", "sequence": "{{0,12}}"}'),
    ('baidu', 1463673600000000, 1000000, 268435455, 268435455, '{35,28}', NULL, NULL, -9223372036854775808, 0, '{{13,22}}', '{{0,13}}', '{"worker": "{{13,22}}", "sequence": "{{0,13}}"}'),
    ('seata', 1588435200000000, 1000, 2199023255551, NULL, '{12,41}', NULL, NULL, -9223372036854775808, 0, '{{53,10}}', '{{0,12}}', '{"worker": "{{53,10}}", "sequence": "{{0,12}}"}'),
    ('yitter', 1582136402000000, 1000, 2251799813685247, 2251799813685247, '{12,51}', NULL, NULL, -9223372036854775808, 0, '{{6,6}}', '{{0,6}}', '{"worker": "{{6,6}}", "sequence": "{{0,6}}"}'),
    ('pgedge', 1672531200000000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, -9223372036854775808, 0, '{{12,10}}', '{{0,12}}', '{"node": "{{12,10}}", "count": "{{0,12}}"}'),
    ('pgedge_1_0', 1672531200000000, 1000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, -9223372036854775808, 0, '{{0,10}}', '{{10,12}}', '{"count": "{{10,12}}", "node": "{{0,10}}"}'),
    ('influxdb', 1491696000000000, 1000, 4398046511103, 2199023255551, '{22,42}', NULL, NULL, 0, 0, '{{12,10}}', '{{0,12}}', '{"machine": "{{12,10}}", "sequence": "{{0,12}}"}'),
    ('weibo', 515483463000000, 1000000, 2199023255551, 2199023255551, '{22,41}', NULL, NULL, -9223372036854775808, 0, '{{18,4}}', '{{0,18}}', '{"idc": "{{18,4}}", "sequence": "{{0,18}}"}'),
    ('linkedin', 0, 1000, 4398046511103, 2199023255551, '{22,42}', NULL, NULL, 0, 0, '{}', '{}', '{"opaque": "{{0,22}}"}'),
    ('cockroach', 1420070400000000, 10, 281474976710655, 281474976710655, '{15,48}', NULL, NULL, -9223372036854775808, 0, '{{0,15}}', '{}', '{"node": "{{0,15}}"}'),
    ('simpleflake', 946702800000000, 1000, 2199023255551, 1099511627775, '{23,41}', NULL, NULL, 0, 0, '{}', '{}', '{"random": "{{0,23}}"}')
-- end of generated
    ) row (name) WHERE name = $1;
    IF NOT FOUND THEN
        RAISE 'layout "%" does not exist', layout USING ERRCODE = '22023',
            DETAIL = 'This is no built-in layout of flake.', HINT = 'Only the extension knows custom layouts.';
    END IF;
    RETURN l;
END $$;

-- The number whose parts lie in these runs of bits.
CREATE FUNCTION flake_reader_number(id bigint, runs integer[]) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    number bigint := 0;
BEGIN
    FOR n IN 1 .. cardinality(runs) / 2 LOOP
        number := (number << runs[n][2]) | ((id >> runs[n][1]) & ((1::bigint << runs[n][2]) - 1));
    END LOOP;
    RETURN number;
END $$;

-- The tick of an ID, which has to be possible in the layout.
CREATE FUNCTION flake_reader_tick(id bigint, l flake_reader_layout) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    tick bigint := flake_reader_number(id, ARRAY[l.ticks]);
BEGIN
    IF l.turned = 'r' OR l.turned = 'f' AND (id >> l.flag) & 1 = 0 THEN
        tick := lpad(reverse(right(tick::bit(64)::text, l.ticks[2])), 64, '0')::bit(64)::bigint;
    END IF;
    IF id & l.fixed_mask <> l.fixed OR tick > l.last THEN
        RAISE 'ID % is not possible in layout "%"', id, l.layout USING ERRCODE = '22003',
            DETAIL = 'Bits that are the same in all IDs of this layout differ.', HINT = 'Check that the ID was made with this layout.';
    END IF;
    RETURN tick;
END $$;

-- The start of a tick. Days and the rest are added apart, since an interval times a number is exact for these only.
CREATE FUNCTION flake_reader_start(tick bigint, l flake_reader_layout) RETURNS timestamptz
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql AS $$
    SELECT (timestamp '1970-01-01' + (l.epoch + tick * l.tick) / 86400000000 * interval '1 day'
            + (l.epoch + tick * l.tick) % 86400000000 * interval '1 microsecond') AT TIME ZONE 'UTC'
$$;

-- The tick that holds an instant, where the order of IDs is the order of time; NULL outside of the layout's time if that is asked
-- for.
CREATE FUNCTION flake_reader_tick_at(at timestamptz, l flake_reader_layout, strictly boolean) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    tick numeric;
BEGIN
    IF isfinite(at) THEN
        tick := floor((extract(epoch FROM at AT TIME ZONE 'UTC') * 1000000 - l.epoch) / l.tick);
        IF tick BETWEEN 0 AND l.ordered THEN
            RETURN tick;
        END IF;
    END IF;
    IF strictly THEN
        RAISE 'timestamp out of range for layout "%"', l.layout USING ERRCODE = '22008',
            DETAIL = format('%s is not between %s and %s.', at, flake_reader_start(0, l), flake_reader_start(l.ordered, l)),
            HINT = 'The view flake_layouts shows the epoch and the last tick of every layout.';
    END IF;
    RETURN NULL;
END $$;

CREATE FUNCTION flake_reader_ordered(layout text) RETURNS flake_reader_layout
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    l flake_reader_layout := flake_reader(layout);
BEGIN
    IF l.ordered IS NULL THEN
        RAISE 'IDs of layout "%" are not ordered by time', layout USING ERRCODE = '22023',
            DETAIL = 'The order of its bits is not the order of time, so the IDs of a span of time are not a range.',
            HINT = 'Use flake_timestamp(id, layout) instead, which can be indexed.';
    END IF;
    RETURN l;
END $$;

CREATE FUNCTION flake_timestamp(id bigint, layout text DEFAULT 'twitter') RETURNS timestamptz
    IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
DECLARE
    l flake_reader_layout := flake_reader(layout);
BEGIN
    RETURN flake_reader_start(flake_reader_tick(id, l), l);
END $$;

CREATE TYPE flake_parts AS (layout text, created_at timestamptz, worker bigint, sequence bigint, fields jsonb);

CREATE FUNCTION flake_decode(id bigint, layout text DEFAULT 'twitter') RETURNS flake_parts
    IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
DECLARE
    l flake_reader_layout := flake_reader(layout);
    tick bigint := flake_reader_tick(id, l);
    numbers jsonb := '{}';
    field record;
BEGIN
    FOR field IN SELECT key AS name, value AS runs FROM jsonb_each_text(l.fields) LOOP
        numbers := numbers || jsonb_build_object(field.name, flake_reader_number(id, field.runs::integer[]));
    END LOOP;
    RETURN (l.layout, flake_reader_start(tick, l), flake_reader_number(id, l.worker), flake_reader_number(id, l.sequence),
            numbers || jsonb_build_object('timestamp', tick));
END $$;

CREATE FUNCTION flake_min(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
DECLARE
    l flake_reader_layout := flake_reader_ordered(layout);
BEGIN
    RETURN (flake_reader_tick_at(at, l, true) << l.ticks[1]) | l.fixed;
END $$;

CREATE FUNCTION flake_max(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT LANGUAGE plpgsql AS $$
DECLARE
    l flake_reader_layout := flake_reader_ordered(layout);
BEGIN
    RETURN (flake_reader_tick_at(at, l, true) << l.ticks[1]) | l.fixed | (((1::bigint << l.ticks[1]) - 1) & ~l.fixed_mask);
END $$;

-- The smallest and the largest ID whose ticks overlap a span; none is between the largest and the smallest bigint.
CREATE FUNCTION flake_reader_span(span tstzrange, layout text, OUT first bigint, OUT last bigint)
    IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS $$
DECLARE
    l flake_reader_layout := flake_reader_ordered(layout);
    epoch timestamptz := flake_reader_start(0, l);
    turns_negative boolean := l.ordered < l.last;
    low timestamptz := nullif(lower(span), '-infinity');
    high timestamptz := nullif(upper(span), 'infinity');
    from_tick bigint := 0;
    to_tick bigint := l.ordered;
BEGIN
    IF isempty(span) OR low = 'infinity' OR high = '-infinity' THEN
        to_tick := NULL;
    ELSE
        IF high IS NOT NULL AND NOT upper_inc(span) THEN
            high := high - interval '1 microsecond';
        END IF;
        IF low >= epoch THEN
            from_tick := flake_reader_tick_at(low, l, turns_negative);
        END IF;
        IF high < epoch THEN
            to_tick := NULL;
        ELSIF high IS NOT NULL AND from_tick IS NOT NULL THEN
            to_tick := COALESCE(flake_reader_tick_at(high, l, turns_negative), l.ordered);
        END IF;
    END IF;
    IF from_tick <= to_tick THEN
        first := (from_tick << l.ticks[1]) | l.fixed;
        last := (to_tick << l.ticks[1]) | l.fixed | (((1::bigint << l.ticks[1]) - 1) & ~l.fixed_mask);
    ELSE
        first := 9223372036854775807;
        last := -9223372036854775808;
    END IF;
END $$;

CREATE FUNCTION flake_plan_first(span tstzrange, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT LANGUAGE sql AS 'SELECT first FROM flake_reader_span(span, layout)';
CREATE FUNCTION flake_plan_last(span tstzrange, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT LANGUAGE sql AS 'SELECT last FROM flake_reader_span(span, layout)';

-- Not STRICT and without settings, so that the planner puts the condition in its place, which can use an index.
CREATE FUNCTION flake_during(id bigint, span tstzrange, layout text DEFAULT 'twitter') RETURNS boolean
    IMMUTABLE PARALLEL SAFE LANGUAGE sql RETURN id >= flake_plan_first(span, layout) AND id <= flake_plan_last(span, layout);

COMMIT;
