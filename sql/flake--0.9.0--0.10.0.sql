-- Makes the objects of 0.10.0 of those of 0.9.0. Each change of sql/flake.sql and sql/sno.sql since then has its own here.
\echo Use "ALTER EXTENSION flake UPDATE" to load this file. \quit

SELECT pg_catalog.set_config('flake_script.role'::pg_catalog.text, pg_catalog.current_setting('role'::pg_catalog.text), true);
SELECT pg_catalog.set_config('role'::pg_catalog.text, rolname::pg_catalog.text, true) FROM pg_catalog.pg_roles
WHERE oid OPERATOR(pg_catalog.=) '10'::pg_catalog.oid AND rolname OPERATOR(pg_catalog.<>) current_user
    AND pg_catalog.pg_has_role(session_user, oid, 'MEMBER'::pg_catalog.text);

COMMENT ON FUNCTION flake_horizon() IS
    'returns an instant: no ID below flake_min of it, or sno_min, can appear any more to this snapshot or a later one of this database';

CREATE FUNCTION flake_publish_horizon() RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_publish_horizon';
COMMENT ON FUNCTION flake_publish_horizon() IS
    'has standbys of this server return the present horizon of this database, once they have replayed it; returns it';
GRANT EXECUTE ON FUNCTION flake_publish_horizon() TO PUBLIC;

COMMENT ON FUNCTION flake_batch(text, integer) IS
    'returns "count" new unique IDs of this layout, for INSERT ... SELECT; flake_layouts.increasing says whether they increase';
COMMENT ON FUNCTION flake_decode(bigint, text) IS
    'returns the parts of an ID: its layout, time, worker, sequence number, and every field';
COMMENT ON FUNCTION flake_explain(bigint, text) IS
    'draws the bits of an ID with the name, width and number of each field; for people, as later versions may draw otherwise';
COMMENT ON FUNCTION flake_explain(sno) IS
    'draws the bits of a sno with the name, width and number of each part; for people, as later versions may draw otherwise';
COMMENT ON FUNCTION flake_parse(text, text) IS
    'reads an ID in the layout''s text form; the inverse of flake_encode';
COMMENT ON FUNCTION flake_start_above(bigint, text, boolean) IS
    'has this server make IDs above this one only, such as the greatest of a restored table; returns from when on, once every session does so; for superusers';
COMMENT ON FUNCTION flake_start_above(sno, boolean) IS
    'has this server make IDs above this one only, such as the greatest of a restored table; returns from when on, once every session does so; for superusers';
COMMENT ON COLUMN flake_stats.ledger IS
    '"open" from the first ID or CREATE EXTENSION on, "unused" before that; "none" if this session found no shared memory for it, or that of another version';
COMMENT ON COLUMN flake_stats.sessions IS
    'how many sessions have made IDs or asked for a horizon, and have not exited';
COMMENT ON COLUMN flake_stats.clock_changes IS
    'how often the server''s clock was set; the server''s log has a line for each time';
COMMENT ON COLUMN flake_stats.longest_wait IS
    'the longest wait for either reason; its wait event is FlakeNextTick or FlakeClockBehind, and Extension before PostgreSQL 17';
COMMENT ON COLUMN flake_layouts.sequence IS
    'what the sequence does when a tick begins: "reset" restarts it, "rolling" continues it, within what a session has of a step';

COMMENT ON COLUMN flake_open.since IS
    'the instant that horizons do not exceed before the transaction ends; NULL where pg_stat_activity hides the session''s xact_start';

COMMENT ON COLUMN flake_stats.mark IS
    'no ID reaches this time until it has been moved further ahead on disk, to 3 seconds above the clock';

ALTER FUNCTION flake_check() ROWS 7;

CREATE FUNCTION flake_session_ids_per_second(layout text) RETURNS numeric
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_session_ids_per_second';
COMMENT ON FUNCTION flake_session_ids_per_second(text) IS
    'returns how many IDs of this layout a session of this server can make in a second; NULL if it makes none';
GRANT EXECUTE ON FUNCTION flake_session_ids_per_second(text) TO PUBLIC;

CREATE FUNCTION flake_convert(relation regclass, layout text DEFAULT 'twitter', OUT first_id bigint, OUT undo text) RETURNS record
    VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_convert';
COMMENT ON FUNCTION flake_convert(regclass, text) IS
    'gives the bigint key of a table a default that makes IDs; returns an ID that all new ones reach, and the statement that undoes it';
GRANT EXECUTE ON FUNCTION flake_convert(regclass, text) TO PUBLIC;

CREATE OR REPLACE VIEW flake_layouts AS
    SELECT name, epoch, tick, bits, fields, sequence, ids_per_tick, ends_at, sortable_until, increasing, text_form,
           generates, source, flake_session_ids_per_second(name) AS session_ids_per_second
    FROM flake_layouts();
