-- The type sno: IDs of 80 bits. Every function names the Rust function behind it.

-- The type ---------------------------------------------------------------------------------------------------------------

CREATE TYPE sno;

CREATE FUNCTION sno_in(cstring) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_in_wrapper';
COMMENT ON FUNCTION sno_in(cstring) IS 'reads the text of a sno';

CREATE FUNCTION sno_out(sno) RETURNS cstring
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_out_wrapper';
COMMENT ON FUNCTION sno_out(sno) IS 'writes a sno as text';

CREATE FUNCTION sno_recv(internal) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_recv_wrapper';
COMMENT ON FUNCTION sno_recv(internal) IS 'reads a sno in the binary protocol';

CREATE FUNCTION sno_send(sno) RETURNS bytea
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_send_wrapper';
COMMENT ON FUNCTION sno_send(sno) IS 'writes a sno in the binary protocol';

CREATE TYPE sno (
    INPUT = sno_in, OUTPUT = sno_out, RECEIVE = sno_recv, SEND = sno_send,
    INTERNALLENGTH = 10, ALIGNMENT = char, STORAGE = plain
);
COMMENT ON TYPE sno IS 'a time-ordered unique ID of 80 bits: 10 bytes, written as 16 characters';

-- Comparing --------------------------------------------------------------------------------------------------------------

