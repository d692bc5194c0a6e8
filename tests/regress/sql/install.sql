-- The objects of the extension; labels.sql has its functions.
CREATE TEMP VIEW objects AS
SELECT classid, objid
FROM pg_depend
WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
  AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')
  -- A relation's own row type, and array types, are PostgreSQL's; newer versions count them too.
  AND NOT (classid = 'pg_type'::regclass AND EXISTS (
        SELECT FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
        WHERE t.oid = objid AND (t.typcategory = 'A' OR c.relkind IN ('v', 'r'))));
SELECT pg_describe_object(classid, objid, 0) AS object FROM objects WHERE classid <> 'pg_proc'::regclass
ORDER BY pg_describe_object(classid, objid, 0) COLLATE "C";

-- Every object has a comment, every column of its views and types too.
SELECT pg_describe_object(classid, objid, 0) AS without_comment
FROM objects WHERE COALESCE(obj_description(objid, classid::regclass::name), '') = '';

SELECT c.relname, a.attname AS column_without_comment
FROM pg_depend d
JOIN pg_class c ON d.classid = 'pg_class'::regclass AND c.oid = d.objid
   OR d.classid = 'pg_type'::regclass AND c.reltype = d.objid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e'
  AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')
  AND COALESCE(col_description(c.oid, a.attnum), '') = ''
  AND c.relkind <> 'S';

SELECT obj_description(oid, 'pg_extension') FROM pg_extension WHERE extname = 'flake';

-- Settings, once the library is loaded. A misspelt one is refused.
LOAD 'flake';
SELECT name, setting, unit, context, vartype, min_val, max_val, boot_val, short_desc, extra_desc
FROM pg_settings WHERE name LIKE 'flake.%' ORDER BY name \gx
SET flake.max_lead = '5s';
SET flake.max_leap = '5s';
SET flake.node_id = 1;

-- Anyone may make and read IDs; the extension can live in any schema.
CREATE ROLE regress_flake_user;
GRANT CREATE ON SCHEMA public TO regress_flake_user;
CREATE SCHEMA regress_flake;
GRANT USAGE ON SCHEMA regress_flake TO regress_flake_user;
DROP EXTENSION flake;
CREATE EXTENSION flake SCHEMA regress_flake;
SET ROLE regress_flake_user;
SET search_path = public;
CREATE TABLE elsewhere (id bigint PRIMARY KEY DEFAULT regress_flake.flake_next('twitter'));
INSERT INTO elsewhere DEFAULT VALUES;
SELECT (d).layout, (d).sequence >= 0 AS made FROM (SELECT regress_flake.flake_decode(id) AS d FROM elsewhere) s;
SELECT count(*) FROM regress_flake.flake_layouts;
SELECT name, detail <> '' AS detailed, (ok IS FALSE) = (hint IS NOT NULL) AS hint_if_wrong FROM regress_flake.flake_check();
RESET ROLE;
RESET search_path;
\d elsewhere
DROP TABLE elsewhere;
DROP EXTENSION flake;
CREATE EXTENSION flake;
DROP SCHEMA regress_flake;
REVOKE CREATE ON SCHEMA public FROM regress_flake_user;
DROP ROLE regress_flake_user;
