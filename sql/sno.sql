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
