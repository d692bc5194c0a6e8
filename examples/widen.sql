-- Prints a plan that makes an integer key a bigint, with all columns that refer to it by foreign keys. It changes nothing.
--
--   psql -XAtq -v table=public.orders -f widen.sql >plan.sql
--
-- The plan can be run by the owner of the tables. PostgreSQL itself rewrites indexes, defaults and constraints. Comments name
--
--   in the way   what PostgreSQL refuses to alter, or what subscribers need first: drop and create it by scripts of your own. There is
--                no plan if a table belongs to another role than the caller, because the plan would run functions of its owner, even
--                if only a foreign key leads to it
--   look         columns of type smallint or integer whose name looks as if they held such keys, and functions whose text names one
--                of the tables. It sees no arrays, numeric, char or text, and no column with another name: docs/how-to/convert.md and
--                docs/how-to/other-applications.md find these by their values
\set ON_ERROR_STOP on
SELECT :'table'::regclass::oid AS key_table \gset
SET search_path = pg_catalog, pg_temp;
WITH RECURSIVE refers(relation, number) AS (
    SELECT conrelid, conkey[1] FROM pg_constraint WHERE conrelid = :key_table AND contype = 'p' AND cardinality(conkey) = 1
    UNION
    SELECT follows.* FROM refers, LATERAL (
        SELECT conrelid, conkey[n] FROM pg_constraint, generate_subscripts(confkey, 1) AS n
        WHERE confrelid = relation AND contype = 'f' AND confkey[n] = number
        -- ALTER TABLE changes partitions and children too, which foreign keys may refer to.
        UNION ALL SELECT inhrelid, child.attnum FROM pg_inherits
        JOIN pg_attribute parent ON parent.attrelid = inhparent JOIN pg_attribute child ON child.attrelid = inhrelid AND child.attname = parent.attname
        WHERE inhparent = relation AND parent.attnum = number
    ) follows
), integers AS (
    SELECT oid AS type, typtype = 'd' AS is_domain FROM pg_type
    WHERE COALESCE(NULLIF(typbasetype, 0), oid) IN ('int2'::regtype, 'int4'::regtype)
), wide AS (
    -- Partitions and children follow the table that they belong to.
    SELECT DISTINCT root.attrelid AS relation, root.attnum AS number, root.attname AS name, root.atttypid AS type, is_domain
    FROM refers JOIN pg_attribute part ON part.attrelid = relation AND part.attnum = number
    JOIN pg_attribute root ON root.attrelid = COALESCE(pg_partition_root(relation), relation) AND root.attname = part.attname
    JOIN integers ON integers.type = root.atttypid
    WHERE root.attinhcount = 0
), other(relation) AS (
    SELECT oid FROM pg_class WHERE pg_get_userbyid(relowner) <> current_user
    UNION SELECT inhparent FROM other JOIN pg_inherits ON inhrelid = relation
), others AS (
    SELECT relation FROM (
        SELECT relation FROM refers
        UNION SELECT confrelid FROM refers JOIN pg_constraint ON contype = 'f' AND conrelid = relation AND number = ANY (conkey)
    ) concerned JOIN other USING (relation)
), tables AS (
    SELECT relation, CASE relation WHEN :key_table THEN 1 ELSE 2 END AS place, relation::regclass::text AS quoted,
           (SELECT relname FROM pg_class WHERE oid = relation) AS plain,
           string_agg(format('ALTER COLUMN %I TYPE bigint', name), ', ' ORDER BY number) AS changes,
           pg_size_pretty(COALESCE((SELECT sum(pg_table_size(relid)) FROM pg_partition_tree(relation)), pg_table_size(relation))) AS size
    FROM wide WHERE NOT EXISTS (SELECT FROM others) GROUP BY relation
), uses AS (
    SELECT classid, objid, objsubid FROM wide
    JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = number
    UNION
    -- Views of views.
    SELECT d.classid, d.objid, 0 FROM uses JOIN pg_rewrite r ON uses.classid = 'pg_rewrite'::regclass AND r.oid = uses.objid
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = ev_class AND d.classid = 'pg_rewrite'::regclass AND d.objid <> r.oid
), hindrances(what) AS (
    SELECT pg_describe_object(classid, objid, objsubid) FROM uses
    WHERE classid IN ('pg_rewrite'::regclass, 'pg_trigger'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass)
    UNION SELECT format('generated column %s.%I', attrelid::regclass, attname)
    FROM uses JOIN pg_attrdef d ON classid = 'pg_attrdef'::regclass AND d.oid = objid
    JOIN pg_attribute ON attrelid = adrelid AND attnum = adnum AND attgenerated <> ''
    UNION SELECT format('partition key of %s: copy it to a new table', partrelid::regclass)
    FROM wide JOIN pg_partitioned_table ON partrelid = relation AND number = ANY (partattrs)
    UNION SELECT format('table %s: it, or a partition or child of it, belongs to another role than %I', relation::regclass, current_user)
    FROM others
    UNION SELECT format('domain %s of column %s.%I', type::regtype, relation::regclass, name) FROM wide WHERE is_domain
    UNION SELECT format('publication %I of %s: its subscribers need the wide column first', pubname, quoted)
    FROM tables JOIN pg_publication_tables ON format('%I.%I', schemaname, tablename)::regclass IN (
        SELECT relation UNION SELECT relid FROM pg_partition_tree(relation))
), alike AS (
    SELECT DISTINCT format('column %s.%I', attrelid::regclass, attname) AS what
    FROM tables JOIN pg_attribute ON attname ~* '._?id$' JOIN integers ON type = atttypid JOIN pg_class c ON c.oid = attrelid,
        lower(regexp_replace(attname, '_?id$', '', 'i')) AS stem
    WHERE place = 1 AND relkind IN ('r', 'p') AND NOT relispartition AND (attrelid, attnum) NOT IN (SELECT relation, number FROM wide)
      -- order_id and orders, company_id and shop_companies
      AND lower(plain) ~ format('(^|_)%s.{0,4}$', regexp_replace(left(stem, greatest(length(stem) - 1, 1)), '\W', '\\\&', 'g'))
      AND NOT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = attrelid AND attnum = ANY (conkey))
    UNION
    SELECT 'function ' || p.oid::regprocedure FROM tables JOIN pg_proc p ON prosrc ~ format('\m%s\M', regexp_replace(plain, '\W', '\\\&', 'g'))
    WHERE pronamespace::regnamespace::text NOT IN ('pg_catalog', 'information_schema')
), plan(step, line) AS (
    -- The rest of a name after the end of a line would be run.
    SELECT 1, '-- in the way: ' || translate(what, E'\n\r', '  ') FROM hindrances
    UNION ALL SELECT 2, '-- look: ' || translate(what, E'\n\r', '  ') FROM alike
    UNION ALL SELECT 3, format(E'BEGIN;\nSET LOCAL lock_timeout = ''2s'';\nLOCK TABLE %s;', string_agg(quoted, ', ' ORDER BY place, quoted))
    FROM tables HAVING count(*) > 0
    UNION ALL SELECT 3 + place, format('ALTER TABLE %s %s;  -- %s', quoted, changes, size) FROM tables
    UNION ALL SELECT 6, format('ALTER SEQUENCE %s AS bigint;', seqrelid::regclass)
    FROM uses JOIN pg_sequence ON classid = 'pg_class'::regclass AND seqrelid = objid AND seqtypid <> 'int8'::regtype
    JOIN pg_depend d ON d.classid = 'pg_class'::regclass AND d.objid = seqrelid AND deptype = 'a'
    WHERE EXISTS (SELECT FROM tables)
    UNION ALL SELECT 7, 'COMMIT;' FROM tables HAVING count(*) > 0
)
SELECT line FROM plan ORDER BY step, line;
