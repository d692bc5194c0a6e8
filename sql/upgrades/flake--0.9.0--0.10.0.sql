-- Makes the objects of 0.10.0 of those of 0.9.0. Each change of sql/flake.sql and sql/sno.sql since then has its own here.
\echo Use "ALTER EXTENSION flake UPDATE" to load this file. \quit

SELECT pg_catalog.set_config('role'::pg_catalog.text, rolname::pg_catalog.text, true) FROM pg_catalog.pg_roles
WHERE oid OPERATOR(pg_catalog.=) '10'::pg_catalog.oid AND rolname OPERATOR(pg_catalog.<>) current_user;

COMMENT ON FUNCTION flake_horizon() IS
    'returns an instant: no ID below flake_min of it, or sno_min, can appear any more to this snapshot or a later one of this database';

CREATE FUNCTION flake_publish_horizon() RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_publish_horizon';
COMMENT ON FUNCTION flake_publish_horizon() IS
    'has standbys of this server return the present horizon of this database, once they have replayed it; returns it';
GRANT EXECUTE ON FUNCTION flake_publish_horizon() TO PUBLIC;

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

SELECT flake_record_mark();
