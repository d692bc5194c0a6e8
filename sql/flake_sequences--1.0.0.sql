-- The objects of the extension flake_sequences: sequences whose numbers are IDs of flake.
--
-- It has the library of flake. Its C symbols begin with "flake_", because PostgreSQL itself has the symbols nextval and lastval.
\echo Use "CREATE EXTENSION flake_sequences" to load this file. \quit

-- The objects belong to the superuser that cannot be dropped; flake.sql says why, and why every name here is qualified.
SELECT pg_catalog.set_config('flake_script.role'::pg_catalog.text, pg_catalog.current_setting('role'::pg_catalog.text), true);
SELECT pg_catalog.set_config('role'::pg_catalog.text, rolname::pg_catalog.text, true) FROM pg_catalog.pg_roles
WHERE oid OPERATOR(pg_catalog.=) '10'::pg_catalog.oid AND rolname OPERATOR(pg_catalog.<>) current_user
    AND pg_catalog.pg_has_role(session_user, oid, 'MEMBER'::pg_catalog.text);

-- The functions of sequences ---------------------------------------------------------------------------------------------

-- The schema is made here, and not by CREATE EXTENSION: that would take a schema that another role owns. It holds functions with
-- names of PostgreSQL's and nothing else, so that it can stand in a search_path.
CREATE SCHEMA flake_sequences;
COMMENT ON SCHEMA flake_sequences IS 'the functions of sequences, for sequences that were adopted and for others';

CREATE FUNCTION flake_sequences.nextval(regclass) RETURNS bigint
    VOLATILE STRICT PARALLEL UNSAFE SUPPORT flake_internal.flake_next_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_nextval';
COMMENT ON FUNCTION flake_sequences.nextval(regclass) IS
    'returns a new ID for a sequence that was adopted, and the next number of any other one';

CREATE FUNCTION flake_sequences.currval(regclass) RETURNS bigint
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_currval';
COMMENT ON FUNCTION flake_sequences.currval(regclass) IS
    'returns what nextval or setval has returned last in this session for the sequence';

CREATE FUNCTION flake_sequences.lastval() RETURNS bigint
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_lastval';
COMMENT ON FUNCTION flake_sequences.lastval() IS
    'returns what nextval has returned last in this session, also after more than 64 IDs in a statement';

CREATE FUNCTION flake_sequences.setval(regclass, bigint) RETURNS bigint
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_setval';
COMMENT ON FUNCTION flake_sequences.setval(regclass, bigint) IS
    'sets a sequence; of a sequence that was adopted it changes only what currval and lastval return';

CREATE FUNCTION flake_sequences.setval(regclass, bigint, boolean) RETURNS bigint
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_setval_called';
COMMENT ON FUNCTION flake_sequences.setval(regclass, bigint, boolean) IS
    'sets a sequence; of a sequence that was adopted it changes only what currval and lastval return, and nothing if the last argument is false';

-- A path that names pg_catalog has it in current_schemas(false), where programs look for their tables.
CREATE FUNCTION flake_sequences.current_schemas(boolean) RETURNS name[]
    STABLE STRICT PARALLEL SAFE LANGUAGE sql
BEGIN ATOMIC
    SELECT pg_catalog.array_cat(
        CASE WHEN $1 THEN '{pg_catalog}'::pg_catalog.name[] ELSE '{}'::pg_catalog.name[] END,
        ARRAY(SELECT s.name FROM ROWS FROM (pg_catalog.unnest(pg_catalog.current_schemas($1))) WITH ORDINALITY s(name, number)
              WHERE s.name OPERATOR(pg_catalog.<>) 'flake_sequences'::pg_catalog.name
                  AND s.name OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name
              ORDER BY s.number));
END;
COMMENT ON FUNCTION flake_sequences.current_schemas(boolean) IS
    'returns the schemas of the search_path without flake_sequences, and without pg_catalog unless the argument is true';

-- For COPY; flake.sql says why. No caller has a value for the last argument.
CREATE FUNCTION flake_internal.nextval_in_copy(regclass, internal) RETURNS bigint
    STABLE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_nextval';
COMMENT ON FUNCTION flake_internal.nextval_in_copy(regclass, internal) IS
    'what COPY calls for a default with flake_sequences.nextval';

