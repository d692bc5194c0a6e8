"""Calls whose results must be the same in both editions, made from a seed.

They have IDs, texts, instants, spans and fields of all layouts: at their limits, at random, and wrong ones.
"""

import itertools
import json
import random

# Runs calls, and returns the result or the error of each.
ANSWERS = """
    CREATE FUNCTION pg_temp.answers(calls text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
    DECLARE
        call text;
        answer text;
        detail text;
    BEGIN
        FOREACH call IN ARRAY calls LOOP
            BEGIN
                EXECUTE 'SELECT (' || call || ')::text' INTO answer;
            EXCEPTION WHEN OTHERS THEN
                GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
                answer := concat_ws(' | ', SQLSTATE, SQLERRM, detail);
            END;
            RETURN NEXT COALESCE(answer, 'NULL');
        END LOOP;
    END $$"""
READERS = ["flake_decode({}, {})", "flake_timestamp({}, {})", "flake_to_text({}, {})", "flake_explain({}, {})"]
LIMITS = [0, 1, -1, 2**63 - 1, -(2**63), 2**62, 2**53, 2**53 - 1, 2**60]
# The last instant of timestamptz.
LAST = "294276-12-31 23:59:59.999999Z"
INSTANTS = [
    "infinity", "-infinity", "4714-11-24 00:00:00+00 BC", LAST, "1970-01-01Z", "1969-12-31 23:59:59.999999Z",
]  # fmt: skip
# Spans at the ends of all time, and at the epochs of layouts.
SPANS = [
    "empty", "(,)", "[-infinity,infinity]", "[infinity,)", "(,-infinity]", "[2000-01-01Z,2001-01-01Z]", "[90000-01-01Z,)",
    "(2026-01-01Z,2026-01-01 00:00:00.000001Z)", "(,4714-11-24 00:00:00+00 BC)", "(,4714-11-24 00:00:00+00 BC]",
    "(,1970-01-01 00:00:00+00)", "(,2010-11-04 01:42:54.657+00)",
]  # fmt: skip
# The greatest numbers of 64 bits in some text forms, and others.
TEXTS = [
    "00", "-1", str(2**64 - 1), str(2**64), "7ZZZZZZZZZZZZ", "GZZZZZZZZZZZZ", "ffffffffffffffff", "FFFFFFFFFFFFFFFF",
    "G~~~~~~~~~~", "F~~~~~~~~~~", "____AAAAAA", "0oIl0000000aA", "12 34",
]  # fmt: skip
# Values that the fields of an ID cannot have, or hardly.
FIELDS = [
    "[]", "1", '{"worker": 1.0}', '{"sequence": 1.50}', '{"sequence": 99999999.00}', '{"timestamp": 0.0}', '{"worker": "1"}',
    '{"worker": null}', '{"nonsense": 1}', '{"timestamp": 0}', '{"zero": 0}',
    '{"sequence": 99999999999999999999999}', '{"sequence": 18446744073709551615}',
]  # fmt: skip
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_~ "


def calls(layouts, count):
    """Yields calls of layouts, which are rows with a name, bits, text form and fields."""
    draw = random.Random(1)
    makers = [reads, reads, texts, instants, spans, made]
    drawn = (call for _ in itertools.count() for layout in layouts for call in draw.choice(makers)(draw, *layout))
    return itertools.islice(drawn, count)


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def an_id(draw, bits):
    id = draw.choice([draw.choice(LIMITS), draw.getrandbits(bits), draw.getrandbits(bits), draw.getrandbits(64)])
    return f"'{id - 2**64 if id >> 63 and id > 0 else id}'::bigint"


def an_instant(draw):
    day = f"{draw.randint(1960, 2160)}-{draw.randint(1, 12):02}-{draw.randint(1, 28):02}"
    drawn = f"{day} {draw.randint(0, 23):02}:59:59.{draw.randrange(10**6):06}Z"
    return draw.choice([drawn, drawn, drawn, f"{draw.randint(2, 290000)}-06-01Z", draw.choice(INSTANTS)])


def reads(draw, name, bits, *_):
    id = an_id(draw, bits)
    return [reader.format(id, quoted(name)) for reader in READERS]


def texts(draw, name, _, form, __):
    size = draw.choice([0, 1, 3, 10, 11, 13, 16, 19, 20, 21])
    digits = "0123456789" if form == "decimal" and draw.random() < 0.7 else DIGITS
    text = draw.choice(["".join(draw.choice(digits) for _ in range(size))] * 3 + [draw.choice(TEXTS)])
    return [f"flake_from_text({quoted(text)}, {quoted(name)})"]


def instants(draw, name, *_):
    at = an_instant(draw)
    return [f"flake_{end}({quoted(at)}::timestamptz, {quoted(name)})" for end in ("min", "max")]


def spans(draw, name, bits, *_):
    low, high = (draw.choice([at, at, at, ""]) for at in (an_instant(draw), an_instant(draw)))
    low, high = (quoted(at) if at else "NULL" for at in (low, high))
    span = f"tstzrange({low}, {high}, '{draw.choice('[(')}{draw.choice('])')}')"
    if draw.random() < 0.3:
        span = f"{quoted(draw.choice(SPANS))}::tstzrange"
    ends = [f"flake_plan.{end}({span}, {quoted(name)})" for end in ("first", "last")]
    return [*ends, f"flake_during({an_id(draw, bits)}, {span}, {quoted(name)})"]


def made(draw, name, _, __, definition):
    fields = {}
    for field in definition:
        if draw.random() < 0.6 and field["role"] != "reserved":
            limit = 1 << field["bits"]
            fields[field["name"]] = draw.choice([0, limit - 1, draw.randrange(limit), limit, -1])
    if draw.random() < 0.5:
        fields.pop("timestamp", None)
    given = draw.choice([json.dumps(fields)] * 4 + [draw.choice(FIELDS)])
    return [f"flake_make({quoted(an_instant(draw))}::timestamptz, {quoted(given)}::jsonb, {quoted(name)})"]
