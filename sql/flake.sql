-- The objects of the extension. Every function names the Rust function behind it.
\echo Use "CREATE EXTENSION flake" to load this file. \quit

-- Making IDs -------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_next(layout text) RETURNS bigint
    VOLATILE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_next';
COMMENT ON FUNCTION flake_next(text) IS
    'a new unique ID in this layout; IDs of one session increase where the layout''s sequence is "reset"';

CREATE FUNCTION flake_next(layout text, tag integer) RETURNS bigint
    VOLATILE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_next_tagged';
COMMENT ON FUNCTION flake_next(text, integer) IS
    'a new unique ID with the caller''s number in the layout''s tag field; the tag takes no part in uniqueness';

CREATE FUNCTION flake_batch_support(internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_batch_support';
COMMENT ON FUNCTION flake_batch_support(internal) IS 'tells the planner how many rows flake_batch returns';

CREATE FUNCTION flake_batch(layout text, count integer) RETURNS SETOF bigint
    VOLATILE STRICT PARALLEL SAFE SUPPORT flake_batch_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_batch';
COMMENT ON FUNCTION flake_batch(text, integer) IS
    'so many new unique IDs in this layout; they increase where the layout''s sequence is "reset"';

-- Reading IDs ------------------------------------------------------------------------------------------------------------

CREATE TYPE flake_parts AS (
    layout     text,
    created_at timestamptz,
    worker     bigint,
    sequence   bigint,
    fields     jsonb
);
COMMENT ON TYPE flake_parts IS 'the parts of an ID';
COMMENT ON COLUMN flake_parts.layout IS 'the layout that the ID was read in';
COMMENT ON COLUMN flake_parts.created_at IS 'start of the tick in which the ID was made';
COMMENT ON COLUMN flake_parts.worker IS 'the whole worker number, from 0; of several fields the coarsest comes first';
COMMENT ON COLUMN flake_parts.sequence IS 'the sequence number, from 0';
COMMENT ON COLUMN flake_parts.fields IS 'every named field with its number; the timestamp counts ticks since the epoch';

CREATE FUNCTION flake_decode(id bigint, layout text DEFAULT 'twitter') RETURNS flake_parts
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_decode';
COMMENT ON FUNCTION flake_decode(bigint, text) IS 'the parts of an ID';

CREATE FUNCTION flake_timestamp(id bigint, layout text DEFAULT 'twitter') RETURNS timestamptz
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_timestamp';
COMMENT ON FUNCTION flake_timestamp(bigint, text) IS 'start of the tick in which the ID was made';

CREATE FUNCTION flake_explain(id bigint, layout text DEFAULT 'twitter') RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_explain_wrapper';
COMMENT ON FUNCTION flake_explain(bigint, text) IS 'the bits of an ID, drawn with each field''s name, width and number';

CREATE FUNCTION flake_make(at timestamptz, fields jsonb, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_make_wrapper';
COMMENT ON FUNCTION flake_make(timestamptz, jsonb, text) IS
    'the ID of an instant with these numbers in its fields, those not named being 0: the inverse of flake_decode';

-- Text -------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_encode(id bigint, layout text DEFAULT 'twitter') RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_encode_wrapper';
COMMENT ON FUNCTION flake_encode(bigint, text) IS 'the ID in the layout''s text form';

CREATE FUNCTION flake_parse(text text, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_parse_wrapper';
COMMENT ON FUNCTION flake_parse(text, text) IS 'the ID that a text in the layout''s text form stands for';

-- IDs of an instant ------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_min(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_min';
COMMENT ON FUNCTION flake_min(timestamptz, text) IS 'the smallest ID of the tick that holds the instant';

CREATE FUNCTION flake_max(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_max';
COMMENT ON FUNCTION flake_max(timestamptz, text) IS 'the largest ID of the tick that holds the instant';

-- IDs of a span of time --------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_first(span tstzrange, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_first_wrapper';
COMMENT ON FUNCTION flake_first(tstzrange, text) IS
    'the smallest ID whose tick overlaps the span; the largest bigint when there is none';

CREATE FUNCTION flake_last(span tstzrange, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_last_wrapper';
COMMENT ON FUNCTION flake_last(tstzrange, text) IS
    'the largest ID whose tick overlaps the span; the smallest bigint when there is none';

-- Not STRICT, which would keep the planner from inlining it; NULL gives NULL all the same.
CREATE FUNCTION flake_during(id bigint, span tstzrange, layout text DEFAULT 'twitter') RETURNS boolean
    IMMUTABLE PARALLEL SAFE
    RETURN id >= flake_first(span, layout) AND id <= flake_last(span, layout);
COMMENT ON FUNCTION flake_during(bigint, tstzrange, text) IS
    'whether the ID''s tick overlaps the span; the planner makes it a range of IDs, which an index or partitions can use';

-- Custom layouts ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_layout_validator(options text[], catalog oid) RETURNS void
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_layout_validator_wrapper';
COMMENT ON FUNCTION flake_layout_validator(text[], oid) IS 'checks the definitions of custom layouts';

-- Custom layouts are foreign servers of this wrapper: pg_dump writes those before the tables whose generated columns need them.
CREATE FOREIGN DATA WRAPPER flake_layout VALIDATOR flake_layout_validator;
COMMENT ON FOREIGN DATA WRAPPER flake_layout IS 'the custom layouts of flake, each a foreign server; see flake_create_layout';
GRANT USAGE ON FOREIGN DATA WRAPPER flake_layout TO @extowner@;

CREATE FUNCTION flake_create_layout(name text, definition jsonb) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_create_layout_wrapper';
COMMENT ON FUNCTION flake_create_layout(text, jsonb) IS 'makes a layout of one''s own, which cannot be changed afterwards';
REVOKE EXECUTE ON FUNCTION flake_create_layout(text, jsonb) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION flake_create_layout(text, jsonb) TO @extowner@;

CREATE FUNCTION flake_drop_layout(name text) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_drop_layout_wrapper';
COMMENT ON FUNCTION flake_drop_layout(text) IS 'drops a layout of one''s own; IDs made in it stay, and cannot be read any more';
REVOKE EXECUTE ON FUNCTION flake_drop_layout(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION flake_drop_layout(text) TO @extowner@;

-- Views ------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_layouts(
    OUT name text, OUT epoch timestamptz, OUT tick interval, OUT bits integer, OUT fields jsonb, OUT sequence text,
    OUT ids_per_tick bigint, OUT ends_at timestamptz, OUT sortable_until timestamptz, OUT text_form text,
    OUT generates boolean, OUT source text
) RETURNS SETOF record
    STABLE STRICT PARALLEL SAFE ROWS 24
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_layouts_wrapper';
COMMENT ON FUNCTION flake_layouts() IS 'the rows of the view flake_layouts';

CREATE VIEW flake_layouts AS
    SELECT name, epoch, tick, bits, fields, sequence, ids_per_tick, ends_at, sortable_until, text_form, generates, source
    FROM flake_layouts();
COMMENT ON VIEW flake_layouts IS 'the layouts that IDs can be made and read in';
COMMENT ON COLUMN flake_layouts.name IS 'the layout''s name, as functions take it';
COMMENT ON COLUMN flake_layouts.epoch IS 'start of tick 0';
COMMENT ON COLUMN flake_layouts.tick IS 'unit of the timestamp';
COMMENT ON COLUMN flake_layouts.bits IS 'bits that the fields take, of 64; those above are zero';
COMMENT ON COLUMN flake_layouts.fields IS
    'fields from the most significant bit down, as in a definition';
COMMENT ON COLUMN flake_layouts.sequence IS 'what the sequence does at a new tick: "reset" restarts, "rolling" goes on';
COMMENT ON COLUMN flake_layouts.ids_per_tick IS 'how many IDs all workers together can make in a tick';
COMMENT ON COLUMN flake_layouts.ends_at IS 'start of the last tick';
COMMENT ON COLUMN flake_layouts.sortable_until IS
    'start of the last tick up to which the order of bigint is the order of time; NULL where it never is';
COMMENT ON COLUMN flake_layouts.text_form IS 'how flake_encode writes IDs';
COMMENT ON COLUMN flake_layouts.generates IS 'whether flake_next makes IDs; some formats can only be read';
COMMENT ON COLUMN flake_layouts.source IS 'where the layout comes from';
GRANT SELECT ON flake_layouts TO PUBLIC;

CREATE FUNCTION flake_generators(
    OUT layout text, OUT workers int8range, OUT sequences int8range, OUT ids_per_tick bigint, OUT last_tick timestamptz,
    OUT issued bigint, OUT overflow_waits bigint, OUT clock_steps bigint, OUT waited interval
) RETURNS SETOF record
    VOLATILE STRICT PARALLEL RESTRICTED ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_generators_wrapper';
COMMENT ON FUNCTION flake_generators() IS 'the rows of the view flake_generators';

CREATE VIEW flake_generators AS
    SELECT layout, workers, sequences, ids_per_tick, last_tick, issued, overflow_waits, clock_steps, waited
    FROM flake_generators();
COMMENT ON VIEW flake_generators IS 'this session''s generators, one for each layout that it has made IDs in';
COMMENT ON COLUMN flake_generators.layout IS 'layout of the IDs';
COMMENT ON COLUMN flake_generators.workers IS 'worker numbers of this session';
COMMENT ON COLUMN flake_generators.sequences IS 'sequence numbers that it has of each of these workers';
COMMENT ON COLUMN flake_generators.ids_per_tick IS 'how many IDs this session can make in a tick';
COMMENT ON COLUMN flake_generators.last_tick IS 'start of the tick of the last ID';
COMMENT ON COLUMN flake_generators.issued IS 'IDs made since the session began';
COMMENT ON COLUMN flake_generators.overflow_waits IS 'how often a tick''s IDs were used up, so that the next was waited for';
COMMENT ON COLUMN flake_generators.clock_steps IS 'how often the clock was found behind the last ID';
COMMENT ON COLUMN flake_generators.waited IS 'time spent waiting for either';
GRANT SELECT ON flake_generators TO PUBLIC;

-- The whole server -------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_stats(
    OUT ledger text, OUT node_id bigint, OUT node_count bigint, OUT sessions integer, OUT issued bigint,
    OUT overflow_waits bigint, OUT clock_waits bigint, OUT clock_steps bigint, OUT longest_wait interval,
    OUT mark timestamptz, OUT floor timestamptz, OUT skipped tstzrange[]
) RETURNS SETOF record
    VOLATILE STRICT PARALLEL RESTRICTED ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_stats_wrapper';
COMMENT ON FUNCTION flake_stats() IS 'the row of the view flake_stats';
REVOKE EXECUTE ON FUNCTION flake_stats() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION flake_stats() TO pg_monitor;

CREATE VIEW flake_stats AS
    SELECT ledger, node_id, node_count, sessions, issued, overflow_waits, clock_waits, clock_steps, longest_wait, mark, floor,
           skipped
    FROM flake_stats();
COMMENT ON VIEW flake_stats IS 'the IDs of all sessions and databases of this server since it was started';
COMMENT ON COLUMN flake_stats.ledger IS
    '"open"; "unused" before the first ID; "none" where this session found no shared memory for it';
COMMENT ON COLUMN flake_stats.node_id IS 'the flake.node_id in force';
COMMENT ON COLUMN flake_stats.node_count IS 'the flake.node_count in force';
COMMENT ON COLUMN flake_stats.sessions IS 'sessions that have made IDs and go on';
COMMENT ON COLUMN flake_stats.issued IS 'IDs made; sessions that go on add theirs about every two seconds in which they make any';
COMMENT ON COLUMN flake_stats.overflow_waits IS 'how often a session had used up a tick''s IDs and waited for the next';
COMMENT ON COLUMN flake_stats.clock_waits IS 'how often a session found the clock behind its last ID';
COMMENT ON COLUMN flake_stats.clock_steps IS 'how often the clock was found to have been set';
COMMENT ON COLUMN flake_stats.longest_wait IS 'the longest wait for any reason';
COMMENT ON COLUMN flake_stats.mark IS 'no ID carries this time or a later one before the mark is further ahead on disk';
COMMENT ON COLUMN flake_stats.floor IS 'generators start above this time, or where their slot''s last owner stopped';
COMMENT ON COLUMN flake_stats.skipped IS 'stretches of time to come that a wrong clock has used; no IDs are made in them';
REVOKE ALL ON flake_stats FROM PUBLIC;
GRANT SELECT ON flake_stats TO pg_monitor;

CREATE FUNCTION flake_accept_clock() RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_accept_clock_wrapper';
COMMENT ON FUNCTION flake_accept_clock() IS
    'goes on at the present clock though a clock that was ahead has made later IDs; returns when IDs can be made again';
REVOKE EXECUTE ON FUNCTION flake_accept_clock() FROM PUBLIC;
