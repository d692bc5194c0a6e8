"""Calls of every function, as SQL with types of arguments in braces, and the SQLSTATEs that each may raise."""

import collections

Template = collections.namedtuple("Template", "text kind states weight")

# Errors for an unknown layout, for an ID or number, a text or an instant out of range, and for a layout that is not in the
# order of time.
NAME, NUMBER, TEXT, TIME, UNORDERED = "22023", "22003", "22P02", "22008", "22023"
# Errors if no ID can be made: this node has none of the layout, the clock is before the epoch, or the last tick has ended.
NOT_MADE = f"{NAME} 55000 {TIME} 2200H"
NOT_MINE, LONG = "42501", "54000"

# Columns: call | SQLSTATEs | weight, 10 by default. Slow calls have less.
CALLS = [
    ("flake_timestamp({bigint}, {layout})", f"{NUMBER} {NAME}"),
    ("flake_decode({bigint}, {layout})", f"{NUMBER} {NAME}"),
    ("flake_explain({bigint}, {layout})", f"{NUMBER} {NAME}"),
    ("flake_node({bigint}, {layout})", f"{NUMBER} {NAME}"),
    ("flake_to_text({bigint}, {layout})", f"{NUMBER} {NAME}"),
    ("flake_from_text({text}, {layout})", f"{NUMBER} {TEXT} {NAME}", 30),
    ("flake_from_text({text})", f"{NUMBER} {TEXT}"),
    ("flake_make({timestamptz}, {jsonb}, {layout})", f"{NUMBER} {TIME} {NAME} {LONG}", 20),
    ("flake_min({timestamptz}, {layout})", f"{TIME} {NAME} {UNORDERED}"),
    ("flake_max({timestamptz}, {layout})", f"{TIME} {NAME} {UNORDERED}"),
    ("flake_plan.first({tstzrange}, {layout})", f"{TIME} {NAME} {UNORDERED}"),
    ("flake_plan.last({tstzrange}, {layout})", f"{TIME} {NAME} {UNORDERED}"),
    ("flake_during({bigint}, {tstzrange}, {layout})", f"{TIME} {NAME} {UNORDERED}"),
    ("flake_plan.since({timestamptz}, {layout})", f"{NAME} {UNORDERED}"),
    ("flake_plan.after({timestamptz}, {layout})", f"{NAME} {UNORDERED}"),
    ("flake_plan.until({timestamptz}, {layout})", f"{NAME} {UNORDERED}"),
    ("flake_plan.before({timestamptz}, {layout})", f"{NAME} {UNORDERED}"),
    ("flake_plan.instant(({timestamptz})::timestamp) IS NOT NULL AND flake_plan.instant(({timestamptz})::date) IS NOT NULL", ""),
    ("flake_next({layout})", NOT_MADE),
    ("flake_next({layout}, {integer})", NOT_MADE),
    ("flake_cover({bigint}, {layout})", f"{NUMBER} {NAME} 55000"),
    ("sno_cover({sno})", "55000"),
    ("flake_watermark()", "55000 40001", 2),
    ("flake_publish_watermark()", "55000 40001", 1),
    ("(SELECT count(*) FROM flake_take(NULL::fuzz.ids, {oid}, {text}, {integer}))", f"{NAME} 22004 55000", 2),
    ("flake_internal.flake_layout_validator({text[]}, {oid})", NAME, 20),
    ("flake_seal({bigint}, {text})", "42704", 2),
    ("flake_seal_uuid({bigint}, {text})", "42704", 2),
    ("flake_unseal({text}, {text})", "42704", 2),
    ("flake_unseal(({bytea})::text, {text})", "42704", 2),
    ("flake_unseal_or_error({text}, {text})", "42704 22P02", 2),
    ("flake_unseal(gen_random_uuid(), {text})", "42704", 1),
    ("flake_unseal_or_error(gen_random_uuid(), {text})", "42704 22P02", 1),
    ("flake_create_key({text}, {layout})", f"{NAME} 42710", 0.5),
    ("flake_import_key({text}, {layout}, {bytea}, {boolean})", f"{NAME} 42710", 2),
    ("flake_rotate_key({text})", f"42704 {NAME} {TIME} {LONG}", 1),
    ("flake_rotate_key({text}, {bigint}, {boolean})", f"42704 {NAME} {TIME} {LONG}", 1),
    ("flake_drop_key({text})", "42704", 1),
    ("flake_internal.flake_key_validator({text[]}, {oid})", NAME, 20),
    ("flake_convert({oid}, {layout}, {boolean})", f"{NOT_MINE} {NAME} 22004 42809 42804", 2),
    ("flake_drop_layout({text})", NAME, 0.5),
    ("flake_accept_clock()", NOT_MINE, 1),
    ("flake_accept_turn()", NOT_MINE, 1),
    ("flake_internal.flake_record_mark()", NOT_MINE, 1),
    ("flake_start_above({bigint}, {layout}, {boolean})", f"{NOT_MINE} {NUMBER} {NAME}", 1),
    ("sno_start_above({sno}, {boolean})", NOT_MINE, 1),
    ("sno_next({integer})", f"{NAME} 55000"),
    ("sno_next({integer}, {integer})", f"{NAME} 55000"),
    ("sno_make({timestamptz}, {integer}, {integer}, {integer}, {boolean})", f"{NUMBER} {TIME}"),
    ("sno_with_metabyte({sno}, {integer})", NAME),
    ("sno_min({timestamptz})", TIME),
    ("sno_max({timestamptz})", TIME),
    ("flake_plan.first({tstzrange})", ""),
    ("flake_plan.last({tstzrange})", ""),
    ("flake_plan.since({timestamptz})", ""),
    ("flake_plan.after({timestamptz})", ""),
    ("flake_plan.until({timestamptz})", ""),
    ("flake_plan.before({timestamptz})", ""),
    ("sno_encode({bytea})", NAME),
    ("sno_decode({text})", TEXT),
    ("sno_in(textout({text}))", TEXT),
    ("sno_from_bytea({bytea})", NAME),
    ("sno_from_uuid({uuid})", TEXT),
    ("({text})::sno", TEXT),
    ("({uuid})::sno", TEXT),
    ("({bytea})::sno", NAME),
    ("sno_explain({sno})", ""),
]

