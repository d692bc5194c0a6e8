-- Widens an int4 key to bigint, with all columns that refer to it. Afterwards flake_convert can give the key IDs; let the new
-- columns rest before, as no ID that is above 2^31 comes back from bigint to int4.
--
--   psql -v table=public.orders -f widen.sql                    shows what is to be done, and changes nothing
--   psql -v table=public.orders -v how=offline -f widen.sql     by ALTER TABLE: rewrites the tables, which nobody uses meanwhile
--   psql -v table=public.orders -v how=online -f widen.sql      by new columns, which are filled beside the writers
--
--   -v also=public.notes.order_id,public.log.order_id           columns without a foreign key that you widen as well
--   -v blocks=100                                               pages of a table that are filled in one transaction
--   -v wait=1min                                                how long it tries to get locks that others wait behind; each
--                                                               time for half of deadlock_timeout at most, so they are no victims
--
-- Run it as the owner of the tables. Where it stops, run it again: it goes on. Online, the columns change their places in the
-- tables, and sessions that have prepared a statement which returns them prepare it again after an error (0A000). The filling
-- is an UPDATE for the triggers of the tables, unless a superuser runs it.
\set ON_ERROR_STOP on
\if :{?how} \else \set how plan \endif
\if :{?also} \else \set also '' \endif
\if :{?blocks} \else \set blocks 100 \endif
\if :{?wait} \else \set wait 1min \endif
SELECT :'how' = 'plan' AS is_plan, :'how' = 'offline' AS is_offline, :'how' = 'online' AS is_online \gset
SET client_min_messages = warning;
SET search_path = pg_catalog;

-- The key, what refers to it, and what refers to that, through cycles of tables too.
CREATE TEMP TABLE wide AS
WITH RECURSIVE found(relation, number) AS (
    (SELECT conrelid, conkey[1] FROM pg_constraint WHERE conrelid = :'table'::regclass AND contype = 'p' AND cardinality(conkey) = 1
     UNION ALL
     SELECT attrelid, attnum
     FROM string_to_table(:'also', ',') AS also(path)
     JOIN pg_attribute ON attrelid = regexp_replace(path, '\.[^.]*$', '')::regclass
                      AND attname = (parse_ident(path))[cardinality(parse_ident(path))])
    UNION
    SELECT conrelid, conkey[n] FROM found JOIN pg_constraint ON confrelid = relation AND contype = 'f' AND conparentid = 0,
        generate_subscripts(confkey, 1) AS n
    WHERE confkey[n] = number
)
SELECT relation::regclass, number, attname AS name, quote_ident(attname) AS quoted, quote_ident(left(attname, 58) || '_wide') AS new,
       attnotnull AS is_required, attidentity AS identity
FROM found JOIN pg_attribute ON attrelid = relation AND attnum = number AND atttypid IN ('int4'::regtype, 'int2'::regtype);

-- Everything that is in the way, the statement that removes it, and the one that brings it back.
CREATE TEMP TABLE hindrances AS
WITH RECURSIVE uses AS (
    SELECT DISTINCT d.classid, d.objid, d.objsubid, relation, name FROM pg_depend d JOIN wide
        ON d.refclassid = 'pg_class'::regclass AND d.refobjid = relation AND d.refobjsubid = number
    WHERE NOT (d.classid = 'pg_class'::regclass AND d.objid = relation AND d.objsubid = 0)
), views(oid, depth) AS (
    SELECT ev_class, 1 FROM uses JOIN pg_rewrite r ON classid = 'pg_rewrite'::regclass AND r.oid = objid
    UNION
    SELECT ev_class, depth + 1 FROM views JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = views.oid
    JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid AND ev_class <> views.oid
), view AS (
    SELECT c.oid::regclass AS name, max(depth) AS depth, c.relkind, c.reloptions, c.relacl, c.relowner
    FROM views JOIN pg_class c ON c.oid = views.oid GROUP BY c.oid
)
SELECT CASE relkind WHEN 'm' THEN 'materialized view ' ELSE 'view ' END || name AS what, depth,
       format('DROP %s %s', CASE relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, name) AS before,
       concat_ws('; ', format('CREATE %s %s%s AS %s', CASE relkind WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE 'VIEW' END, name,
                              ' WITH (' || array_to_string(reloptions, ', ') || ')', rtrim(pg_get_viewdef(name), ';')),
                 (SELECT string_agg(pg_get_indexdef(indexrelid), '; ') FROM pg_index WHERE indrelid = name),
                 (SELECT string_agg(format('GRANT %s ON %s TO %s', privilege_type, name,
                                           CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END), '; ')
                  FROM aclexplode(relacl) WHERE grantee <> relowner)) AS after
