"""Calls of every function, as SQL with types of arguments in braces, and the SQLSTATEs that each may raise."""

import collections

Template = collections.namedtuple("Template", "text kind states weight")

# What another name than a layout's is; what an ID, a text, an instant, a layout that is not ordered by time are where they do not fit.
UNKNOWN, ID, TEXT, TIME, UNORDERED = "22023", "22003", "22P02", "22008", "22023"
# IDs are not made: the share is too small, it is used up, or the timestamp is; the layout's epoch was not reached or is read only.
NOT_MADE = f"{UNKNOWN} 55000 2200H {TIME}"
REFUSED = "42501"

# call | SQLSTATEs | weight, 10 if there is none
CALLS = [
    ("flake_timestamp({bigint}, {layout})", f"{ID} {UNKNOWN}"),
    ("flake_decode({bigint}, {layout})", f"{ID} {UNKNOWN}"),
    ("flake_explain({bigint}, {layout})", f"{ID} {UNKNOWN}"),
    ("flake_encode({bigint}, {layout})", f"{ID} {UNKNOWN}"),
    ("flake_parse({text}, {layout})", f"{ID} {TEXT} {UNKNOWN}", 30),
    ("flake_parse({text})", f"{ID} {TEXT}"),
    ("flake_make({timestamptz}, {jsonb}, {layout})", f"{ID} {TIME} {UNKNOWN} 54000", 20),
    ("flake_min({timestamptz}, {layout})", f"{TIME} {UNKNOWN} {UNORDERED}"),
    ("flake_max({timestamptz}, {layout})", f"{TIME} {UNKNOWN} {UNORDERED}"),
    ("flake_first({tstzrange}, {layout})", f"{TIME} {UNKNOWN} {UNORDERED}"),
    ("flake_last({tstzrange}, {layout})", f"{TIME} {UNKNOWN} {UNORDERED}"),
    ("flake_during({bigint}, {tstzrange}, {layout})", f"{ID} {TIME} {UNKNOWN} {UNORDERED}"),
    ("flake_next({layout})", NOT_MADE),
    ("flake_next({layout}, {integer})", NOT_MADE),
    ("flake_cover({bigint}, {layout})", f"{ID} {UNKNOWN} 55000"),
    ("flake_cover({sno})", "55000"),
    ("flake_horizon()", "55000 40001", 2),
    ("flake_layout_validator({text[]}, {oid})", UNKNOWN, 20),
    ("flake_drop_layout({text})", UNKNOWN, 2),
    ("flake_accept_clock()", REFUSED, 1),
    ("flake_record_mark()", REFUSED, 1),
    ("flake_start_above({bigint}, {layout}, {boolean})", f"{REFUSED} {ID} {UNKNOWN}", 1),
    ("flake_start_above({sno}, {boolean})", REFUSED, 1),
    ("sno_next({integer})", f"{UNKNOWN} 55000"),
    ("sno_next({integer}, {integer})", f"{UNKNOWN} 55000"),
    ("sno_make({timestamptz}, {integer}, {integer}, {integer}, {boolean})", f"{ID} {TIME}"),
    ("sno_with_metabyte({sno}, {integer})", UNKNOWN),
    ("sno_min({timestamptz})", TIME),
    ("sno_max({timestamptz})", TIME),
    ("sno_first({tstzrange})", ""),
    ("sno_last({tstzrange})", ""),
    ("sno_encode({bytea})", UNKNOWN),
    ("sno_decode({text})", TEXT),
    ("sno_in(textout({text}))", TEXT),
    ("sno_from_bytea({bytea})", UNKNOWN),
    ("sno_from_uuid({uuid})", TEXT),
    ("({text})::sno", TEXT),
    ("({uuid})::sno", TEXT),
    ("({bytea})::sno", UNKNOWN),
    ("flake_explain({sno})", ""),
]

