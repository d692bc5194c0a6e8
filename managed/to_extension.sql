-- From managed/flake.sql to the extension, where it can be installed by now. A superuser creates the extension:
--
--   SET ROLE NONE; CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension;
--   GRANT USAGE ON SCHEMA flake_extension TO pg_database_owner;
--
-- Then the owner of this edition, who owns the database, connects and runs this file. Nobody else does, as some of what the file calls
-- can be written by the owner. Until then, no other role makes IDs by the extension:
--
--   psql -v ON_ERROR_STOP=1 -f to_extension.sql
--
-- Every function keeps its OID and calls the extension from now on. So defaults, generated columns, indexes, partition keys, CHECKs
-- and views stay as they are. The file waits until transactions that have made IDs end, and keeps others from making IDs meanwhile.
-- At last the superuser lets the server make no ID of the time before, even if its clock is set back. In these commands, the owner
-- may not have made the schema, nor may a setting of the database have set the owner's role:
--
--   SET ROLE NONE; SELECT flake_extension.flake_start_above(flake_extension.flake_min(pg_catalog.now(), 'twitter'), 'twitter');
--   GRANT USAGE ON SCHEMA flake_extension TO PUBLIC;

BEGIN ISOLATION LEVEL READ COMMITTED;
SET LOCAL search_path = pg_catalog, pg_temp;

DO $$
DECLARE
    extension oid := (SELECT oid FROM pg_extension WHERE extname = 'flake');
    place text := (SELECT extnamespace::regnamespace FROM pg_extension WHERE extname = 'flake');
    owner oid := (SELECT nspowner FROM pg_namespace WHERE nspname = 'flake');
    -- Any role may have a function of this name.
    own text := (SELECT pronamespace::regnamespace FROM pg_proc
                 WHERE proname = 'flake_set_node' AND proargtypes = '23 23' AND proowner = owner LIMIT 1);
    latest timestamptz;
    ends timestamptz;
    node text;
    new_node text;
    kind text;
    names text;
    l record;
    f record;
    result text;