FROM view
UNION ALL
SELECT 'generated column ' || t.oid || '.' || quote_ident(attname), 0, format('ALTER TABLE %s DROP COLUMN %I', t.oid, attname),
       concat_ws('; ', format('ALTER TABLE %s ADD COLUMN %I %s GENERATED ALWAYS AS (%s) STORED', t.oid, attname,
                              format_type(atttypid, atttypmod), pg_get_expr(adbin, adrelid)),
                 (SELECT string_agg(pg_get_indexdef(indexrelid), '; ') FROM pg_index WHERE indrelid = t.oid AND attnum = ANY (indkey)))
FROM (SELECT DISTINCT relation AS oid, CASE WHEN classid = 'pg_attrdef'::regclass THEN (SELECT adnum FROM pg_attrdef a WHERE a.oid = objid)
                                            ELSE objsubid END AS number
      FROM uses WHERE classid = 'pg_attrdef'::regclass OR classid = 'pg_class'::regclass AND objid = relation) t
JOIN pg_attribute ON attrelid = t.oid AND attnum = t.number AND attgenerated <> '' JOIN pg_attrdef ON adrelid = t.oid AND adnum = attnum
UNION ALL
SELECT pg_describe_object(classid, objid, 0), 0, format('DROP TRIGGER %I ON %s', tgname, tgrelid::regclass), pg_get_triggerdef(t.oid)
FROM uses JOIN pg_trigger t ON classid = 'pg_trigger'::regclass AND t.oid = objid
UNION ALL
SELECT pg_describe_object(classid, objid, 0), 0, format('DROP POLICY %I ON %s', polname, polrelid::regclass),
       concat(format('CREATE POLICY %I ON %s AS %s FOR %s TO %s', polname, polrelid::regclass,
                     CASE WHEN polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END,
                     CASE polcmd WHEN 'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' ELSE 'ALL' END,
                     (SELECT string_agg(CASE role WHEN 0 THEN 'PUBLIC' ELSE role::regrole::text END, ', ') FROM unnest(polroles) role)),
              ' USING (' || pg_get_expr(polqual, polrelid) || ')', ' WITH CHECK (' || pg_get_expr(polwithcheck, polrelid) || ')')
FROM uses JOIN pg_policy p ON classid = 'pg_policy'::regclass AND p.oid = objid
UNION ALL
SELECT pg_describe_object(classid, objid, 0), 0, format('DROP FUNCTION %s', objid::regprocedure), pg_get_functiondef(objid)
FROM uses WHERE classid = 'pg_proc'::regclass
UNION ALL
SELECT pg_describe_object(classid, objid, 0), 0, format('DROP STATISTICS %I.%I', stxnamespace::regnamespace, stxname),
       pg_get_statisticsobjdef(objid)
FROM uses JOIN pg_statistic_ext s ON classid = 'pg_statistic_ext'::regclass AND s.oid = objid WHERE :'how' <> 'offline'
UNION ALL
SELECT pg_describe_object(classid, objid, 0), 0, NULL, NULL
FROM uses WHERE classid NOT IN ('pg_rewrite'::regclass, 'pg_attrdef'::regclass, 'pg_class'::regclass, 'pg_trigger'::regclass,
    'pg_policy'::regclass, 'pg_proc'::regclass, 'pg_statistic_ext'::regclass, 'pg_constraint'::regclass)
UNION ALL
SELECT format('partition key of %s: copy it to a table with a wide key', relation), 0, NULL, NULL
FROM wide JOIN pg_partitioned_table ON partrelid = relation AND number = ANY (partattrs)
UNION ALL
SELECT format('publication %s of %s: its subscribers need the wide column first', pubname, relation), 0,
       format('ALTER PUBLICATION %I DROP TABLE %s', pubname, relation), format('ALTER PUBLICATION %I ADD TABLE %s', pubname, relation)
