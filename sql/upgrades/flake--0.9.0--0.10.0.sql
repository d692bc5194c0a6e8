-- Makes the objects of 0.10.0 of those of 0.9.0. Each change of sql/flake.sql and sql/sno.sql since then has its own here.
\echo Use "ALTER EXTENSION flake UPDATE" to load this file. \quit

SELECT pg_catalog.set_config('role'::pg_catalog.text, rolname::pg_catalog.text, true) FROM pg_catalog.pg_roles
WHERE oid OPERATOR(pg_catalog.=) '10'::pg_catalog.oid AND rolname OPERATOR(pg_catalog.<>) current_user;

COMMENT ON FUNCTION flake_horizon() IS
    'returns an instant: no ID below flake_min of it, or sno_min, can appear any more to this snapshot or a later one of this database';

COMMENT ON COLUMN flake_open.since IS
    'the instant that horizons do not exceed before the transaction ends; NULL where pg_stat_activity hides the session''s xact_start';

COMMENT ON COLUMN flake_stats.mark IS
    'no ID reaches this time until it has been moved further ahead on disk, to 3 seconds above the clock';

ALTER FUNCTION flake_check() ROWS 7;

CREATE FUNCTION flake_ids_per_second(layout text) RETURNS numeric
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_ids_per_second';
COMMENT ON FUNCTION flake_ids_per_second(text) IS
    'returns how many IDs of this layout a session of this server can make in a second; NULL if it makes none';
GRANT EXECUTE ON FUNCTION flake_ids_per_second(text) TO PUBLIC;

CREATE OR REPLACE VIEW flake_layouts AS
    SELECT name, epoch, tick, bits, fields, sequence, ids_per_tick, ends_at, sortable_until, increasing, text_form,
           generates, source, flake_ids_per_second(name) AS ids_per_second
    FROM flake_layouts();
COMMENT ON COLUMN flake_layouts.ids_per_second IS
    'how many IDs a session of this server can make in a second; NULL if it makes none';

CREATE FUNCTION flake_take("row" anyelement, positions regclass, consumer text, most integer) RETURNS SETOF anyelement
    VOLATILE PARALLEL UNSAFE ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_take';
COMMENT ON FUNCTION flake_take(anyelement, regclass, text, integer) IS
    'returns the next rows of a table below the horizon, and moves the consumer''s position over them; runs as the caller';
GRANT EXECUTE ON FUNCTION flake_take(anyelement, regclass, text, integer) TO PUBLIC;

SELECT flake_record_mark();
