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
                                AND e.adnum::pg_catalog.int4 OPERATOR(pg_catalog.=) f.number))) AS bound
        FROM fed f JOIN open q ON q.sequence OPERATOR(pg_catalog.=) f.sequence
        JOIN pg_catalog.pg_class r ON r.oid OPERATOR(pg_catalog.=) f.relation
        JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) f.relation
            AND a.attnum::pg_catalog.int4 OPERATOR(pg_catalog.=) f.number
        WHERE NOT r.relispartition AND r.relpersistence OPERATOR(pg_catalog.<>) 't'::pg_catalog."char"
            AND pg_catalog.pg_has_role(r.relowner, 'USAGE'::pg_catalog.text)
    )
    SELECT c.relation::pg_catalog.regclass AS relation, c.attname AS "column", c.sequence::pg_catalog.regclass AS sequence, c.kind,
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
            WHEN c.bound IS NOT NULL THEN pg_catalog.format('fed by a sequence of other objects: %s'::pg_catalog.text, c.bound)
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
COMMENT ON COLUMN flake_candidates."column" IS 'the column that the sequence feeds; NULL if none';
COMMENT ON COLUMN flake_candidates.sequence IS 'the sequence';
COMMENT ON COLUMN flake_candidates.kind IS
    '"serial" if the column owns the sequence, "default" if it only uses it, "identity", or "free" if no column uses it';
COMMENT ON COLUMN flake_candidates.obstacle IS
    'what stands in the way, as far as the catalog shows; NULL if nothing does. flake_adopt also looks at the keys';

-- Privileges ------------------------------------------------------------------------------------------------------------

-- A role without USAGE on the schema would get PostgreSQL's functions, and no error.
GRANT USAGE ON SCHEMA flake_sequences TO PUBLIC;
GRANT EXECUTE ON FUNCTION
    flake_sequences.nextval(regclass), flake_sequences.currval(regclass), flake_sequences.lastval(),
    flake_sequences.setval(regclass, bigint), flake_sequences.setval(regclass, bigint, boolean),
    flake_sequences.current_schemas(boolean), flake_internal.nextval_in_copy(regclass, internal)
    TO PUBLIC;
GRANT EXECUTE ON PROCEDURE
    flake_adopt(regclass, text, text), flake_adopt_schema(regnamespace, text, text[]), flake_release(regclass, bigint, boolean)
    TO PUBLIC;
GRANT SELECT ON flake_candidates TO PUBLIC;
-- setval() and lastval() ask for these. A role without USAGE on the schema reaches the sequence by its OID only, in its own session.
GRANT USAGE, UPDATE ON SEQUENCE flake_internal.flake_last TO PUBLIC;

-- A local setting lasts until the end of the transaction, not of the script, so the role that runs it is set again.
SELECT pg_catalog.set_config('role'::pg_catalog.text, name, true)
FROM pg_catalog.current_setting('flake_script.role'::pg_catalog.text) name
WHERE name OPERATOR(pg_catalog.<>) pg_catalog.current_setting('role'::pg_catalog.text);