-- PostgreSQL's lastval() returns the last value of the sequence that was used last. A session that makes an ID uses this sequence and
-- sets it to the ID. In a schema that roles may use, CREATE RULE could keep all sessions from it.
CREATE UNLOGGED SEQUENCE flake_internal.flake_last MINVALUE -9223372036854775808 CYCLE;
COMMENT ON SEQUENCE flake_internal.flake_last IS 'what lastval() returns after an ID of an adopted sequence; not for use';

-- Adopting sequences -----------------------------------------------------------------------------------------------------

CREATE PROCEDURE flake_adopt(relation regclass, layout text, INOUT undo text DEFAULT NULL)
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_adopt';
COMMENT ON PROCEDURE flake_adopt(regclass, text, text) IS
    'lets the sequence of a table''s key, or one that no column uses, return IDs of a layout; returns the statement that undoes it';

CREATE PROCEDURE flake_adopt_schema(schema regnamespace, layout text, INOUT undo text[] DEFAULT NULL)
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_adopt_schema';
COMMENT ON PROCEDURE flake_adopt_schema(regnamespace, text, text[]) IS
    'adopts the key of each table of a schema in a transaction of its own, and lets the other serial columns call flake_sequences.nextval; returns the statements that undo it';

CREATE PROCEDURE flake_release(relation regclass, next bigint DEFAULT NULL, as_identity boolean DEFAULT false)
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_release';
COMMENT ON PROCEDURE flake_release(regclass, bigint, boolean) IS
    'lets an adopted sequence count again, from a number or from above the greatest key on';

