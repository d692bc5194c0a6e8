-- Adopted sequences in plain SQL: sequences of an application whose nextval returns IDs. Run it after flake.sql, as the same role:
--
--   psql -v ON_ERROR_STOP=1 -f flake.sql -f sequences.sql
--
-- docs/how-to/managed-tables.md shows how to adopt the sequence of a table.

BEGIN;

-- Bodies keep the functions that were found when they were created: none of a schema where others create functions. The owner of the
-- schema "flake" can replace what they call there.
SET LOCAL search_path = flake, pg_temp;
DO $$
BEGIN
    IF current_user <> (SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'flake') THEN
        RAISE 'schema "flake" belongs to another role' USING ERRCODE = '42501', HINT = 'Run this file as the role that has run flake.sql.';
    END IF;
END $$;

-- The schema holds a function with the name of PostgreSQL's and nothing else, so that it can stand in a search_path.
CREATE SCHEMA flake_sequences;
GRANT USAGE ON SCHEMA flake_sequences TO PUBLIC;

-- PostgreSQL's lastval() returns the last value of the sequence that was used last. nextval uses this sequence and sets it to the ID.
CREATE UNLOGGED SEQUENCE flake.last_value MINVALUE -9223372036854775808 CYCLE;

-- An adopted sequence counts no more. Its start is the negative code of a layout, and its increment lets no other number follow: so
-- PostgreSQL's own nextval() raises an error (2200H), also after a dump, a copy or a new name. The session's memory of its last value,
-- which currval() returns, is PostgreSQL's own.
CREATE FUNCTION flake.code(layout text) RETURNS bigint IMMUTABLE STRICT PARALLEL SAFE LANGUAGE sql
    RETURN 4503599627370496 | ('x' || left(encode(sha256(convert_to(layout, 'UTF8')), 'hex'), 13))::bit(52)::bigint;

CREATE FUNCTION flake.layout_of(code bigint) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE sql
    RETURN (SELECT name FROM unnest(flake.names()) name WHERE flake.code(name) = code);

-- The layout of an adopted sequence; NULL if it counts.
CREATE FUNCTION flake.adopted(sequence oid) RETURNS text STABLE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    s pg_sequence;
    layout text;
BEGIN
    SELECT * INTO s FROM pg_sequence WHERE seqrelid = sequence;
    IF s.seqstart > -4503599627370496 OR s.seqstart <= -9007199254740992 THEN
        RETURN NULL;
    END IF;
    layout := flake.layout_of(-s.seqstart);
    IF layout IS NOT NULL AND (s.seqincrement <> -9223372036854775808 OR s.seqmin <> s.seqstart - 1
            OR s.seqmax <> 9223372036854775807 OR s.seqcycle) THEN
        RAISE 'sequence "%" was adopted, and has been changed', sequence::regclass USING ERRCODE = '55000',
            DETAIL = 'Its values are IDs. As it is now, PostgreSQL''s nextval() would return small numbers.',
            HINT = format('Close it again: ALTER SEQUENCE %s INCREMENT -9223372036854775808 MINVALUE %s MAXVALUE 9223372036854775807 NO CYCLE.',
                sequence::regclass, s.seqstart - 1);
    END IF;
    RETURN layout;
END $$;

-- Whether the caller may use the sequence, or insert into the column that owns it, as for an identity.
CREATE FUNCTION flake.may_use(sequence oid) RETURNS boolean STABLE SET search_path = pg_catalog, pg_temp LANGUAGE sql
    BEGIN ATOMIC
        SELECT has_sequence_privilege(sequence, 'USAGE, UPDATE') OR EXISTS (
            SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = sequence AND d.refclassid = 'pg_class'::regclass
                AND d.refobjsubid > 0 AND d.deptype = 'a' AND has_column_privilege(d.refobjid, d.refobjsubid::smallint, 'INSERT'));
    END;