FROM (SELECT DISTINCT relation FROM wide) w JOIN pg_publication_rel ON prrelid = relation JOIN pg_publication p ON p.oid = prpubid
UNION ALL
SELECT format('publication %s of all tables or of a schema: its subscribers need the wide columns of %s first', pubname, relation), 0, NULL, NULL
FROM (SELECT DISTINCT relation FROM wide) w JOIN pg_class c ON c.oid = relation JOIN pg_publication p
    ON puballtables OR EXISTS (SELECT FROM pg_publication_namespace WHERE pnpubid = p.oid AND pnnspid = relnamespace)
UNION ALL
SELECT format('replica identity of %s', relation), 0, format('ALTER TABLE %s REPLICA IDENTITY DEFAULT', relation),
       format('ALTER TABLE %s REPLICA IDENTITY USING INDEX %I', relation, c.relname)
FROM wide JOIN pg_index ON indrelid = relation AND number = ANY (indkey) AND indisreplident JOIN pg_class c ON c.oid = indexrelid
WHERE :'how' <> 'offline'
UNION ALL
SELECT format('exclusion constraint %s of %s', conname, conrelid::regclass), 0, format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname),
       format('ALTER TABLE %s ADD CONSTRAINT %I %s', conrelid::regclass, conname, pg_get_constraintdef(c.oid))
FROM wide JOIN pg_constraint c ON conrelid = relation AND contype = 'x' AND number = ANY (conkey) WHERE :'how' <> 'offline'
UNION ALL
SELECT format('partitions or children of %s: widen it offline', relation), 0, NULL, NULL
FROM (SELECT DISTINCT relation FROM wide) w JOIN pg_class c ON c.oid = relation
WHERE :'how' = 'online' AND (relkind = 'p' OR EXISTS (SELECT FROM pg_inherits WHERE relation IN (inhparent, inhrelid)));

\if :is_plan
\echo
\echo 'Columns to widen, with those that refer to the key by foreign keys:'
SELECT relation AS "table", quoted AS "column", pg_size_pretty(pg_table_size(relation)) AS "size of the table" FROM wide ORDER BY 1, 2;
\echo 'Columns that look like it; add those that hold such keys by -v also=...:'
SELECT DISTINCT c.oid::regclass AS "table", quote_ident(attname) AS "column"
FROM wide JOIN pg_constraint p ON p.conrelid = relation AND p.contype = 'p' AND p.conkey = ARRAY[number]
JOIN pg_class k ON k.oid = relation, pg_attribute a JOIN pg_class c ON c.oid = attrelid, left(attname, -3) AS stem
WHERE attname LIKE '%\_id' AND atttypid IN ('int4'::regtype, 'int2'::regtype) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND (k.relname IN (stem, stem || 's') OR right(k.relname, length(stem) + 1) = '_' || stem OR right(k.relname, length(stem) + 2) = '_' || stem || 's')
  AND NOT EXISTS (SELECT FROM wide WHERE relation = attrelid AND number = attnum)
  AND NOT EXISTS (SELECT FROM pg_constraint WHERE contype = 'f' AND conrelid = attrelid AND attnum = ANY (conkey))
ORDER BY 1, 2;
\pset format unaligned
\pset tuples_only on
\echo 'These are in the way; run this before:'
SELECT format('%s;  -- %s', COALESCE(before, '--'), what) FROM hindrances ORDER BY depth DESC, what;
\echo
\echo 'And this afterwards:'
SELECT format('%s;', after) FROM hindrances WHERE after IS NOT NULL ORDER BY depth, what;
\quit
\endif

SELECT count(*) > 0 AS is_hindered, string_agg(what, E'\n' ORDER BY what) AS what FROM hindrances \gset
SELECT count(*) = 0 AS is_wide FROM wide \gset
\if :is_wide
\echo 'nothing to widen'
\quit
\endif
\if :is_hindered
\warn 'in the way; without -v how, the statements are shown:'
\warn :what
DO $$ BEGIN RAISE 'nothing was widened'; END $$;
\endif

-- Locks all tables or none, again and again.
CREATE FUNCTION pg_temp.lock(tables text[], mode text, tries interval) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('lock_timeout', (SELECT setting::int / 2 / cardinality(tables) FROM pg_settings WHERE name = 'deadlock_timeout')::text, true);
    LOOP
        BEGIN
            EXECUTE format('LOCK TABLE %s IN %s MODE', array_to_string(tables, ', '), mode);
            RETURN 'locked';
        EXCEPTION WHEN lock_not_available THEN
            IF clock_timestamp() > statement_timestamp() + tries THEN
                RAISE;
            END IF;
        END;
        PERFORM pg_sleep(0.2 + random());
    END LOOP;