CREATE VIEW flake_candidates AS
    WITH open(sequence, increment) AS (
        SELECT s.seqrelid, s.seqincrement FROM pg_catalog.pg_sequence s
        WHERE s.seqstart OPERATOR(pg_catalog.<=) '-9007199254740992'::pg_catalog.int8
            OR s.seqstart OPERATOR(pg_catalog.>) '-4503599627370496'::pg_catalog.int8
    ), fed(relation, number, sequence, kind, expression) AS (
        SELECT d.refobjid, d.refobjsubid, d.objid, 'identity'::pg_catalog.text, NULL::pg_catalog.text
        FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_sequence s ON s.seqrelid OPERATOR(pg_catalog.=) d.objid
        WHERE d.classid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid AND d.refclassid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
            AND d.deptype OPERATOR(pg_catalog.=) 'i'::pg_catalog."char"
        UNION ALL
        SELECT e.adrelid, e.adnum::pg_catalog.int4, s.seqrelid,
            CASE WHEN o.objid IS NULL THEN 'default'::pg_catalog.text ELSE 'serial'::pg_catalog.text END,
            pg_catalog.pg_get_expr(e.adbin, e.adrelid)
        FROM pg_catalog.pg_attrdef e
        JOIN pg_catalog.pg_depend d ON d.classid OPERATOR(pg_catalog.=) '2604'::pg_catalog.oid
            AND d.objid OPERATOR(pg_catalog.=) e.oid AND d.refclassid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
        JOIN pg_catalog.pg_sequence s ON s.seqrelid OPERATOR(pg_catalog.=) d.refobjid
        LEFT JOIN pg_catalog.pg_depend o ON o.classid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
            AND o.objid OPERATOR(pg_catalog.=) s.seqrelid AND o.refclassid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
            AND o.refobjid OPERATOR(pg_catalog.=) e.adrelid
            AND o.refobjsubid OPERATOR(pg_catalog.=) e.adnum::pg_catalog.int4
            AND o.deptype OPERATOR(pg_catalog.=) 'a'::pg_catalog."char"
    ), columns AS (
        SELECT f.relation, f.sequence, f.kind, a.attname, a.attidentity, q.increment,
            pg_catalog.format_type(a.atttypid, NULL::pg_catalog.int4) AS type,
            f.expression IS NULL OR f.expression OPERATOR(pg_catalog.~)
                '^([a-z_]+[.])?nextval[(]''([^'']|'''')*''::regclass[)]$'::pg_catalog.text AS is_plain,
            EXISTS (
                SELECT FROM pg_catalog.pg_type t WHERE t.oid OPERATOR(pg_catalog.=) a.atttypid
                    AND (t.oid OPERATOR(pg_catalog.=) '20'::pg_catalog.oid OR t.typbasetype OPERATOR(pg_catalog.=) '20'::pg_catalog.oid)
            ) AS is_bigint,
            EXISTS (
                SELECT FROM pg_catalog.pg_constraint k WHERE k.conrelid OPERATOR(pg_catalog.=) f.relation
                    AND k.contype OPERATOR(pg_catalog.=) 'p'::pg_catalog."char" AND k.conkey OPERATOR(pg_catalog.=) ARRAY[a.attnum]
            ) AS is_key,
            (SELECT pg_catalog.count(*) FROM pg_catalog.pg_constraint k
                JOIN pg_catalog.pg_attribute c ON c.attrelid OPERATOR(pg_catalog.=) k.conrelid
                    AND c.attnum OPERATOR(pg_catalog.=) ANY (k.conkey)
                WHERE k.confrelid OPERATOR(pg_catalog.=) f.relation AND k.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char"
                    AND k.conparentid OPERATOR(pg_catalog.=) '0'::pg_catalog.oid
                    AND k.confkey OPERATOR(pg_catalog.=) ARRAY[a.attnum]
                    AND c.atttypid OPERATOR(pg_catalog.=) ANY ('{21,23}'::pg_catalog.oid[])) AS narrow,
            (SELECT pg_catalog.string_agg(pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid), ', '::pg_catalog.text)
                FROM pg_catalog.pg_depend d
                WHERE d.refclassid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
                    AND d.refobjid OPERATOR(pg_catalog.=) f.sequence AND NOT EXISTS (
                        SELECT FROM pg_catalog.pg_attrdef e
                        JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) e.adrelid
                        WHERE d.classid OPERATOR(pg_catalog.=) '2604'::pg_catalog.oid AND d.objid OPERATOR(pg_catalog.=) e.oid
                            AND (r.relispartition OR e.adrelid OPERATOR(pg_catalog.=) f.relation
                                AND e.adnum::pg_catalog.int4 OPERATOR(pg_catalog.=) f.number))) AS bound,
            (SELECT pg_catalog.pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
                FROM pg_catalog.pg_depend d
                WHERE d.classid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid AND d.objid OPERATOR(pg_catalog.=) f.sequence
                    AND d.refclassid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
                    AND d.deptype OPERATOR(pg_catalog.=) 'a'::pg_catalog."char"
                    AND (d.refobjid OPERATOR(pg_catalog.<>) f.relation OR d.refobjsubid OPERATOR(pg_catalog.<>) f.number)
                LIMIT 1) AS owner
        FROM fed f JOIN open q ON q.sequence OPERATOR(pg_catalog.=) f.sequence
        JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) f.relation
        JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) f.relation
            AND a.attnum::pg_catalog.int4 OPERATOR(pg_catalog.=) f.number
        WHERE NOT r.relispartition AND r.relpersistence OPERATOR(pg_catalog.<>) 't'::pg_catalog."char"
            AND pg_catalog.pg_has_role(r.relowner, 'USAGE'::pg_catalog.text)
    )
    SELECT c.relation::pg_catalog.regclass AS relation, c.attname AS column_name, c.sequence::pg_catalog.regclass AS sequence, c.kind,
        CASE
            WHEN c.attidentity OPERATOR(pg_catalog.=) 'a'::pg_catalog."char"
                THEN 'GENERATED ALWAYS: with a default, clients could choose keys'::pg_catalog.text
            WHEN NOT c.is_plain THEN 'the default is an expression'::pg_catalog.text
            WHEN NOT c.is_key THEN 'not a primary key of one column'::pg_catalog.text
            WHEN NOT c.is_bigint OR c.narrow OPERATOR(pg_catalog.>) '0'::pg_catalog.int8
                THEN pg_catalog.format('of type %s, and %s columns that refer to it are too small: see examples/widen.sql'::pg_catalog.text,
                    c.type, c.narrow)
            WHEN c.increment OPERATOR(pg_catalog.<>) '1'::pg_catalog.int8
                THEN pg_catalog.format('counted by %s'::pg_catalog.text, c.increment)
            WHEN COALESCE(c.bound, c.owner) IS NOT NULL
                THEN pg_catalog.format('fed by a sequence of other objects: %s'::pg_catalog.text,
                    pg_catalog.concat_ws(', '::pg_catalog.text, c.bound, c.owner))
        END AS obstacle
    FROM columns c
    UNION ALL
    SELECT s.oid::pg_catalog.regclass, NULL::pg_catalog.name, s.oid::pg_catalog.regclass, 'free'::pg_catalog.text,
        'only an application calls nextval: it has to find flake_sequences in its search_path'::pg_catalog.text
    FROM pg_catalog.pg_class s JOIN open q ON q.sequence OPERATOR(pg_catalog.=) s.oid
    WHERE s.relpersistence OPERATOR(pg_catalog.<>) 't'::pg_catalog."char"
        AND pg_catalog.pg_has_role(s.relowner, 'USAGE'::pg_catalog.text)
        AND NOT EXISTS (SELECT FROM fed f WHERE f.sequence OPERATOR(pg_catalog.=) s.oid)
        AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_depend d WHERE d.classid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
                AND d.objid OPERATOR(pg_catalog.=) s.oid AND d.deptype OPERATOR(pg_catalog.=) ANY ('{a,e}'::pg_catalog."char"[]));
COMMENT ON VIEW flake_candidates IS 'the sequences that can be adopted, of tables whose owner''s privileges the current role has';
COMMENT ON COLUMN flake_candidates.relation IS 'what flake_adopt takes: the table, or a sequence that no column uses';
COMMENT ON COLUMN flake_candidates.column_name IS 'the column that the sequence feeds; NULL if none';
COMMENT ON COLUMN flake_candidates.sequence IS 'the sequence';
COMMENT ON COLUMN flake_candidates.kind IS
    '"serial" if the column owns the sequence, "default" if it only uses it, "identity", or "free" if no column uses it';
COMMENT ON COLUMN flake_candidates.obstacle IS
    'what stands in the way, as far as the catalog shows; NULL if nothing does. flake_adopt also looks at the keys';

-- A search_path with flake_sequences ------------------------------------------------------------------------------------

CREATE PROCEDURE flake_route(VARIADIC schemas regnamespace[])
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_route';
COMMENT ON PROCEDURE flake_route(regnamespace[]) IS
    'lets the defaults of all serial columns call flake_sequences.nextval, sets the search_path of the database to these schemas, flake_sequences and pg_catalog, and waits until no session is left that began before';

CREATE VIEW flake_unrouted AS
    SELECT DISTINCT e.adrelid::pg_catalog.regclass AS relation, a.attname AS column_name, s.seqrelid::pg_catalog.regclass AS sequence
    FROM pg_catalog.pg_attrdef e
    JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) e.adrelid AND a.attnum OPERATOR(pg_catalog.=) e.adnum
    JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) e.adrelid
    JOIN pg_catalog.pg_depend d ON d.classid OPERATOR(pg_catalog.=) '2604'::pg_catalog.oid AND d.objid OPERATOR(pg_catalog.=) e.oid
        AND d.refclassid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
    JOIN pg_catalog.pg_sequence s ON s.seqrelid OPERATOR(pg_catalog.=) d.refobjid
    WHERE r.relpersistence OPERATOR(pg_catalog.<>) 't'::pg_catalog."char"
        AND pg_catalog.pg_get_expr(e.adbin, e.adrelid) OPERATOR(pg_catalog.~)
            '^(pg_catalog[.])?nextval[(]''([^'']|'''')*''::regclass[)]$'::pg_catalog.text
        AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_depend f WHERE f.classid OPERATOR(pg_catalog.=) '2604'::pg_catalog.oid
                AND f.objid OPERATOR(pg_catalog.=) e.oid AND f.refclassid OPERATOR(pg_catalog.=) '1255'::pg_catalog.oid)
        AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_depend x WHERE x.classid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid
                AND x.objid OPERATOR(pg_catalog.=) e.adrelid AND x.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char");