-- The caller may not set the sequences, and the function cannot tell which role calls it. So any role can change the last value of an
-- adopted sequence, from which nothing follows: with the increment, PostgreSQL's nextval() raises an error above the range's end, -2^53,
-- whichever value below 2^63 - 2^53 the sequence has. Returns false, and sets nothing, if the sequence is not adopted.
CREATE FUNCTION flake.remember(sequence oid, id bigint) RETURNS boolean VOLATILE SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
BEGIN
    -- This locks the sequence as nextval() does, and waits for a session that releases it.
    PERFORM pg_sequence_last_value(sequence);
    -- The parameters are those of now. The snapshot may be from before a release.
    IF flake.adopted(sequence) IS NULL OR (SELECT start_value FROM pg_sequence_parameters(sequence)) > -4503599627370496 THEN
        RETURN false;
    END IF;
    IF id >= 9214364837600034816 THEN
        RAISE 'ID % is too large for an adopted sequence', id USING ERRCODE = '2200H',
            DETAIL = 'From 9214364837600034816 on, PostgreSQL''s nextval() would return small numbers after it.',
            HINT = 'Release the sequence and adopt it with a layout whose epoch is later.';
    END IF;
    PERFORM nextval('flake.last_value'), setval('flake.last_value', id), setval(sequence::regclass, id);
    RETURN true;
END $$;

DO $do$
BEGIN
    EXECUTE format($f$
        CREATE FUNCTION flake_sequences.nextval(regclass) RETURNS bigint VOLATILE STRICT PARALLEL UNSAFE LANGUAGE plpgsql AS $b$
        DECLARE
            layout text := flake.adopted($1);
            id bigint;
        BEGIN
            IF layout IS NULL THEN
                RETURN pg_catalog.nextval($1);
            END IF;
            IF NOT flake.may_use($1) THEN
                RAISE 'permission denied for sequence %%', $1 USING ERRCODE = '42501';
            END IF;
            id := %s.flake_next(layout);
            -- A sequence that was released meanwhile counts on.
            RETURN CASE WHEN flake.remember($1, id) THEN id ELSE pg_catalog.nextval($1) END;
        END $b$$f$, (SELECT n.nspname::regnamespace FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
                     WHERE p.oid = flake.maker()));
END $do$;

-- The key of a table whose sequence can be adopted or released: its column, its greatest value, and its sequence. Raises an error
-- unless the caller owns the table: a query of another's table runs functions of its owner.
CREATE FUNCTION flake.sequence_of(relation regclass, OUT name name, OUT top bigint, OUT sequence regclass, OUT is_identity boolean)
    SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    fault text;
    expression text;
