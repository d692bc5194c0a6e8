-- How every function is labelled: whether an index, a generated column, a parallel plan or a security barrier may use it.
CREATE TEMPORARY VIEW functions AS
SELECT p.oid, p.oid::regprocedure AS function,
       CASE p.provolatile WHEN 'i' THEN 'immutable' WHEN 's' THEN 'stable' WHEN 'v' THEN 'VOLATILE' END AS volatility,
       CASE WHEN p.prokind = 'a' THEN 'aggregate' WHEN p.proisstrict THEN 'strict' ELSE 'CALLED ON NULL' END AS on_null,
       CASE p.proparallel WHEN 's' THEN 'safe' WHEN 'r' THEN 'RESTRICTED' WHEN 'u' THEN 'UNSAFE' END AS parallel,
       CASE WHEN p.proleakproof THEN 'LEAKPROOF' ELSE '' END AS leakproof,
       CASE WHEN p.prosecdef THEN 'DEFINER' ELSE '' END AS security,
       CASE WHEN EXISTS (SELECT FROM aclexplode(p.proacl) WHERE grantee = 0) THEN 'PUBLIC' ELSE '' END AS execute,
       NULLIF(p.prosupport, 0)::regproc AS support, regexp_replace(p.proname, '_in_copy$', '') AS name,
       CASE p.prolang WHEN (SELECT oid FROM pg_language WHERE lanname = 'c') THEN p.prosrc END AS symbol
FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
WHERE d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake');
SELECT function, volatility, on_null, parallel, leakproof, security, execute, support, symbol FROM functions ORDER BY function::text COLLATE "C";

-- The rules behind the table; what breaks one is listed.
-- A call that makes IDs, waits or changes something is left to the session itself: a worker would do it once more.
SELECT function FROM functions WHERE volatility = 'VOLATILE' AND parallel = 'safe';
-- A function that only reads an ID can be used everywhere.
SELECT function FROM functions WHERE volatility = 'immutable' AND parallel <> 'safe';
-- Comparisons and hashes raise no error, so rows below a security barrier may be searched by them; nothing else is promised.
SELECT function FROM functions
WHERE (leakproof = 'LEAKPROOF') <> (oid IN (SELECT oprcode FROM pg_operator) OR function::text ~ '^sno_(cmp|hash|hash_extended)\(');
-- Every function runs with its caller's rights, and the caller's role is checked inside where that is restricted.
SELECT function FROM functions WHERE security = 'DEFINER' OR execute <> 'PUBLIC';

-- The C symbols. Installations refer to them, so a released one has to stay in the library; CREATE EXTENSION has checked that the
-- library exports each. A symbol is the function's name, to which overloaded functions append what is different. A function that COPY
-- calls in place of another one has that one's symbol.
SELECT symbol, function FROM functions WHERE symbol <> name AND NOT starts_with(symbol, name || '_') ORDER BY symbol COLLATE "C";
SELECT symbol FROM functions
WHERE symbol IS NOT NULL GROUP BY symbol HAVING count(*) - count(*) FILTER (WHERE function::text LIKE '%\_in\_copy(%') <> 1;
-- PostgreSQL refuses a symbol that the library does not export.
\set VERBOSITY sqlstate
DO $$
BEGIN
    EXECUTE format('CREATE FUNCTION missing() RETURNS integer LANGUAGE c AS %L, %L',
        (SELECT probin FROM pg_proc WHERE proname = 'flake_timestamp'), 'flake_missing');
END $$;
