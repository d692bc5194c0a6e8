-- From managed/flake.sql to the extension, where it can be installed by now:
--
--   CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension;
--   psql -v ON_ERROR_STOP=1 -f to_extension.sql
--
-- Every function keeps its OID and calls the extension from now on. So defaults, generated columns, indexes, partition keys, CHECKs
-- and views stay as they are. It is for a superuser, waits until transactions that have made IDs end, and keeps others from making
-- IDs meanwhile.

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
    place text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'flake');
    owner regrole := (SELECT nspowner FROM pg_namespace WHERE nspname = 'flake');
    -- Any role may have a function of this name.
    own text := (SELECT pronamespace::regnamespace FROM pg_proc
                 WHERE proname = 'flake_set_node' AND proargtypes = '23 23' AND proowner = owner LIMIT 1);
    l record;
    f record;
    result text;
BEGIN
    IF place IS NULL OR own IS NULL THEN
        RAISE 'the extension, or this edition, is not in this database' USING ERRCODE = '55000',
            HINT = 'CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension;';
    END IF;

    -- Sessions that still have the old functions in their plans may make no more IDs: they fail, and succeed when they try again.
    -- ALTER SEQUENCE waits for all transactions that have used a sequence. No function of this edition is called: its owner could have
    -- replaced it, and a superuser would run that.
    FOR l IN EXECUTE format('
        SELECT l.name, l.epoch, l.tick, c.oid AS sequence,
               (SELECT 63 - least((f->>''bits'')::integer, 42) FROM jsonb_array_elements(l.fields) f
                WHERE f->>''role'' = ''timestamp'') AS room
        FROM %s.flake_layouts l JOIN pg_class c ON c.relname = l.name AND c.relkind = ''S'' AND c.relnamespace = ''flake''::regnamespace
        WHERE l.source <> ''custom''', place)
    LOOP
        EXECUTE format('ALTER SEQUENCE flake.%I NO CYCLE', l.name);
        EXECUTE format('SELECT %1$s.flake_start_above(%1$s.flake_make($2 + reached * $3, ''{}'', $1), $1, true)
            FROM (SELECT pg_sequence_last_value($4) >> $5) r(reached) WHERE reached > 0', place)
            USING l.name, l.epoch, l.tick, l.sequence, l.room;
    END LOOP;

    -- Nor is one called in a view, or when a query of a table is planned.
    LOCK TABLE ONLY flake.key;
    IF (SELECT relkind <> 'r' OR relchecks > 0 FROM pg_class WHERE oid = 'flake.key'::regclass)
        OR EXISTS (SELECT FROM pg_index WHERE indrelid = 'flake.key'::regclass AND (indexprs IS NOT NULL OR indpred IS NOT NULL))
        OR EXISTS (SELECT FROM pg_statistic_ext WHERE stxrelid = 'flake.key'::regclass)
    THEN
        RAISE 'flake.key is not the table of managed/flake.sql' USING ERRCODE = '55000',
            DETAIL = 'It is a view, or has a constraint, an index or statistics with an expression.', HINT = 'Drop what was added.';
    END IF;
    FOR f IN SELECT name, secret, layout FROM ONLY flake.key LOOP
        EXECUTE format('SELECT %s.flake_import_key($1, $2, $3)', place) USING f.name, f.secret, f.layout;
        -- The functions that seal run as their owner.
        EXECUTE format('GRANT USAGE ON FOREIGN SERVER %I TO %s', f.name, owner);
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