# Conditions that are true, or raise one of these errors.
PROPERTIES = [
    ("flake_from_text(flake_to_text({bigint}, {known}), {known}) IS NOT NULL", f"{NUMBER} {TEXT}"),
    ("SELECT flake_from_text(flake_to_text(id, name), name) = id FROM (SELECT {bigint}, {known}) g(id, name)", NUMBER),
    ("SELECT flake_make(created_at, fields, layout) = id FROM (SELECT {bigint}, {known}) g(id, name), flake_decode(id, name)",
     NUMBER),
    ("SELECT (flake_decode(id, name)).created_at = flake_timestamp(id, name) FROM (SELECT {bigint}, {known}) g(id, name)",
     NUMBER),
    ("""SELECT replace(split_part(flake_explain(id, name), E'\\n', 3), ' ', '') = id::bit(64)::text
        FROM (SELECT {bigint}, {known}) g(id, name)""", NUMBER),
    ("""SELECT id BETWEEN flake_min(at, name) AND flake_max(at, name)
        FROM (SELECT {bigint}, {known}) g(id, name), flake_timestamp(id, name) at""", f"{NUMBER} {TIME} {UNORDERED}"),
    ("""SELECT flake_min(at, name) = flake_plan.first(tstzrange(at, at, '[]'), name)
               AND flake_max(at, name) = flake_plan.last(tstzrange(at, at, '[]'), name)
        FROM (SELECT {timestamptz}, {known}) g(at, name)""", f"{TIME} {UNORDERED}"),
    ("""SELECT flake_during(id, tstzrange(at, NULL), name) AND NOT flake_during(id, tstzrange(NULL, at), name)
        FROM (SELECT {bigint}, {known}) g(id, name), flake_timestamp(id, name) at""", f"{NUMBER} {TIME} {UNORDERED}"),
    ("""SELECT (SELECT count(*) FROM fuzz.ids WHERE flake_during(id, span, name))
             = (SELECT count(*) FROM fuzz.ids WHERE id + 0 BETWEEN flake_plan.first(span, name) AND flake_plan.last(span, name))
        FROM (SELECT {tstzrange}, {known}) g(span, name)""", f"{TIME} {UNORDERED}", 2),
    ("""SELECT time > sortable_until
               OR (coalesce(flake_plan.since(at, name) <= id, false), coalesce(flake_plan.after(at, name) <= id, false),
                coalesce(id <= flake_plan.until(at, name), false), coalesce(id <= flake_plan.before(at, name), false))
             = (time >= at, time > at, time <= at, time < at)
        FROM (SELECT {bigint}, {timestamptz}, {known}) g(id, at, name) JOIN flake_layouts USING (name),
             LATERAL (SELECT flake_timestamp(id, name)) t (time)""", f"{NUMBER} {UNORDERED}", 2),
    ("""SELECT (coalesce(flake_plan.since(at) <= id, false), coalesce(flake_plan.after(at) <= id, false),
                coalesce(id <= flake_plan.until(at), false), coalesce(id <= flake_plan.before(at), false))
             = (sno_timestamp(id) >= at, sno_timestamp(id) > at, sno_timestamp(id) <= at, sno_timestamp(id) < at)
        FROM (SELECT {sno}, {timestamptz}) g(id, at)""", ""),
    ("(SELECT count(*) FROM fuzz.ids WHERE flake_during(id, {tstzrange}, {known})) >= 0", f"{TIME} {UNORDERED}", 2),
    ("(SELECT count(*) FROM fuzz.snos WHERE sno_during(id, {tstzrange})) >= 0", "", 2),
    ("""SELECT (SELECT count(*) FROM fuzz.snos WHERE sno_during(id, span))
             = (SELECT count(*) FROM fuzz.snos WHERE tstzrange(sno_timestamp(id), sno_timestamp(id) + interval '4 ms') && span)
        FROM (SELECT {tstzrange}) g(span)""", "", 0.5),
    ("""SELECT count(id) = most AND count(DISTINCT id) = most
        FROM (SELECT greatest({integer} % 50, 0)) g(most) LEFT JOIN LATERAL flake_batch('twitter', most) id ON true
        GROUP BY most""",
     "55000", 1),
    ("(SELECT count(*) FROM flake_batch({known}, {integer} % 20)) >= 0", NOT_MADE, 0.05),
    # On the only node.
    ("sno_node({sno}) = 0", ""),
    ("""SELECT (flake_node(id, name) = 0) IS NOT DISTINCT FROM NULLIF(generates, false)
        FROM (SELECT {bigint}, {known}) g(id, name) JOIN flake_layouts USING (name)""", NUMBER, 1),
    # Snos as text, as bytes, as uuid.
    ("""SELECT id::text::sno = id AND sno_out(id)::text = sno_encode(id::bytea) AND sno_decode(id::text) = id::bytea
        FROM (SELECT {sno}) g(id)""", ""),
    ("""SELECT id::bytea::sno = id AND id::uuid::sno = id AND sno_send(id) = id::bytea
               AND sno_to_uuid(id)::text = encode(convert_to(id::text, 'SQL_ASCII'), 'hex')::uuid::text
        FROM (SELECT {sno}) g(id)""", ""),
    ("""SELECT (sno_lt(a, b), sno_le(a, b), sno_eq(a, b), sno_ne(a, b), sno_ge(a, b), sno_gt(a, b))
             = (x < y, x <= y, x = y, x <> y, x >= y, x > y)
        FROM (SELECT {sno}, {sno}) g(a, b), LATERAL (VALUES (a::bytea, b::bytea)) v(x, y)""", ""),
    ("""SELECT (a < b, a <= b, a = b, a <> b, a >= b, a > b) = (x < y, x <= y, x = y, x <> y, x >= y, x > y)
        FROM (SELECT {sno}, {sno}) g(a, b), LATERAL (VALUES (a::uuid, b::uuid)) v(x, y)""", ""),
    ("""SELECT sign(sno_cmp(a, b)) = (a > b)::int - (a < b)::int AND (a < b) = (a::text < b::text COLLATE "C")
               AND sno_smaller(a, b) = LEAST(a, b) AND sno_larger(a, b) = GREATEST(a, b)
        FROM (SELECT {sno}, {sno}) g(a, b)""", ""),
    ("""SELECT (sno_hash(a) = sno_hash(b)) >= (a = b) AND (sno_hash_extended(a, s) = sno_hash_extended(b, s)) >= (a = b)
               AND (sno_hash_extended(a, 0) - sno_hash(a)) & 4294967295 = 0
        FROM (SELECT {sno}, {sno}, {bigint}) g(a, b, s)""", ""),
    ("""SELECT sno_make(sno_timestamp(id), sno_metabyte(id), sno_partition(id), p.sequence, p.tick_tock) = id
               AND sno_fields(id) = ROW(sno_timestamp(id), p.tick_tock, sno_metabyte(id), sno_partition(id),
                                          p.sequence)::sno_parts FROM (SELECT {sno}) g(id), sno_fields(id) p""", ""),
    ("""SELECT id BETWEEN sno_min(at) AND sno_max(at) AND sno_with_metabyte(id, sno_metabyte(id)) = id
               AND flake_plan.first(tstzrange(at, at, '[]')) = sno_min(at)
               AND flake_plan.last(tstzrange(at, at, '[]')) = sno_max(at)
        FROM (SELECT {sno}) g(id), sno_timestamp(id) at""", ""),
    ("""SELECT sno_during(id, span) = (tstzrange(at, at + interval '4 ms') && span)
        FROM (SELECT {sno}, {tstzrange}) g(id, span), sno_timestamp(id) at""", ""),
    ("""SELECT min(id) = LEAST(a, b, c) AND max(id) = GREATEST(a, b, c)
        FROM (SELECT {sno}, {sno}, {sno}) g(a, b, c), LATERAL (VALUES (a), (b), (c)) v(id) GROUP BY a, b, c""", ""),
    ("replace(split_part(sno_explain({sno}), E'\\n', 3), ' ', '') ~ '^[01]{80}$'", ""),
    # The rows of the views.
    ("(SELECT count(*) FROM flake_layouts) >= 40", "", 0.2),
    ("(SELECT count(*) FROM flake_stat) = 1", "", 1),
    ("(SELECT count(*) FROM flake_open_transactions) >= 0", "", 1),
    ("(SELECT count(*) FROM flake_keys) >= 0", "", 1),
    ("(SELECT count(*) FROM flake_check()) >= 6", "", 0.05),
]  # fmt: skip