BEGIN
    IF place IS NULL OR own IS NULL THEN
        RAISE 'the extension, or this edition, is not in this database' USING ERRCODE = '55000',
            HINT = 'CREATE SCHEMA flake_extension; CREATE EXTENSION flake SCHEMA flake_extension;';
    END IF;
    -- Who has set another role, or another session's role, can be set back by what is called.
    IF owner <> (SELECT usesysid FROM pg_stat_activity WHERE pid = pg_backend_pid()) THEN
        RAISE 'must be connected as owner of the schema flake' USING ERRCODE = '42501',
            DETAIL = format('The owner is role "%s". Another role would run what that role has written.', pg_get_userbyid(owner)),
            HINT = 'Connect as this role.';
    END IF;
    PERFORM flake.require_privileges();

    -- Sessions that still have the old functions in their plans may make no more IDs: they fail, and succeed when they try again.
    -- ALTER SEQUENCE waits for all transactions that have used a sequence.
    FOR l IN EXECUTE format('
        SELECT l.name, l.epoch, l.tick, c.oid AS sequence,
               (SELECT 63 - least((f->>''bits'')::integer, 42) FROM jsonb_array_elements(l.fields) f
                WHERE f->>''role'' = ''timestamp'') AS room
        FROM %s.flake_layouts l JOIN pg_class c ON c.relname = l.name AND c.relkind = ''S'' AND c.relnamespace = ''flake''::regnamespace
        WHERE l.source <> ''custom''', place)
    LOOP
        EXECUTE format('ALTER SEQUENCE flake.%I NO CYCLE', l.name);
        ends := l.epoch + ((pg_sequence_last_value(l.sequence) >> l.room) + 1) * l.tick;
        IF ends > clock_timestamp() + interval '1 second' THEN
            RAISE 'clock is behind the last ID of layout "%"', l.name USING ERRCODE = '55000',
                DETAIL = format('The extension begins in a tick that is still to come, at %s.', ends),
                HINT = 'Run this again when the clock has reached that instant; check its synchronization.';
        END IF;
        latest := greatest(latest, ends);
    END LOOP;
    -- In the same tick, the extension could make an ID again.
    WHILE clock_timestamp() < latest LOOP
        PERFORM pg_sleep(extract(epoch FROM latest - clock_timestamp()));
    END LOOP;

    -- By now the library has read its settings. Another number would make the IDs of another server.
    SELECT format('%s of %s', node_id, node_count), format('%s of %s', current_setting('flake.node_id'), current_setting('flake.node_count'))
        INTO node, new_node FROM flake.installation();
    IF node <> new_node THEN
        RAISE 'this edition is node %, and the server is node %', node, new_node USING ERRCODE = '55000',
            DETAIL = 'The server would make IDs of another node.',
            HINT = 'Set flake.node_id and flake.node_count in the server''s configuration, and restart it.';
    END IF;

    -- A key that somebody is creating moves too.
    LOCK TABLE flake.key;
    FOR f IN SELECT name, secret, layout FROM ONLY flake.key LOOP
        -- With all arguments: a function of fewer could be another role's.
        EXECUTE format('SELECT %s.flake_import_key($1, $2, $3, false)', place) USING f.name, f.secret, f.layout;
    END LOOP;

    FOR f IN
        SELECT o.proname AS name, pg_get_function_arguments(o.oid) AS arguments,
               pg_get_function_result(o.oid) AS result, o.proretset AS is_set, o.prorettype = 'record'::regtype AS is_record,
               o.prosecdef AS is_definer, e.provolatile AS volatility, e.proparallel AS parallel,
               format('%s.%I(%s)', place, o.proname, (SELECT string_agg('$' || n, ', ') FROM generate_series(1, o.pronargs) n)) AS call
        FROM pg_proc o JOIN pg_proc e USING (proname, proargtypes)
        -- Other roles can have functions in both schemas; a default is evaluated when it is written.
        WHERE o.pronamespace = own::regnamespace AND o.proowner = owner AND e.pronamespace = place::regnamespace AND e.oid <> o.oid
            AND EXISTS (SELECT FROM pg_depend d WHERE (d.classid, d.objid) = ('pg_proc'::regclass, e.oid)
                        AND (d.refclassid, d.refobjid, d.deptype) = ('pg_extension'::regclass, extension, 'e'))
    LOOP
        result := CASE
            WHEN f.name = 'flake_decode'
            THEN format('RETURN (SELECT (layout, created_at, worker, sequence, fields)::%s.flake_parts FROM %s)', own, f.call)
            WHEN f.is_set AND f.is_record THEN format('BEGIN ATOMIC SELECT * FROM %s; END', f.call)
            WHEN f.is_set THEN format('BEGIN ATOMIC SELECT %s; END', f.call)
            ELSE format('RETURN %s', f.call) END;
        EXECUTE format('CREATE OR REPLACE FUNCTION %s.%I(%s) RETURNS %s %s PARALLEL %s %s LANGUAGE sql %s', own, f.name, f.arguments, f.result,
            CASE f.volatility WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE 'VOLATILE' END,
            CASE f.parallel WHEN 's' THEN 'SAFE' WHEN 'r' THEN 'RESTRICTED' ELSE 'UNSAFE' END,
            CASE WHEN f.is_definer THEN 'SECURITY DEFINER SET search_path = pg_catalog, pg_temp' ELSE '' END, result);
    END LOOP;
    EXECUTE format('CREATE OR REPLACE VIEW %s.flake_layouts AS SELECT * FROM %s.flake_layouts', own, place);

    EXECUTE format('DROP FUNCTION %s.flake_set_node(integer, integer)', own);
    -- Without CASCADE, which would drop columns and defaults that still use a function of the schema.
    FOR kind, names IN
        SELECT * FROM (SELECT 'FUNCTION', string_agg(oid::regprocedure::text, ', ') FROM pg_proc WHERE pronamespace = 'flake'::regnamespace
            UNION ALL SELECT CASE relkind WHEN 'S' THEN 'SEQUENCE' WHEN 'c' THEN 'TYPE' ELSE 'TABLE' END, string_agg(oid::regclass::text, ', ')
            FROM pg_class WHERE relnamespace = 'flake'::regnamespace AND relkind IN ('S', 'c', 'r') GROUP BY relkind) d(kind, names)
        ORDER BY d.kind
    LOOP
        EXECUTE format('DROP %s %s', kind, names);
    END LOOP;
    DROP SCHEMA flake;
END $$;

COMMIT;