# What is true, or raises one of these.
PROPERTIES = [
    ("flake_parse(flake_encode({bigint}, {known}), {known}) IS NOT NULL", f"{ID} {TEXT}"),
    ("(SELECT flake_parse(flake_encode(id, name), name) = id FROM (SELECT {bigint}, {known}) v(id, name))", ID),
    ("(SELECT flake_make(created_at, fields, layout) = id FROM (SELECT {bigint}, {known}) v(id, name), flake_decode(id, name))", ID),
    ("(SELECT (flake_decode(id, name)).created_at = flake_timestamp(id, name) FROM (SELECT {bigint}, {known}) v(id, name))", ID),
    ("(SELECT replace(split_part(flake_explain(id, name), E'\\n', 3), ' ', '') = id::bit(64)::text"
     " FROM (SELECT {bigint}, {known}) v(id, name))", ID),
    ("(SELECT id BETWEEN flake_min(at, name) AND flake_max(at, name)"
     " FROM (SELECT {bigint}, {known}) v(id, name), flake_timestamp(id, name) at)", f"{ID} {TIME} {UNORDERED}"),
    ("(SELECT flake_min(at, name) = flake_first(tstzrange(at, at, '[]'), name) AND flake_max(at, name) = flake_last(tstzrange(at, at, '[]'), name)"
     " FROM (SELECT {timestamptz}, {known}) v(at, name))", f"{TIME} {UNORDERED}"),
    ("(SELECT flake_during(id, tstzrange(at, NULL), name) AND NOT flake_during(id, tstzrange(NULL, at), name)"
     " FROM (SELECT {bigint}, {known}) v(id, name), flake_timestamp(id, name) at)", f"{ID} {TIME} {UNORDERED}"),
    ("(SELECT (SELECT count(*) FROM fuzz.ids WHERE flake_during(id, span, name))"
     " = (SELECT count(*) FROM fuzz.ids WHERE id + 0 BETWEEN flake_first(span, name) AND flake_last(span, name))"
     " FROM (SELECT {tstzrange}, {known}) v(span, name))", f"{TIME} {UNORDERED}", 2),
    ("(SELECT count(*) FROM fuzz.ids WHERE flake_during(id, {tstzrange}, {known})) IS NOT NULL", f"{TIME} {UNORDERED}", 2),
    ("(SELECT count(*) FROM fuzz.snos WHERE sno_during(id, {tstzrange})) IS NOT NULL", "", 2),
    ("(SELECT (SELECT count(*) FROM fuzz.snos WHERE sno_during(id, span))"
     " = (SELECT count(*) FROM fuzz.snos WHERE tstzrange(sno_timestamp(id), sno_timestamp(id) + interval '4 ms') && span)"
     " FROM (SELECT {tstzrange}) v(span))", "", 1),
    ("(SELECT count(*) = greatest(n, 0) AND count(DISTINCT id) = count(*) FROM (SELECT {integer} % 50) v(n),"
     " flake_batch('twitter', greatest(n, 0)) id GROUP BY n) IS NOT FALSE", "55000", 1),
    ("(SELECT count(*) >= 0 FROM flake_batch({known}, {integer} % 20) id)", NOT_MADE, 1),
    # Snos as text, bytes and uuid.
    ("(SELECT id::text::sno = id AND sno_out(id)::text = sno_encode(id::bytea) AND sno_decode(id::text) = id::bytea FROM (SELECT {sno}) v(id))", ""),
    ("(SELECT id::bytea::sno = id AND id::uuid::sno = id AND sno_to_uuid(id)::text = encode(convert_to(id::text, 'SQL_ASCII'), 'hex')::uuid::text"
     " AND sno_send(id) = sno_to_bytea(id) FROM (SELECT {sno}) v(id))", ""),
    ("(SELECT (sno_lt(a, b), sno_le(a, b), sno_eq(a, b), sno_ne(a, b), sno_ge(a, b), sno_gt(a, b))"
     " = (a::bytea < b::bytea, a::bytea <= b::bytea, a::bytea = b::bytea, a::bytea <> b::bytea, a::bytea >= b::bytea, a::bytea > b::bytea)"
     " FROM (SELECT {sno}, {sno}) v(a, b))", ""),
    ("(SELECT (a < b, a <= b, a = b, a <> b, a >= b, a > b) = (a::uuid < b::uuid, a::uuid <= b::uuid, a::uuid = b::uuid, a::uuid <> b::uuid,"
     " a::uuid >= b::uuid, a::uuid > b::uuid) FROM (SELECT {sno}, {sno}) v(a, b))", ""),
    ("(SELECT sign(sno_cmp(a, b)) = (a > b)::int - (a < b)::int AND sno_smaller(a, b) = LEAST(a, b) AND sno_larger(a, b) = GREATEST(a, b)"
     " AND (a < b) = (a::text < b::text COLLATE \"C\") FROM (SELECT {sno}, {sno}) v(a, b))", ""),
    ("(SELECT (sno_hash(a) = sno_hash(b)) >= (a = b) AND (sno_hash_extended(a, 0) - sno_hash(a)) & 4294967295 = 0"
     " AND (sno_hash_extended(a, s) = sno_hash_extended(b, s)) >= (a = b) FROM (SELECT {sno}, {sno}, {bigint}) v(a, b, s))", ""),
    ("(SELECT sno_make(sno_timestamp(id), sno_metabyte(id), sno_partition(id), sno_sequence(id), sno_tick_tock(id)) = id"
     " AND flake_decode(id) = ROW(sno_timestamp(id), sno_tick_tock(id), sno_metabyte(id), sno_partition(id), sno_sequence(id))::sno_parts"
     " FROM (SELECT {sno}) v(id))", ""),
    ("(SELECT id BETWEEN sno_min(at) AND sno_max(at) AND sno_first(tstzrange(at, at, '[]')) = sno_min(at) AND sno_last(tstzrange(at, at, '[]')) = sno_max(at)"
     " AND sno_with_metabyte(id, sno_metabyte(id)) = id FROM (SELECT {sno}) v(id), sno_timestamp(id) at)", ""),
    ("(SELECT sno_during(id, span) = (tstzrange(at, at + interval '4 ms') && span) FROM (SELECT {sno}, {tstzrange}) v(id, span), sno_timestamp(id) at)", ""),
    ("(SELECT min(id) = LEAST(a, b, c) AND max(id) = GREATEST(a, b, c) FROM (SELECT {sno}, {sno}, {sno}) v(a, b, c),"
     " LATERAL (VALUES (a), (b), (c)) w(id) GROUP BY a, b, c)", ""),
    ("replace(split_part(flake_explain({sno}), E'\\n', 3), ' ', '') ~ '^[01]{80}$'", ""),
    # The views.
    ("(SELECT count(*) FROM flake_layouts()) >= 40", "", 1),
    ("(SELECT count(*) FROM flake_generators()) >= 0", "", 1),
    ("(SELECT count(*) FROM flake_stats()) = 1", "", 1),
    ("(SELECT count(*) FROM flake_open()) >= 0", "", 1),
]  # fmt: skip