BEGIN
    SELECT a.attname, pg_get_serial_sequence(c.oid::regclass::text, a.attname), a.attidentity <> '', pg_get_expr(d.adbin, d.adrelid), CASE
            WHEN pg_get_userbyid(c.relowner) <> current_user THEN 'Another role owns it.'
            WHEN c.relkind NOT IN ('r', 'p') OR c.relispartition OR c.relpersistence = 't' THEN 'It is not a table of its own.'
            WHEN row_security_active(c.oid) THEN 'Its row security hides rows from its owner.'
            WHEN EXISTS (SELECT FROM pg_inherits WHERE inhparent = c.oid) AND c.relkind = 'r' THEN 'Other tables inherit from it.'
            WHEN a.attname IS NULL THEN 'It has no primary key of one column.'
            WHEN a.atttypid <> 'bigint'::regtype THEN 'Its key is not a bigint.'
            WHEN a.attidentity = 'a' THEN 'Its key is GENERATED ALWAYS; with a default, clients could choose keys.' END
        INTO name, sequence, is_identity, expression, fault
        FROM pg_class c LEFT JOIN pg_constraint k ON k.conrelid = c.oid AND k.contype = 'p' AND cardinality(k.conkey) = 1
            LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.conkey[1]
            LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
        WHERE c.oid = relation;
    -- Names of schemas come with each relation, because none is in this function's path.
    fault := COALESCE(fault, CASE WHEN sequence IS NULL THEN 'Its key owns no sequence.'
        WHEN NOT is_identity AND expression !~ '^(\w+\.)?nextval\(''([^'']|'''')*''::regclass\)$' THEN 'The default of its key is another expression.'
        WHEN NOT is_identity AND NOT EXISTS (
            SELECT FROM pg_depend u JOIN pg_attrdef e ON e.oid = u.objid JOIN pg_attribute a ON a.attrelid = e.adrelid AND a.attnum = e.adnum
            WHERE u.classid = 'pg_attrdef'::regclass AND u.refclassid = 'pg_class'::regclass AND u.refobjid = sequence
                AND a.attrelid = relation AND a.attname = name)
        THEN 'The default of its key uses another sequence than the one that the key owns.' END);
    IF fault IS NOT NULL THEN
        RAISE 'cannot adopt or release the sequence of %', relation USING ERRCODE = '55000', DETAIL = fault,
            HINT = 'Call it as the owner of a table whose primary key is a bigint with a sequence.';
    END IF;
    EXECUTE format('SELECT max(%I) FROM %s', name, relation) INTO top;
END $$;

-- Gives a sequence that was made in the place of another the comment and the privileges of that, except for those of one role.
CREATE FUNCTION flake.inherit(place text, comment text, acl aclitem[], omitted oid DEFAULT NULL) RETURNS void SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    granted record;
BEGIN
    EXECUTE format('COMMENT ON SEQUENCE %s IS %L', place, comment);
    -- Default privileges may have given it others than the old one had.
    FOR granted IN SELECT DISTINCT CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee
        FROM pg_class c, aclexplode(COALESCE(c.relacl, acldefault('s', c.relowner))) a
        WHERE c.oid = place::regclass AND (acl IS NOT NULL OR a.grantee <> c.relowner)
    LOOP
        EXECUTE format('REVOKE ALL ON SEQUENCE %s FROM %s', place, granted.grantee);
    END LOOP;
    FOR granted IN SELECT a.privilege_type, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE a.grantee::regrole::text END AS grantee,
            CASE WHEN a.is_grantable THEN 'WITH GRANT OPTION' END AS option
        FROM pg_class c, aclexplode(acl) a WHERE c.oid = place::regclass AND (a.grantee = c.relowner OR a.grantee IS DISTINCT FROM omitted)
    LOOP
        EXECUTE format('GRANT %s ON SEQUENCE %s TO %s %s', granted.privilege_type, place, granted.grantee, granted.option);
    END LOOP;
END $$;

-- Waits for the table at most as long as lock_timeout says, or two seconds, because others wait behind it.
CREATE FUNCTION flake.lock(relation regclass) RETURNS void SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    name text := relation;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        RAISE 'cannot adopt or release the sequence of %', relation USING ERRCODE = '25000',
            DETAIL = 'A transaction of this isolation level does not see keys that were committed after it began.',
            HINT = 'Use READ COMMITTED.';
    END IF;
    IF current_setting('lock_timeout') = '0' THEN
        PERFORM set_config('lock_timeout', '2s', true);
    END IF;
    EXECUTE format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', name);
    -- The statement may have waited while another table got the name.
    IF relation::text <> name THEN
        RAISE 'cannot adopt or release the sequence of %', name USING ERRCODE = '55000', DETAIL = 'The table was renamed meanwhile.',
            HINT = 'Call it again.';
    END IF;
END $$;

CREATE FUNCTION flake.first_id(layout text) RETURNS bigint VOLATILE SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    id bigint;
BEGIN
    EXECUTE format('SELECT %s.flake_next(%L)', (SELECT pronamespace::regnamespace FROM pg_proc WHERE oid = flake.maker()), layout) INTO id;
    RETURN id;
END $$;

CREATE PROCEDURE flake.flake_adopt(relation regclass, layout text, INOUT undo text DEFAULT NULL)
    SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    l flake.layout := flake.named(layout);
    code bigint := flake.code(layout);
    key record;
    place text;
    increment bigint;
    next bigint;
    comment text;
    acl aclitem[];
BEGIN
    PERFORM flake.lock(relation);
    key := flake.sequence_of(relation);
    place := key.sequence;
    -- This locks the sequence: otherwise a program could call nextval after its place was read, and the undo would give that number again.
    EXECUTE format('ALTER SEQUENCE %s CACHE 1', place);
    EXECUTE format('SELECT last_value + is_called::int FROM %s', place) INTO next;
    SELECT seqincrement, obj_description(seqrelid, 'pg_class'), relacl
        INTO increment, comment, acl FROM pg_sequence JOIN pg_class ON oid = seqrelid WHERE seqrelid = key.sequence;
    IF NOT l.generates OR NOT l.increasing OR increment <> 1 OR flake.adopted(key.sequence) IS NOT NULL THEN
        RAISE 'cannot adopt the sequence of %', relation USING ERRCODE = '55000',
            DETAIL = 'The layout makes no IDs that increase, or the sequence was adopted or does not count by 1.',
            HINT = 'The view flake_layouts shows which layouts increase. Release a sequence before another layout adopts it.';
    ELSIF key.top >= flake.first_id(layout) THEN
        RAISE 'cannot adopt the sequence of %', relation USING ERRCODE = '55000',
            DETAIL = format('Its greatest key is %s, and new IDs would be below it.', key.top),
            HINT = 'Choose a layout with an earlier epoch, or call flake_start_above().';
    END IF;
    IF key.is_identity THEN
        EXECUTE format('ALTER TABLE %s ALTER %I DROP IDENTITY', relation, key.name);
        EXECUTE format('CREATE SEQUENCE %s OWNED BY %s.%I', place, relation, key.name);
    END IF;
    EXECUTE format('ALTER SEQUENCE %s AS bigint INCREMENT -9223372036854775808 MINVALUE %s MAXVALUE 9223372036854775807
        START %s RESTART NO CYCLE CACHE 1', place, -code - 1, -code);
    PERFORM setval(place::regclass, -code);
    IF key.is_identity THEN
        PERFORM flake.inherit(place, comment, acl);
    END IF;
    -- The function that sets it runs as the owner of this edition.
    EXECUTE format('GRANT USAGE, UPDATE ON SEQUENCE %s TO %s', place,
        (SELECT proowner::regrole FROM pg_proc WHERE oid = 'flake.remember'::regproc));
    EXECUTE format('ALTER TABLE %s ALTER %I SET DEFAULT flake_sequences.nextval(%L::regclass)', relation, key.name, place);
    -- The name has its schema, because none is in this procedure's path.
    undo := format('CALL flake_release(%L, next => %s, as_identity => %s)', relation, next, key.is_identity::text);
END $$;

CREATE PROCEDURE flake.flake_release(relation regclass, next bigint DEFAULT NULL, as_identity boolean DEFAULT false)
    SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
DECLARE
    key record;
    place text;
    comment text;
    acl aclitem[];
BEGIN
    PERFORM flake.lock(relation);
    key := flake.sequence_of(relation);
    place := key.sequence;
    IF flake.adopted(key.sequence) IS NULL THEN
        RAISE 'sequence "%" was not adopted', place USING ERRCODE = '55000', DETAIL = 'Its start is not the code of a layout.',
            HINT = 'Only a sequence that flake_adopt has adopted can be released.';
    END IF;
    -- This locks the sequence, so no session takes an ID from now on. The IDs that sessions have taken are below one that is made now.
    EXECUTE format('ALTER SEQUENCE %s CACHE 1', place);
    next := COALESCE(next, GREATEST(key.top, flake.first_id(flake.adopted(key.sequence))) + 1);
    IF as_identity THEN
        SELECT obj_description(oid, 'pg_class'), relacl INTO comment, acl FROM pg_class WHERE oid = key.sequence;
        EXECUTE format('ALTER TABLE %s ALTER %I DROP DEFAULT', relation, key.name);
        EXECUTE format('DROP SEQUENCE %s', place);
        EXECUTE format('ALTER TABLE %s ALTER %I ADD GENERATED BY DEFAULT AS IDENTITY (SEQUENCE NAME %s MINVALUE %s START %s RESTART WITH %s)',
            relation, key.name, place, LEAST(next, 1), LEAST(next, 1), next);
        -- flake_adopt has granted what flake.remember needs.
        PERFORM flake.inherit(place, comment, acl, (SELECT proowner FROM pg_proc WHERE oid = 'flake.remember'::regproc));
    ELSE
        EXECUTE format('ALTER SEQUENCE %s INCREMENT 1 MINVALUE %s START %s RESTART WITH %s', place, LEAST(next, 1), LEAST(next, 1), next);
        EXECUTE format('ALTER TABLE %s ALTER %I SET DEFAULT nextval(%L::regclass)', relation, key.name, place);
    END IF;
END $$;

GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA flake, flake_sequences TO PUBLIC;
-- lastval() asks for it.
REVOKE ALL ON SEQUENCE flake.last_value FROM PUBLIC;
GRANT USAGE ON SEQUENCE flake.last_value TO PUBLIC;

DO $$
DECLARE
    home text := (SELECT pronamespace::regnamespace FROM pg_proc WHERE oid = flake.maker());
BEGIN
    EXECUTE format('ALTER PROCEDURE flake.flake_adopt SET SCHEMA %s', home);
    EXECUTE format('ALTER PROCEDURE flake.flake_release SET SCHEMA %s', home);
END $$;

COMMIT;