CREATE FUNCTION sno_lt(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_lt_wrapper';
COMMENT ON FUNCTION sno_lt(sno, sno) IS 'less than: implementation of < operator';

CREATE FUNCTION sno_le(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_le_wrapper';
COMMENT ON FUNCTION sno_le(sno, sno) IS 'less than or equal: implementation of <= operator';

CREATE FUNCTION sno_eq(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_eq_wrapper';
COMMENT ON FUNCTION sno_eq(sno, sno) IS 'equal: implementation of = operator';

CREATE FUNCTION sno_ne(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_ne_wrapper';
COMMENT ON FUNCTION sno_ne(sno, sno) IS 'not equal: implementation of <> operator';

CREATE FUNCTION sno_ge(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_ge_wrapper';
COMMENT ON FUNCTION sno_ge(sno, sno) IS 'greater than or equal: implementation of >= operator';

CREATE FUNCTION sno_gt(sno, sno) RETURNS boolean
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_gt_wrapper';
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
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_cmp_wrapper';
COMMENT ON FUNCTION sno_cmp(sno, sno) IS '-1, 0 or 1: less, equal or greater';

CREATE FUNCTION sno_sortsupport(internal) RETURNS void
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_sortsupport_wrapper';
COMMENT ON FUNCTION sno_sortsupport(internal) IS 'sort support, with abbreviated keys';

CREATE FUNCTION sno_hash(sno) RETURNS integer
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_hash_wrapper';
COMMENT ON FUNCTION sno_hash(sno) IS 'hash';

CREATE FUNCTION sno_hash_extended(sno, bigint) RETURNS bigint
    IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_hash_extended_wrapper';
COMMENT ON FUNCTION sno_hash_extended(sno, bigint) IS 'hash with a seed';

-- Equal snos are equal bytes, so a B-tree can keep one of several (btequalimage).
CREATE OPERATOR CLASS sno_ops DEFAULT FOR TYPE sno USING btree AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 sno_cmp(sno, sno),
    FUNCTION 2 sno_sortsupport(internal),
    FUNCTION 4 btequalimage(oid);
COMMENT ON OPERATOR CLASS sno_ops USING btree IS 'order of time';
COMMENT ON OPERATOR FAMILY sno_ops USING btree IS 'order of time';

CREATE OPERATOR CLASS sno_ops DEFAULT FOR TYPE sno USING hash AS
    OPERATOR 1 =,
    FUNCTION 1 sno_hash(sno),
    FUNCTION 2 sno_hash_extended(sno, bigint);
COMMENT ON OPERATOR CLASS sno_ops USING hash IS 'XXH3 of the ten bytes';
COMMENT ON OPERATOR FAMILY sno_ops USING hash IS 'XXH3 of the ten bytes';

CREATE OPERATOR CLASS sno_minmax_ops DEFAULT FOR TYPE sno USING brin AS
    OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >,
    FUNCTION 1 brin_minmax_opcinfo(internal),
    FUNCTION 2 brin_minmax_add_value(internal, internal, internal, internal),
    FUNCTION 3 brin_minmax_consistent(internal, internal, internal),
    FUNCTION 4 brin_minmax_union(internal, internal, internal);
COMMENT ON OPERATOR CLASS sno_minmax_ops USING brin IS 'smallest and largest of a range of blocks';
COMMENT ON OPERATOR FAMILY sno_minmax_ops USING brin IS 'smallest and largest of a range of blocks';

CREATE FUNCTION sno_smaller(sno, sno) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_smaller_wrapper';
COMMENT ON FUNCTION sno_smaller(sno, sno) IS 'the smaller of two';

CREATE FUNCTION sno_larger(sno, sno) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_larger_wrapper';
COMMENT ON FUNCTION sno_larger(sno, sno) IS 'the larger of two';

CREATE AGGREGATE min(sno) (
    SFUNC = sno_smaller, STYPE = sno, COMBINEFUNC = sno_smaller, SORTOP = <, PARALLEL = SAFE
);
COMMENT ON AGGREGATE min(sno) IS 'smallest of all';
CREATE AGGREGATE max(sno) (
    SFUNC = sno_larger, STYPE = sno, COMBINEFUNC = sno_larger, SORTOP = >, PARALLEL = SAFE
);
COMMENT ON AGGREGATE max(sno) IS 'largest of all';

-- Casts, all explicit ----------------------------------------------------------------------------------------------------

CREATE FUNCTION sno_to_bytea(sno) RETURNS bytea
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_to_bytea_wrapper';
COMMENT ON FUNCTION sno_to_bytea(sno) IS 'the ten bytes';

CREATE CAST (sno AS bytea) WITH FUNCTION sno_to_bytea(sno);
COMMENT ON CAST (sno AS bytea) IS 'the ten bytes';

CREATE FUNCTION sno_from_bytea(bytea) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_from_bytea_wrapper';
COMMENT ON FUNCTION sno_from_bytea(bytea) IS 'the sno with these ten bytes';

CREATE CAST (bytea AS sno) WITH FUNCTION sno_from_bytea(bytea);
COMMENT ON CAST (bytea AS sno) IS 'the sno with these ten bytes';

CREATE FUNCTION sno_to_uuid(sno) RETURNS uuid
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_to_uuid_wrapper';
COMMENT ON FUNCTION sno_to_uuid(sno) IS 'the 16 characters as the 16 bytes of a uuid; the order stays';

CREATE CAST (sno AS uuid) WITH FUNCTION sno_to_uuid(sno);
COMMENT ON CAST (sno AS uuid) IS 'the 16 characters as the 16 bytes of a uuid; the order stays';

CREATE FUNCTION sno_from_uuid(uuid) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_from_uuid_wrapper';
COMMENT ON FUNCTION sno_from_uuid(uuid) IS 'the sno whose 16 characters are the bytes of this uuid';

CREATE CAST (uuid AS sno) WITH FUNCTION sno_from_uuid(uuid);
COMMENT ON CAST (uuid AS sno) IS 'the sno whose 16 characters are the bytes of this uuid';

CREATE FUNCTION sno_encode(bytes bytea) RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_encode_wrapper';
COMMENT ON FUNCTION sno_encode(bytea) IS 'ten bytes as 16 characters';

CREATE FUNCTION sno_decode(text text) RETURNS bytea
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_decode_wrapper';
COMMENT ON FUNCTION sno_decode(text) IS '16 characters as ten bytes';

-- Making snos ------------------------------------------------------------------------------------------------------------

CREATE FUNCTION sno_next(metabyte integer DEFAULT 0) RETURNS sno
    VOLATILE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_next';
COMMENT ON FUNCTION sno_next(integer) IS 'a new unique sno with the caller''s metabyte, from an automatically assigned partition';

CREATE FUNCTION sno_next(metabyte integer, partition integer) RETURNS sno
    VOLATILE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_next_in';
COMMENT ON FUNCTION sno_next(integer, integer) IS 'a new unique sno in a partition of the caller''s, from 0 to 32767';

CREATE FUNCTION sno_make(at timestamptz, metabyte integer DEFAULT 0, partition integer DEFAULT 0, sequence integer DEFAULT 0,
    tick_tock boolean DEFAULT false) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_make_wrapper';
COMMENT ON FUNCTION sno_make(timestamptz, integer, integer, integer, boolean) IS 'the sno of an instant with these parts';

-- Reading snos -----------------------------------------------------------------------------------------------------------

CREATE TYPE sno_parts AS (
    created_at timestamptz,
    tick_tock  boolean,
    metabyte   integer,
    partition  integer,
    sequence   integer
);
COMMENT ON TYPE sno_parts IS 'the parts of a sno';
COMMENT ON COLUMN sno_parts.created_at IS 'start of the 4 ms in which it was made';
COMMENT ON COLUMN sno_parts.tick_tock IS 'toggled when the clock stepped back';
COMMENT ON COLUMN sno_parts.metabyte IS 'the caller''s byte, from 0 to 255';
COMMENT ON COLUMN sno_parts.partition IS 'the generator''s partition, from 0 to 65535; from 32768 on automatic';
COMMENT ON COLUMN sno_parts.sequence IS 'the sequence number, from 0 to 65535';

CREATE FUNCTION flake_decode(id sno) RETURNS sno_parts
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_parts';
COMMENT ON FUNCTION flake_decode(sno) IS 'the parts of a sno';

CREATE FUNCTION flake_explain(id sno) RETURNS text
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_explain_wrapper';
COMMENT ON FUNCTION flake_explain(sno) IS 'the bits of a sno, drawn with each part''s name, width and number';

CREATE FUNCTION sno_timestamp(id sno) RETURNS timestamptz
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_timestamp_wrapper';
COMMENT ON FUNCTION sno_timestamp(sno) IS 'start of the 4 ms in which it was made';

CREATE FUNCTION sno_metabyte(id sno) RETURNS integer
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_metabyte_wrapper';
COMMENT ON FUNCTION sno_metabyte(sno) IS 'its metabyte';

CREATE FUNCTION sno_partition(id sno) RETURNS integer
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_partition_wrapper';
COMMENT ON FUNCTION sno_partition(sno) IS 'its partition';

CREATE FUNCTION sno_sequence(id sno) RETURNS integer
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_sequence_wrapper';
COMMENT ON FUNCTION sno_sequence(sno) IS 'its sequence number';

CREATE FUNCTION sno_tick_tock(id sno) RETURNS boolean
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_tick_tock_wrapper';
COMMENT ON FUNCTION sno_tick_tock(sno) IS 'its tick-tock bit';

CREATE FUNCTION sno_with_metabyte(id sno, metabyte integer) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_with_metabyte_wrapper';
COMMENT ON FUNCTION sno_with_metabyte(sno, integer) IS 'the same sno with another metabyte';

-- Snos of an instant and of a span ---------------------------------------------------------------------------------------

CREATE FUNCTION sno_min(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_min_wrapper';
COMMENT ON FUNCTION sno_min(timestamptz) IS 'the smallest sno of the 4 ms that hold the instant';

CREATE FUNCTION sno_max(at timestamptz) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_max_wrapper';
COMMENT ON FUNCTION sno_max(timestamptz) IS 'the largest sno of the 4 ms that hold the instant';

CREATE FUNCTION sno_first(span tstzrange) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_first_wrapper';
COMMENT ON FUNCTION sno_first(tstzrange) IS 'the smallest sno whose 4 ms overlap the span; the largest of all when there is none';

CREATE FUNCTION sno_last(span tstzrange) RETURNS sno
    IMMUTABLE STRICT PARALLEL SAFE
    LANGUAGE c AS 'MODULE_PATHNAME', 'sno_last_wrapper';
COMMENT ON FUNCTION sno_last(tstzrange) IS 'the largest sno whose 4 ms overlap the span; the smallest of all when there is none';

-- Not STRICT, which would keep the planner from inlining it; NULL gives NULL all the same.
CREATE FUNCTION sno_during(id sno, span tstzrange) RETURNS boolean
    IMMUTABLE PARALLEL SAFE
    RETURN id >= sno_first(span) AND id <= sno_last(span);
COMMENT ON FUNCTION sno_during(sno, tstzrange) IS
    'whether the sno was made in that time; the planner makes it a range of snos, which an index or partitions can use';