# From 16 on, texts that are no snos need raise no errors.
SOFT = [
    ("(SELECT pg_input_is_valid(t, 'sno') = (t ~ '^[2-9a-x]{16}$') FROM (SELECT {text}) v(t))", ""),
    ("(SELECT pg_input_is_valid(t, 'sno') = (sql_error_code IS NULL) AND sql_error_code IS DISTINCT FROM 'XX000'"
     " AND (detail IS NULL) = (message IS NULL) FROM (SELECT {text}) v(t), pg_input_error_info(t, 'sno'))", ""),
]  # fmt: skip

# A new layout reads and writes its IDs, and is undone.
STATEMENTS = [
    ("""PERFORM flake_create_layout('fuzz', {definition});
        PERFORM flake_encode(id, 'fuzz'), flake_explain(id, 'fuzz') FROM flake_make(
            (SELECT epoch FROM flake_layouts WHERE name = 'fuzz'), '{}', 'fuzz') id;
        PERFORM flake_layout_validator(srvoptions, 'pg_foreign_server'::regclass) FROM pg_foreign_server WHERE srvname = 'fuzz';
        PERFORM flake_drop_layout('fuzz');
        RAISE 'undone' USING ERRCODE = 'FZ000'""", f"FZ000 {UNKNOWN} 54000", 2),
]  # fmt: skip

# PostgreSQL alone can call these, or they take seconds.
UNCALLED = {"sno_recv", "sno_sortsupport", "sno_typanalyze", "flake_batch_support", "flake_during_support", "sno_during_support",
            "flake_check"}  # fmt: skip


def templates_of(soft_errors):
    kinds = [("call", CALLS), ("property", PROPERTIES + (SOFT if soft_errors else [])), ("statement", STATEMENTS)]
    return [
        Template(text, kind, states.split(), weight[0] if weight else 10)
        for kind, rows in kinds for text, states, *weight in rows
    ]  # fmt: skip