COMMENT ON COLUMN flake_layouts.session_ids_per_second IS
    'how many IDs a session of this server can make in a second; NULL if it makes none';

CREATE FUNCTION flake_since(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_since';
COMMENT ON FUNCTION flake_since(timestamptz, text) IS
    'returns the smallest ID whose tick begins at the instant or after it, as flake_timestamp(id) >= at is planned; NULL if there is none';

CREATE FUNCTION flake_after(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_after';
COMMENT ON FUNCTION flake_after(timestamptz, text) IS
    'returns the smallest ID whose tick begins after the instant, as flake_timestamp(id) > at is planned; NULL if there is none';

CREATE FUNCTION flake_until(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_until';
COMMENT ON FUNCTION flake_until(timestamptz, text) IS
    'returns the largest ID whose tick begins at the instant or before it, as flake_timestamp(id) <= at is planned; NULL if there is none';

CREATE FUNCTION flake_before(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_before';
COMMENT ON FUNCTION flake_before(timestamptz, text) IS
    'returns the largest ID whose tick begins before the instant, as flake_timestamp(id) < at is planned; NULL if there is none';

CREATE FUNCTION flake_instant(at timestamp) RETURNS timestamptz
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_instant';
COMMENT ON FUNCTION flake_instant(timestamp) IS
    'returns the instant of a time in the session''s time zone, as comparisons do; an infinite one where a cast raises an error';

CREATE FUNCTION flake_instant(at date) RETURNS timestamptz
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_instant_of_date';
COMMENT ON FUNCTION flake_instant(date) IS
    'returns the instant at which a day begins in the session''s time zone; an infinite one where a cast raises an error';

CREATE FUNCTION sno_since(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_since';
COMMENT ON FUNCTION sno_since(timestamptz) IS
    'returns the smallest sno whose unit begins at the instant or after it, as sno_timestamp(id) >= at is planned; NULL if there is none';

CREATE FUNCTION sno_after(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_after';
COMMENT ON FUNCTION sno_after(timestamptz) IS
    'returns the smallest sno whose unit begins after the instant, as sno_timestamp(id) > at is planned; NULL if there is none';

CREATE FUNCTION sno_until(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_until';
COMMENT ON FUNCTION sno_until(timestamptz) IS
    'returns the largest sno whose unit begins at the instant or before it, as sno_timestamp(id) <= at is planned; NULL if there is none';

CREATE FUNCTION sno_before(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_before';
COMMENT ON FUNCTION sno_before(timestamptz) IS
    'returns the largest sno whose unit begins before the instant, as sno_timestamp(id) < at is planned; NULL if there is none';

GRANT EXECUTE ON FUNCTION
    flake_since(timestamptz, text), flake_after(timestamptz, text), flake_until(timestamptz, text), flake_before(timestamptz, text),
    flake_instant(timestamp), flake_instant(date),
    sno_since(timestamptz), sno_after(timestamptz), sno_until(timestamptz), sno_before(timestamptz)
    TO PUBLIC;

-- The library of 0.9.0 has these C symbols too, so sessions that have loaded it before go on.
ALTER FUNCTION flake_timestamp(bigint, text) SUPPORT flake_during_support;
ALTER FUNCTION sno_timestamp(sno) SUPPORT sno_during_support;
COMMENT ON FUNCTION flake_timestamp(bigint, text) IS
    'returns the start of the tick in which the ID was made, to the microsecond; comparisons of it are planned as ranges of IDs';
COMMENT ON FUNCTION sno_timestamp(sno) IS
    'returns the start of the 4 ms unit in which the sno was made; comparisons of it are planned as ranges of snos';
COMMENT ON FUNCTION flake_during_support(internal) IS
    'planner support for flake_during and flake_timestamp: the range of IDs';
COMMENT ON FUNCTION sno_during_support(internal) IS
    'planner support for sno_during and sno_timestamp: the range of snos';

CREATE FUNCTION flake_take(row_type anyelement, positions regclass, consumer text, max_rows integer) RETURNS SETOF anyelement
    VOLATILE PARALLEL UNSAFE ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_take';
COMMENT ON FUNCTION flake_take(anyelement, regclass, text, integer) IS
    'returns the next rows of a table below the horizon, and moves the consumer''s position over them; runs as the caller';
GRANT EXECUTE ON FUNCTION flake_take(anyelement, regclass, text, integer) TO PUBLIC;

SELECT flake_record_mark();

-- A local setting lasts until the end of the transaction, not of the script, so the role that runs it is set again.
SELECT pg_catalog.set_config('role'::pg_catalog.text, name, true)
FROM pg_catalog.current_setting('flake_script.role'::pg_catalog.text) name
WHERE name OPERATOR(pg_catalog.<>) pg_catalog.current_setting('role'::pg_catalog.text);