COMMENT ON VIEW flake_unrouted IS
    'the columns whose default is PostgreSQL''s nextval of a sequence, but for temporary tables and tables of extensions';
COMMENT ON COLUMN flake_unrouted.relation IS 'the table, or a view';
COMMENT ON COLUMN flake_unrouted.column_name IS 'the column';
COMMENT ON COLUMN flake_unrouted.sequence IS 'the sequence';

-- Faults of a search_path, which only the database's owner and superusers may set, and of sequences.
CREATE VIEW flake_sequence_faults AS
    WITH paths(role, function, names) AS (
        SELECT s.role, s.function, ARRAY(
            SELECT CASE
                WHEN pg_catalog.starts_with(m.name[1], '"'::pg_catalog.text) THEN pg_catalog.replace(pg_catalog.substr(
                    m.name[1], 2, pg_catalog.length(m.name[1]) OPERATOR(pg_catalog.-) 2), '""'::pg_catalog.text, '"'::pg_catalog.text)
                ELSE pg_catalog.lower(m.name[1])
            END
            FROM ROWS FROM (pg_catalog.regexp_matches(
                pg_catalog.substr(s.setting, 13), '("(?:[^"]|"")*"|[^",\s]+)'::pg_catalog.text, 'g'::pg_catalog.text))
                WITH ORDINALITY m(name, place) ORDER BY m.place)
        FROM (
            SELECT d.setrole, NULL::pg_catalog.oid, c.setting
            FROM pg_catalog.pg_db_role_setting d CROSS JOIN LATERAL pg_catalog.unnest(d.setconfig) c(setting)
            WHERE d.setdatabase OPERATOR(pg_catalog.=) '0'::pg_catalog.oid OR d.setdatabase OPERATOR(pg_catalog.=) (
                SELECT b.oid FROM pg_catalog.pg_database b WHERE b.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())
            UNION ALL
            SELECT NULL::pg_catalog.oid, p.oid, c.setting
            FROM pg_catalog.pg_proc p CROSS JOIN LATERAL pg_catalog.unnest(p.proconfig) c(setting)
            WHERE p.prosrc OPERATOR(pg_catalog.~) '(next|curr|set)val'::pg_catalog.text
        ) s(role, function, setting)
        WHERE pg_catalog.starts_with(s.setting, 'search_path='::pg_catalog.text)
    ), routed(role, names, place) AS (
        SELECT p.role, p.names, pg_catalog.array_position(p.names, 'pg_catalog'::pg_catalog.text) FROM paths p
        WHERE p.function IS NULL AND pg_catalog.array_position(p.names, 'flake_sequences'::pg_catalog.text)
            OPERATOR(pg_catalog.<) pg_catalog.array_position(p.names, 'pg_catalog'::pg_catalog.text)
    ), before(name, schema, owner, privileges) AS (
        SELECT n.name, s.oid, s.nspowner, s.nspacl FROM (
            SELECT DISTINCT n.name FROM routed r
            CROSS JOIN LATERAL ROWS FROM (pg_catalog.unnest(r.names)) WITH ORDINALITY n(name, place)
            WHERE n.place OPERATOR(pg_catalog.<) r.place::pg_catalog.int8
                AND n.name OPERATOR(pg_catalog.<>) 'flake_sequences'::pg_catalog.text
        ) n LEFT JOIN pg_catalog.pg_namespace s ON s.nspname OPERATOR(pg_catalog.=) n.name::pg_catalog.name
    ), others(role, name) AS (
        SELECT r.oid, pg_catalog.quote_ident(r.rolname) FROM pg_catalog.pg_roles r
        JOIN pg_catalog.pg_database b ON b.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
        WHERE r.rolname OPERATOR(pg_catalog.<>) 'pg_database_owner'::pg_catalog.name
            AND NOT pg_catalog.pg_has_role(r.oid, b.datdba, 'MEMBER'::pg_catalog.text)
        UNION ALL VALUES ('0'::pg_catalog.oid, 'PUBLIC'::pg_catalog.text)
    ), named(class, object, schema, owner, name, arguments) AS (
        SELECT '1259'::pg_catalog.oid, c.oid, c.relnamespace, c.relowner, c.relname, ''::pg_catalog.text FROM pg_catalog.pg_class c
        UNION ALL
        SELECT '1247'::pg_catalog.oid, t.oid, t.typnamespace, t.typowner, t.typname, ''::pg_catalog.text FROM pg_catalog.pg_type t
        WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.typarray OPERATOR(pg_catalog.=) t.oid)
        UNION ALL
        SELECT '2617'::pg_catalog.oid, o.oid, o.oprnamespace, o.oprowner, o.oprname, ARRAY[o.oprleft, o.oprright]::pg_catalog.text
        FROM pg_catalog.pg_operator o
        UNION ALL
        SELECT '3456'::pg_catalog.oid, c.oid, c.collnamespace, c.collowner, c.collname, ''::pg_catalog.text FROM pg_catalog.pg_collation c
        UNION ALL
        SELECT '3602'::pg_catalog.oid, c.oid, c.cfgnamespace, c.cfgowner, c.cfgname, ''::pg_catalog.text FROM pg_catalog.pg_ts_config c
        UNION ALL
        SELECT '3600'::pg_catalog.oid, d.oid, d.dictnamespace, d.dictowner, d.dictname, ''::pg_catalog.text FROM pg_catalog.pg_ts_dict d
    ), adopted(sequence, code) AS (
        -- A range that somebody has opened may still have the code in one of its bounds.
        SELECT s.seqrelid, c.code FROM pg_catalog.pg_sequence s CROSS JOIN LATERAL (
            SELECT pg_catalog.min(b.bound) FROM ROWS FROM (pg_catalog.unnest(ARRAY[
                s.seqstart, s.seqmax, s.seqmin OPERATOR(pg_catalog.+) '1'::pg_catalog.int8])) b(bound)
            WHERE b.bound OPERATOR(pg_catalog.>) '-9007199254740992'::pg_catalog.int8
                AND b.bound OPERATOR(pg_catalog.<=) '-4503599627370496'::pg_catalog.int8
        ) c(code) WHERE c.code IS NOT NULL
    )
    SELECT 'creator'::pg_catalog.text AS kind, pg_catalog.format(
        'Role %s may create objects in schema %I, which a search_path has before pg_catalog.'::pg_catalog.text, o.name, b.name) AS fault
    FROM before b CROSS JOIN LATERAL (
        SELECT b.owner UNION SELECT a.grantee FROM pg_catalog.aclexplode(b.privileges) a
        WHERE a.privilege_type OPERATOR(pg_catalog.=) 'CREATE'::pg_catalog.text
    ) g(role) JOIN others o ON o.role OPERATOR(pg_catalog.=) g.role
    UNION ALL
    SELECT 'creator'::pg_catalog.text,
        'A search_path has "$user" before pg_catalog: a role that may create schemas can give one the name of another role.'::pg_catalog.text
    FROM before b WHERE b.name OPERATOR(pg_catalog.=) '$user'::pg_catalog.text
    UNION ALL
    SELECT 'creator'::pg_catalog.text, pg_catalog.format(
        'A search_path has schema %I before pg_catalog, which does not exist: a role that may create schemas can create it.'::pg_catalog.text,
        b.name)
    FROM before b WHERE b.schema IS NULL AND b.name OPERATOR(pg_catalog.<>) '$user'::pg_catalog.text
    UNION ALL
    -- ALTER TYPE RENAME asks for no privilege on the schema.
    SELECT 'creator'::pg_catalog.text, pg_catalog.format(
        'Role %s owns %s, and may give it the name of a type of PostgreSQL.'::pg_catalog.text,
        o.name, pg_catalog.pg_describe_object('1247'::pg_catalog.oid, t.oid, 0))
    FROM before b JOIN pg_catalog.pg_type t ON t.typnamespace OPERATOR(pg_catalog.=) b.schema
    JOIN others o ON o.role OPERATOR(pg_catalog.=) t.typowner
    LEFT JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) t.typrelid
    WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_type e WHERE e.typarray OPERATOR(pg_catalog.=) t.oid)
        AND (c.relkind IS NULL OR c.relkind OPERATOR(pg_catalog.=) 'c'::pg_catalog."char")
    UNION ALL
    SELECT 'name'::pg_catalog.text, pg_catalog.format(
        'In a search_path that has it before pg_catalog, %s hides one of PostgreSQL.'::pg_catalog.text,
        pg_catalog.pg_describe_object(n.class, n.object, 0))
    FROM (
        SELECT n.class, n.object, n.schema, n.owner FROM named n JOIN named p ON p.class OPERATOR(pg_catalog.=) n.class
            AND p.name OPERATOR(pg_catalog.=) n.name AND p.arguments OPERATOR(pg_catalog.=) n.arguments
        WHERE p.schema OPERATOR(pg_catalog.=) '11'::pg_catalog.oid
        UNION
        -- With its own arguments, or with fewer if the others have defaults.
        SELECT '1255'::pg_catalog.oid, n.oid, n.pronamespace, n.proowner FROM pg_catalog.pg_proc n
        JOIN pg_catalog.pg_proc p ON p.proname OPERATOR(pg_catalog.=) n.proname
            AND p.pronargs OPERATOR(pg_catalog.<=) n.pronargs
            AND p.pronargs OPERATOR(pg_catalog.>=) (n.pronargs OPERATOR(pg_catalog.-) n.pronargdefaults)
            AND pg_catalog.array_to_string((n.proargtypes::pg_catalog.oid[])[0:p.pronargs::pg_catalog.int4 OPERATOR(pg_catalog.-) 1],
                ' '::pg_catalog.text)
                OPERATOR(pg_catalog.=) pg_catalog.array_to_string(p.proargtypes::pg_catalog.oid[], ' '::pg_catalog.text)
        WHERE p.pronamespace OPERATOR(pg_catalog.=) '11'::pg_catalog.oid
        UNION
        -- Of another role's function the name is enough: VARIADIC, defaults of PostgreSQL's own, and names of arguments find it, too.
        SELECT '1255'::pg_catalog.oid, n.oid, n.pronamespace, n.proowner FROM pg_catalog.pg_proc n
        JOIN others o ON o.role OPERATOR(pg_catalog.=) n.proowner
        JOIN pg_catalog.pg_proc p ON p.proname OPERATOR(pg_catalog.=) n.proname AND p.pronamespace OPERATOR(pg_catalog.=) '11'::pg_catalog.oid
    ) n(class, object, schema, owner) JOIN before b ON b.schema OPERATOR(pg_catalog.=) n.schema
    -- An extension may have what is PostgreSQL's since, such as gen_random_uuid of pgcrypto.
    WHERE EXISTS (SELECT FROM others o WHERE o.role OPERATOR(pg_catalog.=) n.owner) OR NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend x WHERE x.classid OPERATOR(pg_catalog.=) n.class
            AND x.objid OPERATOR(pg_catalog.=) n.object AND x.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char")
    UNION ALL
    SELECT 'default'::pg_catalog.text, pg_catalog.format('The default of column %s calls PostgreSQL''s nextval().'::pg_catalog.text,
        pg_catalog.concat(u.relation, '.'::pg_catalog.text, pg_catalog.quote_ident(u.column_name)))
    FROM flake_unrouted u WHERE EXISTS (SELECT FROM routed)
    UNION ALL
    SELECT 'role'::pg_catalog.text, pg_catalog.format('Role %I has a search_path of its own, without flake_sequences.'::pg_catalog.text,
        pg_catalog.pg_get_userbyid(p.role))
    FROM paths p WHERE p.role OPERATOR(pg_catalog.<>) '0'::pg_catalog.oid AND EXISTS (SELECT FROM routed)
        AND NOT EXISTS (SELECT FROM routed r WHERE r.role OPERATOR(pg_catalog.=) p.role)
    UNION ALL
    SELECT 'function'::pg_catalog.text, pg_catalog.format(
        'The %s has a search_path of its own, and finds PostgreSQL''s functions of sequences first.'::pg_catalog.text,
        pg_catalog.pg_describe_object('1255'::pg_catalog.oid, p.function, 0))
    FROM paths p WHERE p.function OPERATOR(pg_catalog.>=) '16384'::pg_catalog.oid
        AND (pg_catalog.array_position(p.names, 'flake_sequences'::pg_catalog.text)
            OPERATOR(pg_catalog.<) pg_catalog.array_position(p.names, 'pg_catalog'::pg_catalog.text)) IS NOT TRUE
    UNION ALL
    -- nextval, currval and setval of PostgreSQL, in the trees of functions and views.
    SELECT 'bound'::pg_catalog.text, pg_catalog.format(
        'The %s is bound to PostgreSQL''s functions of sequences.'::pg_catalog.text, pg_catalog.pg_describe_object(t.class, t.object, 0))
    FROM (
        SELECT '1255'::pg_catalog.oid, p.oid, p.prosqlbody::pg_catalog.text FROM pg_catalog.pg_proc p
        UNION ALL SELECT '2618'::pg_catalog.oid, r.oid, r.ev_action::pg_catalog.text FROM pg_catalog.pg_rewrite r
    ) t(class, object, tree)
    WHERE t.object OPERATOR(pg_catalog.>=) '16384'::pg_catalog.oid
        AND t.tree OPERATOR(pg_catalog.~) ':funcid (1574|1575|1576|1765) '::pg_catalog.text
    UNION ALL
    SELECT 'open'::pg_catalog.text, pg_catalog.format('The %s was adopted, and its range has been changed.'::pg_catalog.text,
        pg_catalog.pg_describe_object('1259'::pg_catalog.oid, s.seqrelid, 0))
    FROM adopted a JOIN pg_catalog.pg_sequence s ON s.seqrelid OPERATOR(pg_catalog.=) a.sequence
    WHERE s.seqstart OPERATOR(pg_catalog.<>) a.code OR s.seqmax OPERATOR(pg_catalog.<>) a.code OR s.seqmin OPERATOR(pg_catalog.<>) (a.code OPERATOR(pg_catalog.-) '1'::pg_catalog.int8)
        OR s.seqincrement OPERATOR(pg_catalog.<=) '0'::pg_catalog.int8 OR s.seqcycle OR s.seqcache OPERATOR(pg_catalog.<>) '1'::pg_catalog.int8
    UNION ALL
    SELECT 'path'::pg_catalog.text, pg_catalog.format(
        'No default uses %s, which was adopted, and no search_path of this database has flake_sequences before pg_catalog.'::pg_catalog.text,
        pg_catalog.pg_describe_object('1259'::pg_catalog.oid, a.sequence, 0))
    FROM adopted a WHERE NOT EXISTS (SELECT FROM routed) AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_depend d WHERE d.classid OPERATOR(pg_catalog.=) '2604'::pg_catalog.oid
            AND d.refclassid OPERATOR(pg_catalog.=) '1259'::pg_catalog.oid AND d.refobjid OPERATOR(pg_catalog.=) a.sequence);
