-- The objects of the extension.
--
-- C symbols are permanent: installations keep referring to them after an upgrade of the library. The rule for them: a
-- function's C symbol has the function's name; where a name is overloaded, the other functions append what is different
-- (flake_next_tagged, sno_next_in_partition). In flake_plan, a symbol begins with the kind of ID (flake_plan_since,
-- sno_plan_since). A function that COPY calls in place of another one has that one's symbol. How the library makes a
-- function does not show in its symbol. A function that usually raises no error and is called once per row is made by
-- entry_point!, which answers without a guard against errors and leaves the rest to a function made by #[pg_extern]; all
-- others are made by #[pg_extern] and get their symbols by c_symbol!. See src/postgres/entry_point.rs.
\echo Use "CREATE EXTENSION flake" to load this file. \quit

-- Privileges: PUBLIC may execute, select and use everything (see the end of each file). Functions that are not for every
-- role check the caller's role themselves. So GRANT and REVOKE on all tables, functions or sequences of a schema
-- succeed, whoever owns the schema, and give nobody more. Nothing is granted to @extowner@: the owner may change.

-- The objects belong to the superuser that cannot be dropped, whichever superuser creates the extension (for another role
-- PostgreSQL does the same) after a login that may become it: PostgreSQL 15 and 16 dump what a dropped role had granted, and
-- the dump does not restore. The current role is noted, and restored at the end of this script. Every type is given and every
-- name is qualified here: an operator or a function that the owner of the schema has made would be called by a superuser if
-- it fitted better.
SELECT pg_catalog.set_config('flake_script.role'::pg_catalog.text, pg_catalog.current_setting('role'::pg_catalog.text), true);
SELECT pg_catalog.set_config('role'::pg_catalog.text, rolname::pg_catalog.text, true) FROM pg_catalog.pg_roles
WHERE oid OPERATOR(pg_catalog.=) '10'::pg_catalog.oid AND rolname OPERATOR(pg_catalog.<>) current_user
    AND pg_catalog.pg_has_role(session_user, oid, 'MEMBER'::pg_catalog.text);

-- Objects that roles do not use -----------------------------------------------------------------------------------------

-- CREATE RULE and CREATE TRIGGER wait for a strong lock before PostgreSQL looks at who owns the relation. A role could so keep
-- sessions from making IDs, which lock flake_mark. It cannot in a schema that it may not use.
CREATE SCHEMA flake_internal;
REVOKE ALL ON SCHEMA flake_internal FROM PUBLIC;
COMMENT ON SCHEMA flake_internal IS 'objects of flake that no role uses by name';

-- Plans, and the queries that are sent to other servers, contain calls of these functions, so each role may use the schema.
CREATE SCHEMA flake_plan;
GRANT USAGE ON SCHEMA flake_plan TO PUBLIC;
COMMENT ON SCHEMA flake_plan IS 'functions that the planner puts in the place of filters by time';