END $$;

\if :is_offline
BEGIN;
SELECT pg_temp.lock(array_agg(DISTINCT relation::text), 'ACCESS EXCLUSIVE', :'wait') AS locked FROM wide \gset
SELECT format('ALTER TABLE %s %s', relation, string_agg(format('ALTER COLUMN %s TYPE bigint', quoted), ', ')) FROM wide GROUP BY relation ORDER BY relation \gexec
SELECT format('ALTER SEQUENCE %s AS bigint', seqrelid::regclass) FROM wide JOIN pg_depend
    ON refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = number AND deptype = 'a' AND classid = 'pg_class'::regclass
JOIN pg_sequence ON seqrelid = objid AND seqtypid <> 'int8'::regtype \gexec
COMMIT;
\endif

\if :is_online
-- Names of copies, and the columns of a constraint or an index with the wide ones in their places.
CREATE FUNCTION pg_temp.copy(name name) RETURNS text LANGUAGE sql AS $$ SELECT quote_ident(left(name, 58) || '_wide') $$;
CREATE FUNCTION pg_temp.columns(of regclass, numbers smallint[]) RETURNS text LANGUAGE sql AS $$
    SELECT string_agg(COALESCE(new, quote_ident(attname)), ', ' ORDER BY n)
    FROM unnest(numbers) WITH ORDINALITY u(attnum, n) JOIN pg_attribute a USING (attnum)
    LEFT JOIN wide ON relation = attrelid AND number = a.attnum WHERE attrelid = of $$;
CREATE FUNCTION pg_temp.replaced(of regclass, definition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT quoted, new FROM wide WHERE relation = of LOOP
        definition := regexp_replace(definition, CASE WHEN one.quoted LIKE '"%' THEN one.quoted ELSE '\m' || one.quoted || '\M' END,
                                     one.new, 'g');
    END LOOP;
    RETURN definition;
END $$;
CREATE FUNCTION pg_temp.next(sequence regclass, increment bigint, OUT next bigint) LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('SELECT last_value + CASE WHEN is_called THEN %s ELSE 0 END FROM %s', increment, sequence) INTO next;
END $$;

-- Each row of a table that has no wide keys yet gets them; what others have locked comes in the next round.
CREATE PROCEDURE pg_temp.fill(of regclass, changes text, is_missing text, blocks int) LANGUAGE plpgsql AS $$
DECLARE
    has_missing boolean := true;
BEGIN
    WHILE has_missing LOOP
        FOR block IN 0 .. pg_relation_size(of) / current_setting('block_size')::int BY blocks LOOP
            EXECUTE format('UPDATE %1$s SET %2$s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$s
                WHERE ctid >= %4$L AND ctid < %5$L AND (%3$s) FOR NO KEY UPDATE SKIP LOCKED))',
                of, changes, is_missing, format('(%s,0)', block), format('(%s,0)', block + blocks));
            COMMIT;
        END LOOP;
        EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE %s)', of, is_missing) INTO has_missing;
    END LOOP;
END $$;

\echo 'New columns, which triggers keep equal to the old ones'
SELECT format('BEGIN; DO $d$ BEGIN PERFORM pg_temp.lock(ARRAY[%6$L], ''ACCESS EXCLUSIVE'', %7$L); END $d$; ALTER TABLE %1$s %2$s;
CREATE OR REPLACE FUNCTION %4$I.%5$s() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN %3$s RETURN NEW; END $f$;
CREATE OR REPLACE TRIGGER zzz_widen BEFORE INSERT OR UPDATE ON %1$s FOR EACH ROW EXECUTE FUNCTION %4$I.%5$s();
ALTER TABLE %1$s ENABLE ALWAYS TRIGGER zzz_widen; COMMIT',
    relation, string_agg(format('ADD COLUMN IF NOT EXISTS %s bigint', new), ', '), string_agg(format('NEW.%s := NEW.%s;', new, quoted), ' '),
    relnamespace::regnamespace, pg_temp.copy(relname), relation::text, :'wait')
FROM wide JOIN pg_class c ON c.oid = relation GROUP BY relation, c.oid ORDER BY relation \gexec