# Since version 16, a text that is not a sno need not raise an error.
SOFT = [
    ("SELECT pg_input_is_valid(t, 'sno') = (t ~ '^[2-9a-x]{16}$') FROM (SELECT {text}) g(t)", ""),
    ("""SELECT (sql_error_code IS NULL) = (t ~ '^[2-9a-x]{16}$') AND COALESCE(sql_error_code, '22P02') = '22P02'
               AND (sql_error_code IS NULL) = (detail IS NULL) FROM (SELECT {text}) g(t), pg_input_error_info(t, 'sno')""", ""),
]  # fmt: skip

# Statements that create a layout, write and read its IDs, and drop it. A key may have the name already.
STATEMENTS = [
    ("""PERFORM flake_create_layout('fuzz', {definition});
        PERFORM flake_to_text(id, 'fuzz'), flake_explain(id, 'fuzz')
            FROM flake_make((SELECT epoch FROM flake_layouts WHERE name = 'fuzz'), '{}', 'fuzz') id;
        PERFORM flake_internal.flake_layout_validator(srvoptions, 'pg_foreign_server'::regclass)
        FROM pg_foreign_server WHERE srvname = 'fuzz';
        PERFORM flake_drop_layout('fuzz');
        RAISE 'undone' USING ERRCODE = 'FZ000', DETAIL = '-'""", f"FZ000 {NAME} {LONG}", 1),
    ("""PERFORM flake_create_layout(name, '{"like": "si"}'), flake_to_text(1, name), flake_drop_layout(name)
        FROM (SELECT {text}) g(name)""", f"{NAME} 42710", 0.5),
]  # fmt: skip

# Functions that only PostgreSQL can call.
UNCALLED = {
    "sno_recv", "sno_sortsupport", "sno_typanalyze", "flake_during_support", "sno_during_support", "flake_next_support",
    "flake_next_in_copy", "sno_next_in_copy",
}  # fmt: skip


def templates_of(soft_errors):
    """All templates, as SQL."""
    kinds = [("call", CALLS), ("property", PROPERTIES + (SOFT if soft_errors else [])), ("statement", STATEMENTS)]
    return [
        Template(f"({text})" if text.startswith("SELECT") else text, kind, states.split(), weight[0] if weight else 10)
        for kind, rows in kinds
        for text, states, *weight in rows
    ]