-- Making IDs -------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_internal.flake_next_support(internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_next_support';
COMMENT ON FUNCTION flake_internal.flake_next_support(internal) IS
    'planner support for flake_next and sno_next: what COPY calls for a default with them';

CREATE FUNCTION flake_next(layout text) RETURNS bigint
    VOLATILE STRICT PARALLEL RESTRICTED SUPPORT flake_internal.flake_next_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_next';
COMMENT ON FUNCTION flake_next(text) IS
    'returns a new unique ID of this layout; flake_layouts.increasing says whether the IDs of a statement increase';

CREATE FUNCTION flake_next(layout text, tag integer) RETURNS bigint
    VOLATILE STRICT PARALLEL RESTRICTED SUPPORT flake_internal.flake_next_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_next_tagged';
COMMENT ON FUNCTION flake_next(text, integer) IS
    'returns a new unique ID with this number in the layout''s tag field; IDs are unique even without their tags';

-- COPY inserts rows one by one if a default is volatile. These functions do the same as flake_next, but they are declared STABLE,
-- which is wrong in any other statement: one ID could be given to many rows. No caller has a value for the last argument.
CREATE FUNCTION flake_internal.flake_next_in_copy(layout text, call internal) RETURNS bigint
    STABLE STRICT PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_next';
COMMENT ON FUNCTION flake_internal.flake_next_in_copy(text, internal) IS
    'what COPY calls for a default with flake_next(text)';

CREATE FUNCTION flake_internal.flake_next_in_copy(layout text, tag integer, call internal) RETURNS bigint
    STABLE STRICT PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_next_tagged';
COMMENT ON FUNCTION flake_internal.flake_next_in_copy(text, integer, internal) IS
    'what COPY calls for a default with flake_next(text, integer)';

CREATE FUNCTION flake_batch(layout text, count integer) RETURNS SETOF bigint
    VOLATILE STRICT PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_batch';
COMMENT ON FUNCTION flake_batch(text, integer) IS
    'returns "count" new unique IDs of this layout; rows that flake_take is to find are inserted in the same transaction';

-- Existing tables --------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_convert(
    relation regclass, layout text, force boolean DEFAULT false, OUT first_id bigint, OUT undo text) RETURNS record
    VOLATILE PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_convert';
COMMENT ON FUNCTION flake_convert(regclass, text, boolean) IS
    'gives the bigint key of a table a default that makes IDs; returns a lower bound for new IDs, and the statement that undoes it';

-- Reading IDs ------------------------------------------------------------------------------------------------------------

CREATE TYPE flake_parts AS (
    layout     text,
    created_at timestamptz,
    worker     bigint,
    sequence   bigint,
    fields     jsonb
);
COMMENT ON TYPE flake_parts IS 'the parts of an ID';
COMMENT ON COLUMN flake_parts.layout IS 'the layout by which the ID was read';
COMMENT ON COLUMN flake_parts.created_at IS 'start of the tick in which the ID was made';
COMMENT ON COLUMN flake_parts.worker IS 'the whole worker number; if several fields hold it, the coarsest comes first';
COMMENT ON COLUMN flake_parts.sequence IS 'the sequence number';
COMMENT ON COLUMN flake_parts.fields IS 'every named field with its number; the timestamp counts ticks since the epoch';

CREATE FUNCTION flake_decode(id bigint, layout text DEFAULT 'twitter') RETURNS flake_parts
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_decode';
COMMENT ON FUNCTION flake_decode(bigint, text) IS
    'returns the parts of an ID: its layout, time, worker, sequence number, and every field; an ID of twitter, if no layout is given';

CREATE FUNCTION flake_internal.flake_during_support(internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_during_support';
COMMENT ON FUNCTION flake_internal.flake_during_support(internal) IS 'planner support for flake_during and flake_timestamp: the range of IDs';

CREATE FUNCTION flake_timestamp(id bigint, layout text DEFAULT 'twitter') RETURNS timestamptz
    IMMUTABLE STRICT PARALLEL SAFE SUPPORT flake_internal.flake_during_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_timestamp';
COMMENT ON FUNCTION flake_timestamp(bigint, text) IS
    'returns the start of the tick in which the ID was made; the planner turns comparisons of it into ranges of IDs; an ID of twitter, if no layout is given';

CREATE FUNCTION flake_explain(id bigint, layout text DEFAULT 'twitter') RETURNS text
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_explain';
COMMENT ON FUNCTION flake_explain(bigint, text) IS
    'draws the bits of an ID with the name, width and number of each field; later versions may draw it differently; an ID of twitter, if no layout is given';

CREATE FUNCTION flake_node(id bigint, layout text DEFAULT 'twitter') RETURNS integer
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_node';
COMMENT ON FUNCTION flake_node(bigint, text) IS
    'returns the number of the node that has the ID''s worker under the flake.node_count in force, or NULL if no node has it; an ID of twitter, if no layout is given';

CREATE FUNCTION flake_make(at timestamptz, fields jsonb, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_make';
COMMENT ON FUNCTION flake_make(timestamptz, jsonb, text) IS
    'returns the ID of an instant with these numbers in its fields; omitted fields are 0; the inverse of flake_decode; an ID of twitter, if no layout is given';

-- Text -------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_to_text(id bigint, layout text DEFAULT 'twitter') RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_to_text';
COMMENT ON FUNCTION flake_to_text(bigint, text) IS 'writes an ID in the layout''s text form; an ID of twitter, if no layout is given';

CREATE FUNCTION flake_from_text(text text, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_from_text';
COMMENT ON FUNCTION flake_from_text(text, text) IS
    'reads an ID in the layout''s text form; the inverse of flake_to_text; an ID of twitter, if no layout is given';

-- IDs of an instant ------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_min(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_min';
COMMENT ON FUNCTION flake_min(timestamptz, text) IS 'returns the smallest ID of the tick that holds the instant; an ID of twitter, if no layout is given';

CREATE FUNCTION flake_max(at timestamptz, layout text DEFAULT 'twitter') RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_max';
COMMENT ON FUNCTION flake_max(timestamptz, text) IS 'returns the largest ID of the tick that holds the instant; an ID of twitter, if no layout is given';

-- IDs of a span of time --------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_during(id bigint, span tstzrange, layout text DEFAULT 'twitter') RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE SUPPORT flake_internal.flake_during_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_during';
COMMENT ON FUNCTION flake_during(bigint, tstzrange, text) IS
    'returns whether the ID''s tick overlaps the span; the planner turns it into a range of IDs, for indexes and partition pruning; an ID of twitter, if no layout is given';

-- For the planner -------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_plan.first(span tstzrange, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_first';
COMMENT ON FUNCTION flake_plan.first(tstzrange, text) IS
    'the smallest ID whose tick overlaps the span; the largest bigint if there is none';

CREATE FUNCTION flake_plan.last(span tstzrange, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_last';
COMMENT ON FUNCTION flake_plan.last(tstzrange, text) IS
    'the largest ID whose tick overlaps the span; the smallest bigint if there is none';

CREATE FUNCTION flake_plan.since(at timestamptz, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_since';
COMMENT ON FUNCTION flake_plan.since(timestamptz, text) IS
    'the smallest ID for which flake_timestamp(id) >= at; NULL if there is none';

CREATE FUNCTION flake_plan.after(at timestamptz, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_after';
COMMENT ON FUNCTION flake_plan.after(timestamptz, text) IS
    'the smallest ID for which flake_timestamp(id) > at; NULL if there is none';

CREATE FUNCTION flake_plan.until(at timestamptz, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_until';
COMMENT ON FUNCTION flake_plan.until(timestamptz, text) IS
    'the largest ID for which flake_timestamp(id) <= at; NULL if there is none';

CREATE FUNCTION flake_plan.before(at timestamptz, layout text) RETURNS bigint
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_before';
COMMENT ON FUNCTION flake_plan.before(timestamptz, text) IS
    'the largest ID for which flake_timestamp(id) < at; NULL if there is none';

CREATE FUNCTION flake_plan.instant(at timestamp) RETURNS timestamptz
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_instant';
COMMENT ON FUNCTION flake_plan.instant(timestamp) IS
    'the instant of a time in the session''s time zone; an infinite instant where a cast raises an error';

CREATE FUNCTION flake_plan.instant(at date) RETURNS timestamptz
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_plan_instant_of_date';
COMMENT ON FUNCTION flake_plan.instant(date) IS
    'the instant at which a day begins in the session''s time zone; an infinite instant where a cast raises an error';

-- Custom layouts ---------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_internal.flake_layout_validator(options text[], catalog oid) RETURNS void
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_layout_validator';
COMMENT ON FUNCTION flake_internal.flake_layout_validator(text[], oid) IS
    'checks the definitions of custom layouts; for the owners of the extension and of the database';

-- Custom layouts are foreign servers of this wrapper, because pg_dump writes those before the tables whose generated
-- columns need them.
CREATE FOREIGN DATA WRAPPER flake_layout VALIDATOR flake_internal.flake_layout_validator;
COMMENT ON FOREIGN DATA WRAPPER flake_layout IS 'the custom layouts of flake, each a foreign server; see flake_create_layout';

CREATE FUNCTION flake_create_layout(name text, definition jsonb) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_create_layout';
COMMENT ON FUNCTION flake_create_layout(text, jsonb) IS
    'creates a custom layout, which cannot be changed afterwards; for the owners of the extension and of the database';

CREATE FUNCTION flake_drop_layout(name text) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_drop_layout';
COMMENT ON FUNCTION flake_drop_layout(text) IS
    'drops a custom layout that no object names; functions can then no longer read its IDs; for the owners of the extension and of the database';

-- Public IDs -------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_seal(id bigint, key text) RETURNS text
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_seal';
COMMENT ON FUNCTION flake_seal(bigint, text) IS
    'returns the public ID of an ID: the name of the key, an underscore, and 26 letters and digits that reveal nothing about the ID';

CREATE FUNCTION flake_seal_uuid(id bigint, key text) RETURNS uuid
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_seal_uuid';
COMMENT ON FUNCTION flake_seal_uuid(bigint, text) IS 'returns the public ID of an ID as a uuid of version 8';

CREATE FUNCTION flake_unseal(sealed text, key text) RETURNS bigint
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_unseal';
COMMENT ON FUNCTION flake_unseal(text, text) IS
    'returns the ID of a public ID, also of the text of its uuid; NULL if it was not sealed with this key';

CREATE FUNCTION flake_unseal(sealed uuid, key text) RETURNS bigint
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_unseal_uuid';
COMMENT ON FUNCTION flake_unseal(uuid, text) IS 'returns the ID of a public ID; NULL if it was not sealed with this key';

CREATE FUNCTION flake_unseal_or_error(sealed text, key text) RETURNS bigint
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_unseal_or_error';
COMMENT ON FUNCTION flake_unseal_or_error(text, text) IS
    'returns the ID of a public ID, for statements that write; raises an error if it was not sealed with this key';

CREATE FUNCTION flake_unseal_or_error(sealed uuid, key text) RETURNS bigint
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_unseal_or_error_uuid';
COMMENT ON FUNCTION flake_unseal_or_error(uuid, text) IS
    'returns the ID of a public ID, for statements that write; raises an error if it was not sealed with this key';

CREATE FUNCTION flake_internal.flake_key_validator(options text[], catalog oid) RETURNS void
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_key_validator';
COMMENT ON FUNCTION flake_internal.flake_key_validator(text[], oid) IS
    'checks the options of keys and of their user mappings; for the owners of the extension and of the database';

-- Keys are foreign servers of this wrapper, and their secrets options of PUBLIC's user mapping, which PostgreSQL hides.
CREATE FOREIGN DATA WRAPPER flake_key VALIDATOR flake_internal.flake_key_validator;
COMMENT ON FOREIGN DATA WRAPPER flake_key IS 'the keys of public IDs, each a foreign server; see flake_create_key';

CREATE FUNCTION flake_create_key(name text, layout text) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_create_key';
COMMENT ON FUNCTION flake_create_key(text, text) IS
    'creates a key with a random secret for public IDs of a layout, which begin with the name of the key; for the owners of the extension and of the database';

CREATE FUNCTION flake_import_key(name text, layout text, secret bytea, force boolean DEFAULT false) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_import_key';
COMMENT ON FUNCTION flake_import_key(text, text, bytea, boolean) IS
    'creates a key with this secret of 16 bytes for public IDs of a layout, or gives a key the secret that it lacks; by force, replaces the secrets of a key; for the owners of the extension and of the database';

CREATE FUNCTION flake_rotate_key(name text) RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_rotate_key';
COMMENT ON FUNCTION flake_rotate_key(text) IS
    'gives a key another secret for IDs made later than a minute from now, and returns that instant; older IDs keep their public IDs; for the owners of the extension and of the database';

CREATE FUNCTION flake_rotate_key(name text, from_id bigint, force boolean DEFAULT false) RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_rotate_key_from';
COMMENT ON FUNCTION flake_rotate_key(text, bigint, boolean) IS
    'gives a key another secret for this ID and all greater ones, and returns the time of this ID, which must lie within the next day unless forced; for the owners of the extension and of the database';

CREATE FUNCTION flake_drop_key(name text) RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_drop_key';
COMMENT ON FUNCTION flake_drop_key(text) IS
    'drops a key that no object names; functions can then no longer read its public IDs; for the owners of the extension and of the database';

CREATE FUNCTION flake_internal.flake_keys(
    OUT name text, OUT layout text, OUT version integer, OUT from_id bigint, OUT from_time timestamptz, OUT fingerprint text,
    OUT stored boolean
) RETURNS SETOF record
    STABLE STRICT PARALLEL RESTRICTED ROWS 10
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_keys';
COMMENT ON FUNCTION flake_internal.flake_keys() IS 'the rows of the view flake_keys, with the first ID of each range and its time';

CREATE VIEW flake_keys AS
    SELECT name, layout, version,
           pg_catalog.int8range(from_id, pg_catalog.lead(from_id) OVER (PARTITION BY name ORDER BY version)) AS ids,
           pg_catalog.tstzrange(from_time, pg_catalog.lead(from_time) OVER (PARTITION BY name ORDER BY version)) AS times,
           fingerprint, stored
    FROM flake_internal.flake_keys();
COMMENT ON VIEW flake_keys IS 'the keys of public IDs, and which IDs each of their secrets seals';
COMMENT ON COLUMN flake_keys.name IS 'name of the key, as functions take it';
COMMENT ON COLUMN flake_keys.layout IS 'the layout of the IDs that it seals';
COMMENT ON COLUMN flake_keys.version IS 'number of the secret: 1, and one more for each rotation';
COMMENT ON COLUMN flake_keys.ids IS 'the IDs that this secret seals';
COMMENT ON COLUMN flake_keys.times IS 'the times of these IDs, by the layout';
COMMENT ON COLUMN flake_keys.fingerprint IS 'fingerprint of the secret, by which you can compare secrets';
COMMENT ON COLUMN flake_keys.stored IS 'whether the secret is stored; a dump by a role that may not read it does not contain it';

-- Views ------------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_internal.flake_layouts(
    OUT name text, OUT epoch timestamptz, OUT tick interval, OUT bits integer, OUT fields jsonb,
    OUT ids_per_tick numeric, OUT ends_at timestamptz, OUT sortable_until timestamptz, OUT increasing boolean,
    OUT text_form text, OUT generates boolean, OUT source text, OUT ids_per_second numeric
) RETURNS SETOF record
    STABLE STRICT PARALLEL SAFE ROWS 24
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_layouts';
COMMENT ON FUNCTION flake_internal.flake_layouts() IS 'the rows of the view flake_layouts';

CREATE VIEW flake_layouts AS
    SELECT name, epoch, tick, bits, fields, ids_per_tick, ends_at, sortable_until, increasing, text_form,
           generates, source, ids_per_second
    FROM flake_internal.flake_layouts();
COMMENT ON VIEW flake_layouts IS 'the layouts by which IDs can be made and read';
COMMENT ON COLUMN flake_layouts.name IS 'name of the layout, as functions take it';
COMMENT ON COLUMN flake_layouts.epoch IS 'start of tick 0';
COMMENT ON COLUMN flake_layouts.tick IS 'unit of the timestamp';
COMMENT ON COLUMN flake_layouts.bits IS 'how many of the 64 bits the fields take; those above are zero';
COMMENT ON COLUMN flake_layouts.fields IS
    'fields from the most significant bit down, as in a definition';
COMMENT ON COLUMN flake_layouts.ids_per_tick IS 'how many IDs all workers together can make in a tick';
COMMENT ON COLUMN flake_layouts.ends_at IS 'start of the last tick';
COMMENT ON COLUMN flake_layouts.sortable_until IS
    'start of the last tick up to which the order of bigint is the order of time; NULL if it never is';
COMMENT ON COLUMN flake_layouts.increasing IS
    'whether the IDs that a session makes in a statement increase, up to sortable_until';
COMMENT ON COLUMN flake_layouts.text_form IS 'how flake_to_text writes IDs';
COMMENT ON COLUMN flake_layouts.generates IS 'whether flake makes IDs of this layout; it reads some formats only';
COMMENT ON COLUMN flake_layouts.source IS 'where the layout comes from';
COMMENT ON COLUMN flake_layouts.ids_per_second IS
    'how many IDs all sessions of this server together can make in a second; NULL if they make none';

-- The whole server -------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_internal.flake_stat(
    OUT ledger text, OUT node_id integer, OUT node_count integer, OUT sessions integer, OUT issued bigint,
    OUT overflow_waits bigint, OUT clock_changes bigint, OUT longest_wait interval,
    OUT mark timestamptz, OUT floor timestamptz, OUT lead interval, OUT generation integer
) RETURNS SETOF record
    VOLATILE STRICT PARALLEL RESTRICTED ROWS 1
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_stat';
COMMENT ON FUNCTION flake_internal.flake_stat() IS 'the row of the view flake_stat; for members of pg_monitor';

CREATE VIEW flake_stat AS
    SELECT ledger, node_id, node_count, sessions, issued, overflow_waits, clock_changes, longest_wait, mark, floor, lead,
           generation
    FROM flake_internal.flake_stat();
COMMENT ON VIEW flake_stat IS 'counters of all sessions and databases since the server started, and the state of the clock and of the mark; for members of pg_monitor';
COMMENT ON COLUMN flake_stat.ledger IS
    '"open" from the first ID or CREATE EXTENSION on, "unused" before that; "none" if the shared memory belongs to another version of the library';
COMMENT ON COLUMN flake_stat.node_id IS 'the flake.node_id in force';
COMMENT ON COLUMN flake_stat.node_count IS 'the flake.node_count in force';
COMMENT ON COLUMN flake_stat.sessions IS
    'how many sessions have made IDs or asked for a watermark, and have not exited';
COMMENT ON COLUMN flake_stat.issued IS 'how many IDs sessions have made; a session adds its IDs about every two seconds, and when it exits';
COMMENT ON COLUMN flake_stat.overflow_waits IS 'how often a session had used up a tick''s IDs and waited for the next tick';
COMMENT ON COLUMN flake_stat.clock_changes IS
    'how often the server''s clock was set; the server''s log has a line for each time';
COMMENT ON COLUMN flake_stat.longest_wait IS
    'the longest wait for the next tick; the wait event is FlakeNextTick, and Extension before PostgreSQL 17';
COMMENT ON COLUMN flake_stat.mark IS
    'no ID is later than this time, which sessions reserve on disk: 3 seconds ahead of the clock, and half a second ahead of IDs';
COMMENT ON COLUMN flake_stat.floor IS 'no ID is made in a tick that begins before this time; NULL if there is no such time';
COMMENT ON COLUMN flake_stat.lead IS 'how far the times of new IDs are ahead of the clock, because IDs of these times exist; at most flake.max_lead';
COMMENT ON COLUMN flake_stat.generation IS 'which half of this server''s IDs is made, 0 or 1; flake_accept_clock() changes it';

CREATE FUNCTION flake_check(OUT name text, OUT ok boolean, OUT detail text, OUT hint text) RETURNS SETOF record
    VOLATILE STRICT PARALLEL RESTRICTED ROWS 8
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_check';
COMMENT ON FUNCTION flake_check() IS
    'returns what an operator should know before and after a change; "ok" is NULL where this session cannot tell';

CREATE FUNCTION flake_accept_clock() RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_accept_clock';
COMMENT ON FUNCTION flake_accept_clock() IS
    'lets sessions make IDs by the current clock, in the other generation, although IDs were made by a clock that was ahead; returns the instant from which they make IDs; for superusers';

CREATE FUNCTION flake_accept_turn() RETURNS integer
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_accept_turn';
COMMENT ON FUNCTION flake_accept_turn() IS
    'lets a server make IDs although it is not known which IDs an earlier primary makes, once no earlier primary makes any; returns the turn of this server; for superusers';

-- The mark ---------------------------------------------------------------------------------------------------------------

CREATE SEQUENCE flake_internal.flake_mark;
COMMENT ON SEQUENCE flake_internal.flake_mark IS
    'up to which time IDs may reach, in a page of its own that is replicated with the data; not for use';

CREATE UNLOGGED SEQUENCE flake_internal.flake_mark_until;
COMMENT ON SEQUENCE flake_internal.flake_mark_until IS
    'a copy of the last value of flake_mark, which pg_upgrade keeps and the replication of sequences does not set; not for use';

CREATE SEQUENCE flake_internal.flake_turns;
COMMENT ON SEQUENCE flake_internal.flake_turns IS
    'the last two timelines of the WAL on which IDs were made, with their turns, for pg_upgrade; not for use';

CREATE UNLOGGED SEQUENCE flake_internal.flake_turns_copy;
COMMENT ON SEQUENCE flake_internal.flake_turns_copy IS
    'a copy of the last value of flake_turns, which the replication of sequences does not set; not for use';

CREATE FUNCTION flake_internal.flake_record_mark() RETURNS void
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_record_mark';
COMMENT ON FUNCTION flake_internal.flake_record_mark() IS
    'writes this server''s mark into flake_mark; CREATE EXTENSION and upgrades call it; for superusers';

CREATE FUNCTION flake_start_above(id bigint, layout text, force boolean DEFAULT false) RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_start_above';
COMMENT ON FUNCTION flake_start_above(bigint, text, boolean) IS
    'makes this server continue above an ID, such as the greatest one of a restored table, whatever its node number; waits until all sessions do so, and returns the instant from which they make IDs; for superusers';

-- Watermarks ---------------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_watermark() RETURNS timestamptz
    STABLE STRICT PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_watermark';
COMMENT ON FUNCTION flake_watermark() IS
    'returns an instant below which no row can appear any more, to this snapshot or a later one of this database; compare IDs with its flake_min or sno_min';

CREATE FUNCTION flake_publish_watermark() RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_publish_watermark';
COMMENT ON FUNCTION flake_publish_watermark() IS
    'publishes the current watermark of this database for standbys, and returns it';

CREATE FUNCTION flake_cover(id bigint, layout text DEFAULT 'twitter') RETURNS bigint
    VOLATILE STRICT PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_cover';
COMMENT ON FUNCTION flake_cover(bigint, text) IS
    'returns an ID that another transaction has made, and makes watermarks wait for this transaction; raises an error if a watermark of any database of this server may have passed the ID; an ID of twitter, if no layout is given';

CREATE FUNCTION flake_take(row_type anyelement, positions regclass, consumer text, max_rows integer) RETURNS SETOF anyelement
    VOLATILE PARALLEL UNSAFE ROWS 100
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_take';
COMMENT ON FUNCTION flake_take(anyelement, regclass, text, integer) IS
    'returns the next rows of a table below the watermark, and moves the consumer''s position over them, both undone by ROLLBACK; runs as the caller';

CREATE FUNCTION flake_internal.flake_open_transactions(OUT pid integer, OUT xid xid, OUT since timestamptz) RETURNS SETOF record
    VOLATILE STRICT PARALLEL RESTRICTED ROWS 10
    LANGUAGE c AS 'MODULE_PATHNAME', 'flake_open_transactions';
COMMENT ON FUNCTION flake_internal.flake_open_transactions() IS 'the rows of the view flake_open_transactions, with the numbers of prepared transactions';

CREATE VIEW flake_open_transactions AS
    SELECT o.pid, p.gid, o.since
    FROM flake_internal.flake_open_transactions() o LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction OPERATOR(pg_catalog.=) o.xid
    WHERE o.pid IS NOT NULL OR p.gid IS NOT NULL;
COMMENT ON VIEW flake_open_transactions IS 'the transactions that have made IDs in this database and not ended: watermarks wait for them';
COMMENT ON COLUMN flake_open_transactions.pid IS 'process of the session, as in pg_stat_activity; NULL for a prepared transaction';
COMMENT ON COLUMN flake_open_transactions.gid IS 'identifier of a prepared transaction, as in pg_prepared_xacts';
COMMENT ON COLUMN flake_open_transactions.since IS
    'watermarks do not pass this instant until the transaction ends; NULL where pg_stat_activity hides the session''s xact_start';

-- Privileges ------------------------------------------------------------------------------------------------------------

-- By default PUBLIC may execute functions and use types, but default privileges can say otherwise.
GRANT EXECUTE ON FUNCTION
    flake_internal.flake_next_support(internal), flake_internal.flake_next_in_copy(text, internal),
    flake_internal.flake_next_in_copy(text, integer, internal),
    flake_next(text), flake_next(text, integer), flake_batch(text, integer), flake_convert(regclass, text, boolean),
    flake_decode(bigint, text), flake_timestamp(bigint, text), flake_explain(bigint, text),
    flake_node(bigint, text), flake_make(timestamptz, jsonb, text), flake_to_text(bigint, text), flake_from_text(text, text),
    flake_min(timestamptz, text), flake_max(timestamptz, text), flake_plan.first(tstzrange, text),
    flake_plan.last(tstzrange, text), flake_internal.flake_during_support(internal), flake_during(bigint, tstzrange, text), flake_plan.since(timestamptz, text),
    flake_plan.after(timestamptz, text), flake_plan.until(timestamptz, text), flake_plan.before(timestamptz, text), flake_plan.instant(timestamp),
    flake_plan.instant(date),
    flake_internal.flake_layout_validator(text[], oid),
    flake_seal(bigint, text), flake_seal_uuid(bigint, text), flake_unseal(text, text), flake_unseal(uuid, text),
    flake_unseal_or_error(text, text), flake_unseal_or_error(uuid, text), flake_internal.flake_key_validator(text[], oid),
    flake_create_key(text, text), flake_import_key(text, text, bytea, boolean), flake_rotate_key(text),
    flake_rotate_key(text, bigint, boolean), flake_drop_key(text), flake_internal.flake_keys(),
    flake_create_layout(text, jsonb), flake_drop_layout(text), flake_internal.flake_layouts(), flake_internal.flake_stat(),
    flake_check(), flake_accept_clock(), flake_accept_turn(), flake_internal.flake_record_mark(), flake_start_above(bigint, text, boolean), flake_watermark(), flake_publish_watermark(),
    flake_cover(bigint, text), flake_take(anyelement, regclass, text, integer), flake_internal.flake_open_transactions()
    TO PUBLIC;
GRANT USAGE ON TYPE flake_parts TO PUBLIC;
GRANT SELECT ON flake_layouts, flake_keys, flake_stat, flake_open_transactions TO PUBLIC;

-- Citus 14 takes PUBLIC for a role where it looks at a wrapper's privileges, and raises an error: a database with Citus goes
-- without these. A function grants them, because DO needs plpgsql, which a database need not have.
CREATE FUNCTION flake_grant() RETURNS void LANGUAGE sql AS 'GRANT USAGE ON FOREIGN DATA WRAPPER flake_layout, flake_key TO PUBLIC';
SELECT flake_grant() WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_extension WHERE extname OPERATOR(pg_catalog.=) 'citus'::pg_catalog.name);
DROP FUNCTION flake_grant();

-- A server that has made IDs before, in this database or in another one, must not seem to begin at nothing.
SELECT flake_internal.flake_record_mark();
-- The type sno: IDs of 80 bits. sql/flake.sql has the rule for C symbols.

-- The type ---------------------------------------------------------------------------------------------------------------

CREATE TYPE sno;

CREATE FUNCTION sno_in(cstring) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_in';
COMMENT ON FUNCTION sno_in(cstring) IS 'I/O';

CREATE FUNCTION sno_out(sno) RETURNS cstring
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_out';
COMMENT ON FUNCTION sno_out(sno) IS 'I/O';

CREATE FUNCTION sno_recv(internal) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_recv';
COMMENT ON FUNCTION sno_recv(internal) IS 'I/O';

CREATE FUNCTION sno_send(sno) RETURNS bytea
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_send';
COMMENT ON FUNCTION sno_send(sno) IS 'I/O';

CREATE FUNCTION sno_typanalyze(internal) RETURNS boolean
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_typanalyze';
COMMENT ON FUNCTION sno_typanalyze(internal) IS 'statistics, with a fine histogram';

CREATE TYPE sno (
    INPUT = sno_in, OUTPUT = sno_out, RECEIVE = sno_recv, SEND = sno_send, ANALYZE = sno_typanalyze,
    INTERNALLENGTH = 10, ALIGNMENT = char, STORAGE = plain
);
COMMENT ON TYPE sno IS 'a time-ordered unique ID of 80 bits: 10 bytes, written as 16 characters';

-- Comparing --------------------------------------------------------------------------------------------------------------

CREATE FUNCTION sno_lt(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_lt';
COMMENT ON FUNCTION sno_lt(sno, sno) IS 'less than: implementation of < operator';

CREATE FUNCTION sno_le(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_le';
COMMENT ON FUNCTION sno_le(sno, sno) IS 'less than or equal: implementation of <= operator';

CREATE FUNCTION sno_eq(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_eq';
COMMENT ON FUNCTION sno_eq(sno, sno) IS 'equal: implementation of = operator';

CREATE FUNCTION sno_ne(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_ne';
COMMENT ON FUNCTION sno_ne(sno, sno) IS 'not equal: implementation of <> operator';

CREATE FUNCTION sno_ge(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_ge';
COMMENT ON FUNCTION sno_ge(sno, sno) IS 'greater than or equal: implementation of >= operator';

CREATE FUNCTION sno_gt(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_gt';
COMMENT ON FUNCTION sno_gt(sno, sno) IS 'greater than: implementation of > operator';

CREATE OPERATOR < (
    LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_lt, COMMUTATOR = >, NEGATOR = >=,
    RESTRICT = scalarltsel, JOIN = scalarltjoinsel
);
COMMENT ON OPERATOR < (sno, sno) IS 'less than';

CREATE OPERATOR <= (
    LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_le, COMMUTATOR = >=, NEGATOR = >,
    RESTRICT = scalarlesel, JOIN = scalarlejoinsel
);
COMMENT ON OPERATOR <= (sno, sno) IS 'less than or equal';

CREATE OPERATOR = (
    LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_eq, COMMUTATOR = =, NEGATOR = <>,
    RESTRICT = eqsel, JOIN = eqjoinsel, HASHES, MERGES
);
COMMENT ON OPERATOR = (sno, sno) IS 'equal';

CREATE OPERATOR <> (
    LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_ne, COMMUTATOR = <>, NEGATOR = =,
    RESTRICT = neqsel, JOIN = neqjoinsel
);
COMMENT ON OPERATOR <> (sno, sno) IS 'not equal';

CREATE OPERATOR >= (
    LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_ge, COMMUTATOR = <=, NEGATOR = <,
    RESTRICT = scalargesel, JOIN = scalargejoinsel
);
COMMENT ON OPERATOR >= (sno, sno) IS 'greater than or equal';

CREATE OPERATOR > (
    LEFTARG = sno, RIGHTARG = sno, FUNCTION = sno_gt, COMMUTATOR = <, NEGATOR = <=,
    RESTRICT = scalargtsel, JOIN = scalargtjoinsel
);
COMMENT ON OPERATOR > (sno, sno) IS 'greater than';

CREATE FUNCTION sno_cmp(sno, sno) RETURNS integer
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_cmp';
COMMENT ON FUNCTION sno_cmp(sno, sno) IS 'less-equal-greater';

CREATE FUNCTION sno_sortsupport(internal) RETURNS void
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_sortsupport';
COMMENT ON FUNCTION sno_sortsupport(internal) IS 'sort support, with abbreviated keys';

CREATE FUNCTION sno_hash(sno) RETURNS integer
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_hash';
COMMENT ON FUNCTION sno_hash(sno) IS 'hash';

CREATE FUNCTION sno_hash_extended(sno, bigint) RETURNS bigint
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_hash_extended';
COMMENT ON FUNCTION sno_hash_extended(sno, bigint) IS 'hash with a seed';

-- Equal snos have equal bytes, so a B-tree can deduplicate them (btequalimage).
CREATE OPERATOR CLASS sno_ops DEFAULT FOR TYPE sno USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 sno_cmp(sno, sno),
    FUNCTION 2 sno_sortsupport(internal),
    FUNCTION 4 btequalimage(oid);
COMMENT ON OPERATOR CLASS sno_ops USING btree IS 'orders snos by time';
COMMENT ON OPERATOR FAMILY sno_ops USING btree IS 'orders snos by time';

CREATE OPERATOR CLASS sno_ops DEFAULT FOR TYPE sno USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 sno_hash(sno),
    FUNCTION 2 sno_hash_extended(sno, bigint);
COMMENT ON OPERATOR CLASS sno_ops USING hash IS 'hashes the ten bytes by XXH3';
COMMENT ON OPERATOR FAMILY sno_ops USING hash IS 'hashes the ten bytes by XXH3';

CREATE OPERATOR CLASS sno_minmax_ops DEFAULT FOR TYPE sno USING brin AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 brin_minmax_opcinfo(internal),
    FUNCTION 2 brin_minmax_add_value(internal, internal, internal, internal),
    FUNCTION 3 brin_minmax_consistent(internal, internal, internal),
    FUNCTION 4 brin_minmax_union(internal, internal, internal);
COMMENT ON OPERATOR CLASS sno_minmax_ops USING brin IS 'smallest and largest sno of a range of blocks';
COMMENT ON OPERATOR FAMILY sno_minmax_ops USING brin IS 'smallest and largest sno of a range of blocks';

CREATE FUNCTION sno_smaller(sno, sno) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_smaller';
COMMENT ON FUNCTION sno_smaller(sno, sno) IS 'returns the smaller of two snos';

CREATE FUNCTION sno_larger(sno, sno) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_larger';
COMMENT ON FUNCTION sno_larger(sno, sno) IS 'returns the larger of two snos';

CREATE AGGREGATE min(sno) (
    SFUNC = sno_smaller, STYPE = sno, COMBINEFUNC = sno_smaller, SORTOP = <, PARALLEL = SAFE
);
COMMENT ON AGGREGATE min(sno) IS 'smallest of all snos';
CREATE AGGREGATE max(sno) (
    SFUNC = sno_larger, STYPE = sno, COMBINEFUNC = sno_larger, SORTOP = >, PARALLEL = SAFE
);
COMMENT ON AGGREGATE max(sno) IS 'largest of all snos';

-- Casts, all explicit ----------------------------------------------------------------------------------------------------

CREATE CAST (sno AS bytea) WITH FUNCTION sno_send(sno);
COMMENT ON CAST (sno AS bytea) IS 'the ten bytes';

CREATE FUNCTION sno_from_bytea(bytea) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_from_bytea';
COMMENT ON FUNCTION sno_from_bytea(bytea) IS 'returns the sno with these ten bytes';

CREATE CAST (bytea AS sno) WITH FUNCTION sno_from_bytea(bytea);
COMMENT ON CAST (bytea AS sno) IS 'the sno with these ten bytes';

CREATE FUNCTION sno_to_uuid(sno) RETURNS uuid
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_to_uuid';
COMMENT ON FUNCTION sno_to_uuid(sno) IS 'returns the 16 characters as the 16 bytes of a uuid, which sorts the same';

CREATE CAST (sno AS uuid) WITH FUNCTION sno_to_uuid(sno);
COMMENT ON CAST (sno AS uuid) IS 'the 16 characters as the 16 bytes of a uuid, which sorts the same';

CREATE FUNCTION sno_from_uuid(uuid) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_from_uuid';
COMMENT ON FUNCTION sno_from_uuid(uuid) IS 'returns the sno whose 16 characters are the bytes of this uuid';

CREATE CAST (uuid AS sno) WITH FUNCTION sno_from_uuid(uuid);
COMMENT ON CAST (uuid AS sno) IS 'the sno whose 16 characters are the bytes of this uuid';

CREATE FUNCTION sno_encode(bytes bytea) RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_encode';
COMMENT ON FUNCTION sno_encode(bytea) IS 'encodes ten bytes as 16 characters';

CREATE FUNCTION sno_decode(text text) RETURNS bytea
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_decode';
COMMENT ON FUNCTION sno_decode(text) IS 'decodes 16 characters to ten bytes';

-- Making snos ------------------------------------------------------------------------------------------------------------

CREATE FUNCTION sno_next(metabyte integer DEFAULT 0) RETURNS sno
    VOLATILE STRICT PARALLEL RESTRICTED SUPPORT flake_internal.flake_next_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_next';
COMMENT ON FUNCTION sno_next(integer) IS 'returns a new unique sno with this metabyte, in a partition that flake assigns';

CREATE FUNCTION sno_next(metabyte integer, partition integer) RETURNS sno
    VOLATILE STRICT PARALLEL RESTRICTED SUPPORT flake_internal.flake_next_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_next_in_partition';
COMMENT ON FUNCTION sno_next(integer, integer) IS 'returns a new unique sno in one of the caller''s partitions, 0 to 32767';

-- For COPY, as flake_next_in_copy in sql/flake.sql.
CREATE FUNCTION flake_internal.sno_next_in_copy(metabyte integer, call internal) RETURNS sno
    STABLE STRICT PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_next';
COMMENT ON FUNCTION flake_internal.sno_next_in_copy(integer, internal) IS
    'what COPY calls for a default with sno_next(integer)';

CREATE FUNCTION flake_internal.sno_next_in_copy(metabyte integer, partition integer, call internal) RETURNS sno
    STABLE STRICT PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_next_in_partition';
COMMENT ON FUNCTION flake_internal.sno_next_in_copy(integer, integer, internal) IS
    'what COPY calls for a default with sno_next(integer, integer)';

CREATE FUNCTION sno_make(at timestamptz, metabyte integer DEFAULT 0, partition integer DEFAULT 0, sequence integer DEFAULT 0,
    tick_tock boolean DEFAULT false) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_make';
COMMENT ON FUNCTION sno_make(timestamptz, integer, integer, integer, boolean) IS 'returns the sno of an instant with these parts';

-- Reading snos -----------------------------------------------------------------------------------------------------------

CREATE TYPE sno_parts AS (
    created_at timestamptz,
    tick_tock  boolean,
    metabyte   integer,
    partition  integer,
    sequence   integer
);
COMMENT ON TYPE sno_parts IS 'the parts of a sno';
COMMENT ON COLUMN sno_parts.created_at IS 'start of the 4 ms tick in which the sno was made';
COMMENT ON COLUMN sno_parts.tick_tock IS 'the bit that toggles when the clock steps back';
COMMENT ON COLUMN sno_parts.metabyte IS 'the caller''s byte, from 0 to 255';
COMMENT ON COLUMN sno_parts.partition IS 'the partition, from 0 to 65535; flake assigns partitions from 32768 up automatically';
COMMENT ON COLUMN sno_parts.sequence IS 'the sequence number, from 0 to 65535';

CREATE FUNCTION sno_fields(id sno) RETURNS sno_parts
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_fields';
COMMENT ON FUNCTION sno_fields(sno) IS 'returns the parts of a sno';

CREATE FUNCTION sno_explain(id sno) RETURNS text
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_explain';
COMMENT ON FUNCTION sno_explain(sno) IS
    'draws the bits of a sno with the name, width and number of each part; later versions may draw it differently';

CREATE FUNCTION sno_node(id sno) RETURNS integer
    STABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_node';
COMMENT ON FUNCTION sno_node(sno) IS
    'returns the number of the node that has the sno''s partition, or its sequence number in a caller''s partition; NULL if no node has it';

CREATE FUNCTION flake_internal.sno_during_support(internal) RETURNS internal
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_during_support';
COMMENT ON FUNCTION flake_internal.sno_during_support(internal) IS 'planner support for sno_during and sno_timestamp: the range of snos';

CREATE FUNCTION sno_timestamp(id sno) RETURNS timestamptz
    IMMUTABLE STRICT PARALLEL SAFE SUPPORT flake_internal.sno_during_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_timestamp';
COMMENT ON FUNCTION sno_timestamp(sno) IS 'returns the start of the 4 ms tick in which the sno was made; the planner turns comparisons of it into ranges of snos';

CREATE FUNCTION sno_metabyte(id sno) RETURNS integer
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_metabyte';
COMMENT ON FUNCTION sno_metabyte(sno) IS 'returns the metabyte';

CREATE FUNCTION sno_partition(id sno) RETURNS integer
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_partition';
COMMENT ON FUNCTION sno_partition(sno) IS 'returns the partition';

CREATE FUNCTION sno_with_metabyte(id sno, metabyte integer) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_with_metabyte';
COMMENT ON FUNCTION sno_with_metabyte(sno, integer) IS 'returns the same sno with another metabyte';

-- Snos of an instant and of a span ---------------------------------------------------------------------------------------

CREATE FUNCTION sno_min(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_min';
COMMENT ON FUNCTION sno_min(timestamptz) IS 'returns the smallest sno of the tick that holds the instant';

CREATE FUNCTION sno_max(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_max';
COMMENT ON FUNCTION sno_max(timestamptz) IS 'returns the largest sno of the tick that holds the instant';

CREATE FUNCTION sno_during(id sno, span tstzrange) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE SUPPORT flake_internal.sno_during_support
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_during';
COMMENT ON FUNCTION sno_during(sno, tstzrange) IS
    'returns whether the sno''s tick overlaps the span; the planner turns it into a range of snos, for indexes and partition pruning';

-- For the planner -------------------------------------------------------------------------------------------------------

CREATE FUNCTION flake_plan.first(span tstzrange) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_plan_first';
COMMENT ON FUNCTION flake_plan.first(tstzrange) IS 'the smallest sno whose tick overlaps the span; the largest sno of all if there is none';

CREATE FUNCTION flake_plan.last(span tstzrange) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_plan_last';
COMMENT ON FUNCTION flake_plan.last(tstzrange) IS 'the largest sno whose tick overlaps the span; the smallest sno of all if there is none';

CREATE FUNCTION flake_plan.since(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_plan_since';
COMMENT ON FUNCTION flake_plan.since(timestamptz) IS
    'the smallest sno for which sno_timestamp(id) >= at; NULL if there is none';

CREATE FUNCTION flake_plan.after(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_plan_after';
COMMENT ON FUNCTION flake_plan.after(timestamptz) IS
    'the smallest sno for which sno_timestamp(id) > at; NULL if there is none';

CREATE FUNCTION flake_plan.until(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_plan_until';
COMMENT ON FUNCTION flake_plan.until(timestamptz) IS
    'the largest sno for which sno_timestamp(id) <= at; NULL if there is none';

CREATE FUNCTION flake_plan.before(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_plan_before';
COMMENT ON FUNCTION flake_plan.before(timestamptz) IS
    'the largest sno for which sno_timestamp(id) < at; NULL if there is none';

CREATE FUNCTION sno_start_above(id sno, force boolean DEFAULT false) RETURNS timestamptz
    VOLATILE STRICT PARALLEL UNSAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_start_above';
COMMENT ON FUNCTION sno_start_above(sno, boolean) IS
    'makes this server continue above an ID, such as the greatest one of a restored table, whatever its node number; waits until all sessions do so, and returns the instant from which they make IDs; for superusers';

CREATE FUNCTION sno_cover(id sno) RETURNS sno
    VOLATILE STRICT PARALLEL RESTRICTED
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_cover';
COMMENT ON FUNCTION sno_cover(sno) IS
    'returns a sno that another transaction has made, and makes watermarks wait for this transaction; raises an error if a watermark of any database of this server may have passed the sno';

-- Privileges ------------------------------------------------------------------------------------------------------------

-- By default PUBLIC may execute functions and use types, but default privileges can say otherwise.
GRANT EXECUTE ON FUNCTION
    sno_in(cstring), sno_out(sno), sno_recv(internal), sno_send(sno), sno_typanalyze(internal), sno_lt(sno, sno),
    sno_le(sno, sno),
    sno_eq(sno, sno), sno_ne(sno, sno), sno_ge(sno, sno), sno_gt(sno, sno), sno_cmp(sno, sno),
    sno_sortsupport(internal), sno_hash(sno), sno_hash_extended(sno, bigint), sno_smaller(sno, sno),
    sno_larger(sno, sno), sno_from_bytea(bytea), sno_to_uuid(sno), sno_from_uuid(uuid),
    sno_encode(bytea), sno_decode(text), sno_next(integer), sno_next(integer, integer),
    flake_internal.sno_next_in_copy(integer, internal), flake_internal.sno_next_in_copy(integer, integer, internal),
    sno_make(timestamptz, integer, integer, integer, boolean), sno_fields(sno), sno_explain(sno), sno_node(sno),
    sno_timestamp(sno), sno_metabyte(sno), sno_partition(sno),
    sno_with_metabyte(sno, integer), sno_min(timestamptz), sno_max(timestamptz), flake_plan.first(tstzrange),
    flake_plan.last(tstzrange), flake_internal.sno_during_support(internal), sno_during(sno, tstzrange), flake_plan.since(timestamptz),
    flake_plan.after(timestamptz), flake_plan.until(timestamptz), flake_plan.before(timestamptz), sno_start_above(sno, boolean), sno_cover(sno),
    min(sno), max(sno)
    TO PUBLIC;
GRANT USAGE ON TYPE sno, sno_parts TO PUBLIC;

-- A local setting lasts until the end of the transaction, not of the script, so the role that runs it is set again.
SELECT pg_catalog.set_config('role'::pg_catalog.text, name, true)
FROM pg_catalog.current_setting('flake_script.role'::pg_catalog.text) name
WHERE name OPERATOR(pg_catalog.<>) pg_catalog.current_setting('role'::pg_catalog.text);
