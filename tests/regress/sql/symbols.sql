-- The C symbols of all functions. Installations refer to them, so a released one has to stay in the library.
-- CREATE EXTENSION has checked that the library exports each of them.
CREATE TEMPORARY VIEW symbols AS
SELECT p.prosrc AS symbol, p.oid::regprocedure AS function, p.proname AS name
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')
  AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'c');
SELECT symbol, function FROM symbols ORDER BY symbol COLLATE "C";

-- The rule: a symbol is the function's name, to which overloaded functions append what is different.
SELECT symbol, function FROM symbols WHERE symbol <> name AND NOT starts_with(symbol, name || '_');
SELECT symbol FROM symbols GROUP BY symbol HAVING count(*) > 1;

-- PostgreSQL refuses a symbol that the library does not export.
\set VERBOSITY sqlstate
DO $$
BEGIN
    EXECUTE format('CREATE FUNCTION missing() RETURNS integer LANGUAGE c AS %L, %L',
        (SELECT probin FROM pg_proc WHERE proname = 'flake_timestamp'), 'flake_missing');
END $$;