\echo 'Filling them'
SELECT 'SET session_replication_role = replica' FROM pg_roles WHERE rolname = current_user AND rolsuper \gexec
SELECT format('CALL pg_temp.fill(%L, %L, %L, %s)', relation, string_agg(format('%s = %s', new, quoted), ', '),
              string_agg(format('%s IS DISTINCT FROM %s', new, quoted), ' OR '), :blocks)
FROM wide GROUP BY relation ORDER BY relation \gexec
RESET session_replication_role;

\echo 'Indexes, constraints'
SELECT format('DROP INDEX CONCURRENTLY %s', x.indexrelid::regclass)
FROM (SELECT DISTINCT relation FROM wide) w JOIN pg_index x ON indrelid = relation JOIN pg_class c ON c.oid = x.indexrelid
WHERE NOT indisvalid AND relname LIKE '%\_wide' \gexec
CREATE TEMP TABLE indexes AS
SELECT indexrelid::regclass AS index, relation, conname, contype, pg_temp.copy(relname) AS new, c.relnamespace::regnamespace AS schema, relname AS name,
       concat('CREATE ', CASE WHEN indisunique THEN 'UNIQUE ' END, 'INDEX CONCURRENTLY IF NOT EXISTS ', pg_temp.copy(relname), ' ON ', relation,
              pg_temp.replaced(relation, substring(pg_get_indexdef(indexrelid) FROM ' USING .*'))) AS definition,
       CASE contype WHEN 'p' THEN 'PRIMARY KEY' WHEN 'u' THEN 'UNIQUE' END AS kind,
       CASE WHEN condeferrable THEN ' DEFERRABLE' END || CASE WHEN condeferred THEN ' INITIALLY DEFERRED' ELSE '' END AS timing
FROM (SELECT DISTINCT relation, number FROM wide) w JOIN pg_index ON indrelid = relation JOIN pg_class c ON c.oid = indexrelid
LEFT JOIN pg_constraint k ON k.conindid = indexrelid AND contype IN ('p', 'u')
WHERE relname NOT LIKE '%\_wide' AND EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = relation
    AND d.refobjsubid = number AND (d.objid = indexrelid OR d.objid = k.oid));
SELECT DISTINCT definition FROM indexes \gexec
CREATE TEMP TABLE constraints AS
SELECT DISTINCT k.conrelid::regclass AS relation, NULLIF(k.confrelid, 0)::regclass AS target, k.conname AS name, pg_temp.copy(k.conname) AS new,
    CASE contype WHEN 'c' THEN pg_temp.replaced(k.conrelid, pg_get_constraintdef(k.oid))
    ELSE format('FOREIGN KEY (%s) REFERENCES %s (%s)%s', pg_temp.columns(conrelid, conkey), confrelid::regclass, pg_temp.columns(confrelid, confkey),
                pg_temp.replaced(conrelid, regexp_replace(pg_get_constraintdef(k.oid), '^FOREIGN KEY \([^)]*\) REFERENCES [^(]*\([^)]*\)', '')))
    END AS definition
FROM wide JOIN pg_constraint k ON conrelid = relation AND number = ANY (conkey) AND contype IN ('c', 'f')
                               OR confrelid = relation AND number = ANY (confkey) AND contype = 'f'
WHERE k.conname NOT LIKE '%\_wide'
UNION
SELECT relation, NULL, NULL, pg_temp.copy(name || '_set'), format('CHECK (%s IS NOT NULL)', new) FROM wide WHERE is_required;
SELECT format('BEGIN; DO $d$ BEGIN PERFORM pg_temp.lock(ARRAY[%s], %L, %L); END $d$; ALTER TABLE %s ADD CONSTRAINT %s %s NOT VALID; COMMIT',
              concat_ws(', ', quote_literal(relation), quote_literal(NULLIF(target::text, relation::text))),
              CASE WHEN target IS NULL THEN 'ACCESS EXCLUSIVE' ELSE 'SHARE ROW EXCLUSIVE' END, :'wait', relation, new,
              regexp_replace(definition, ' NOT VALID$', ''))
FROM constraints c WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = relation AND quote_ident(conname) = new) \gexec
SELECT format('ALTER TABLE %s VALIDATE CONSTRAINT %s', relation, new) FROM constraints WHERE definition NOT LIKE '% NOT VALID' \gexec