COMMENT ON VIEW flake_sequence_faults IS
    'faults by which a search_path with flake_sequences is not safe, or programs do not get IDs of adopted sequences';
COMMENT ON COLUMN flake_sequence_faults.kind IS
    '"creator", "name" and "default" keep flake_route from setting the search_path; "role", "function", "bound", "open" and "path" lead to errors';
COMMENT ON COLUMN flake_sequence_faults.fault IS 'the fault, as a sentence';

-- Privileges ------------------------------------------------------------------------------------------------------------

-- A role without USAGE on the schema would get PostgreSQL's functions, and no error.
GRANT USAGE ON SCHEMA flake_sequences TO PUBLIC;
GRANT EXECUTE ON FUNCTION
    flake_sequences.nextval(regclass), flake_sequences.currval(regclass), flake_sequences.lastval(),
    flake_sequences.setval(regclass, bigint), flake_sequences.setval(regclass, bigint, boolean),
    flake_sequences.current_schemas(boolean), flake_internal.nextval_in_copy(regclass, internal)
    TO PUBLIC;
GRANT EXECUTE ON PROCEDURE
    flake_adopt(regclass, text, text), flake_adopt_schema(regnamespace, text, text[]), flake_release(regclass, bigint, boolean),
    flake_route(regnamespace[])
    TO PUBLIC;
GRANT SELECT ON flake_candidates, flake_unrouted, flake_sequence_faults TO PUBLIC;
-- setval() and lastval() ask for these. A role without USAGE on the schema reaches the sequence by its OID only, in its own session.
GRANT USAGE, UPDATE ON SEQUENCE flake_internal.flake_last TO PUBLIC;

-- A local setting lasts until the end of the transaction, not of the script, so the role that runs it is set again.
SELECT pg_catalog.set_config('role'::pg_catalog.text, name, true)
FROM pg_catalog.current_setting('flake_script.role'::pg_catalog.text) name
WHERE name OPERATOR(pg_catalog.<>) pg_catalog.current_setting('role'::pg_catalog.text);
