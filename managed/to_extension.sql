-- From managed/flake.sql to the extension, where it can be installed by now:
--
--   CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension;
--   psql -v ON_ERROR_STOP=1 -f to_extension.sql
--
-- Every function keeps its OID and calls the extension from now on. So defaults, generated columns, indexes, partition keys, CHECKs
-- and views stay as they are. It is for a superuser, waits until transactions that have made IDs end, and keeps others from making
-- IDs meanwhile.

BEGIN;

DO $$
DECLARE
    place text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'flake');
    own text := (SELECT pronamespace::regnamespace FROM pg_proc WHERE proname = 'flake_set_node');
    l record;
    f record;
    result text;
BEGIN
    IF place IS NULL OR own IS NULL THEN
        RAISE 'the extension, or this edition, is not in this database' USING ERRCODE = '55000',
            HINT = 'CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension;';
    END IF;

    -- Sessions that still have the old functions in their plans may make no more IDs: they fail, and succeed when they try again.
    -- ALTER SEQUENCE waits for all transactions that have used a sequence.
    FOR l IN SELECT name, tick FROM flake.layouts() WHERE generates LOOP
        EXECUTE format('ALTER SEQUENCE flake.%I NO CYCLE', l.name);
        EXECUTE format('SELECT %1$s.flake_start_above(%1$s.flake_make(epoch + flake.reached(name) * tick, ''{}'', name), name, true)
            FROM %2$s.flake_layouts WHERE name = %3$L AND flake.reached(name) > 0', place, own, l.name);
    END LOOP;

    FOR f IN SELECT name, secret, layout FROM flake.key LOOP
        EXECUTE format('SELECT %s.flake_import_key($1, $2, $3)', place) USING f.name, f.secret, f.layout;
    END LOOP;

    FOR f IN
        SELECT o.oid::regprocedure AS called, o.proname AS name, pg_get_function_arguments(o.oid) AS arguments,
               pg_get_function_result(o.oid) AS result, o.prosecdef AS is_definer, e.provolatile AS volatility, e.proparallel AS parallel,
               format('%s.%I(%s)', place, o.proname, (SELECT string_agg('$' || n, ', ') FROM generate_series(1, o.pronargs) n)) AS call
        FROM pg_proc o JOIN pg_proc e USING (proname, proargtypes)
        WHERE o.pronamespace = own::regnamespace AND e.pronamespace = place::regnamespace AND e.oid <> o.oid
    LOOP
        result := CASE
            WHEN f.name = 'flake_decode'
            THEN format('RETURN (SELECT (layout, created_at, worker, sequence, fields)::%s.flake_parts FROM %s)', own, f.call)
            WHEN f.result LIKE 'SETOF record' OR f.result LIKE 'TABLE%' THEN format('BEGIN ATOMIC SELECT * FROM %s; END', f.call)
            WHEN f.result LIKE 'SETOF %' THEN format('BEGIN ATOMIC SELECT %s; END', f.call)
            ELSE format('RETURN %s', f.call) END;
        EXECUTE format('CREATE OR REPLACE FUNCTION %s.%I(%s) RETURNS %s %s PARALLEL %s %s LANGUAGE sql %s', own, f.name, f.arguments, f.result,
            CASE f.volatility WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END,
            CASE f.parallel WHEN 's' THEN 'SAFE' WHEN 'r' THEN 'RESTRICTED' ELSE 'UNSAFE' END,
            CASE WHEN f.is_definer THEN 'SECURITY DEFINER SET search_path = pg_catalog, pg_temp' ELSE '' END, result);
    END LOOP;
    EXECUTE format('CREATE OR REPLACE VIEW %s.flake_layouts AS SELECT * FROM %s.flake_layouts', own, place);

    EXECUTE format('DROP FUNCTION %s.flake_set_node(integer, integer)', own);
    SET LOCAL client_min_messages = warning;
    DROP SCHEMA flake CASCADE;
END $$;

COMMIT;