\echo 'The new columns take the places of the old ones'
BEGIN;
SELECT pg_temp.lock(array_agg(relation::text), 'ACCESS EXCLUSIVE', :'wait') AS locked FROM (
    SELECT relation FROM wide UNION SELECT relation FROM constraints UNION SELECT target FROM constraints WHERE target IS NOT NULL) locks \gset
WITH sequences AS (
    SELECT s.*, relation, new, quoted, identity, seqrelid::regclass AS sequence,
           pg_temp.next(seqrelid, seqincrement) AS next
    FROM wide JOIN pg_depend ON refclassid = 'pg_class'::regclass AND refobjid = relation AND refobjsubid = number
                            AND classid = 'pg_class'::regclass AND deptype IN ('a', 'i')
    JOIN pg_sequence s ON seqrelid = objid
)
SELECT statement FROM (
    SELECT 1, format('ALTER TABLE %s ALTER COLUMN %s SET NOT NULL, DROP CONSTRAINT %s', relation, new, pg_temp.copy(name || '_set'))
    FROM wide WHERE is_required
    UNION ALL SELECT 2, format('DROP TRIGGER zzz_widen ON %s; DROP FUNCTION %I.%s()', relation, relnamespace::regnamespace, pg_temp.copy(relname))
    FROM (SELECT DISTINCT relation FROM wide) w JOIN pg_class c ON c.oid = relation
    UNION ALL SELECT 3, format('ALTER TABLE %s DROP CONSTRAINT %I', relation, name) FROM constraints WHERE name IS NOT NULL
    UNION ALL SELECT 4, format('ALTER SEQUENCE %s AS bigint OWNED BY %s.%s', sequence, relation, new) FROM sequences WHERE identity = ''
    UNION ALL SELECT 5, format('ALTER TABLE %s ALTER COLUMN %s SET DEFAULT %s', relation, new, pg_get_expr(adbin, adrelid))
    FROM wide JOIN pg_attrdef ON adrelid = relation AND adnum = number
    UNION ALL SELECT 6, format('GRANT %s (%s) ON %s TO %s', privilege_type, new, relation, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
    FROM wide JOIN pg_attribute ON attrelid = relation AND attnum = number, aclexplode(attacl)
    UNION ALL SELECT 6, format('COMMENT ON COLUMN %s.%s IS %L', relation, new, col_description(relation, number)) FROM wide
    WHERE col_description(relation, number) IS NOT NULL
    UNION ALL SELECT 6, format('ALTER TABLE %s ALTER COLUMN %s SET STATISTICS %s', relation, new, attstattarget)
    FROM wide JOIN pg_attribute ON attrelid = relation AND attnum = number WHERE attstattarget >= 0
    UNION ALL SELECT 7, format('ALTER TABLE %s DROP COLUMN %s', relation, quoted) FROM wide
    UNION ALL SELECT 8, format('ALTER TABLE %s RENAME COLUMN %s TO %s', relation, new, quoted) FROM wide
    UNION ALL SELECT 9, format('ALTER INDEX %s.%s RENAME TO %I', schema, new, name) FROM (SELECT DISTINCT schema, new, name FROM indexes) i
    UNION ALL SELECT 10, format('ALTER TABLE %s ADD CONSTRAINT %I %s USING INDEX %I%s', relation, conname, kind, name, timing)
    FROM (SELECT DISTINCT relation, conname, kind, name, timing FROM indexes WHERE kind IS NOT NULL) i
    UNION ALL SELECT 11, format('ALTER TABLE %s RENAME CONSTRAINT %s TO %I', relation, new, name) FROM constraints WHERE name IS NOT NULL
    UNION ALL SELECT 12, format('ALTER TABLE %s ALTER COLUMN %s ADD GENERATED %s AS IDENTITY (SEQUENCE NAME %s START WITH %s INCREMENT BY %s CACHE %s RESTART WITH %s)',
                                relation, quoted, CASE identity WHEN 'a' THEN 'ALWAYS' ELSE 'BY DEFAULT' END, sequence, seqstart, seqincrement, seqcache, next)
    FROM sequences WHERE identity <> ''
) steps(step, statement) ORDER BY step \gexec
COMMIT;
SELECT format('ANALYZE %s', relation) FROM (SELECT DISTINCT relation FROM wide) w \gexec
\endif
