"""Random, extreme and hostile arguments as SQL, by type: expressions of random(), so that setseed() repeats them."""

# Characters that no text form has, by encoding of the database. In SQL_ASCII, a byte may be anything.
CHARACTERS = {
    "UTF8": ["'é'", "'漢'", "'😀'", "chr(1)", "chr(160)", "chr(65535)", "chr(1114111)", "'Ａ'", "'ſ'", "'K'"],
    "LATIN1": ["'é'", "'ÿ'", "chr(1)", "chr(128)", "chr(160)"],
    "EUC_JP": ["'漢'", "'あ'", "chr(1)", "'Ａ'"],
    "WIN1251": ["'ж'", "chr(1)", "chr(152)", "chr(160)"],
    "SQL_ASCII": ["'é'", "chr(128)", "chr(195)", "chr(255)", "chr(1)"],
}  # fmt: skip

# The text forms of layouts.
FORMS = ["decimal", "hex", "crockford32", "base36", "base58", "base62", "base64url", "base64url_reversed", "base64ordered"]

HELPERS = """
    CREATE SCHEMA fuzz;
    CREATE FUNCTION fuzz.below(n int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT floor(random() * n)::int';
    CREATE FUNCTION fuzz.bits() RETURNS bigint LANGUAGE sql VOLATILE
        AS 'SELECT (floor(random() * 4294967296)::bigint << 32) | floor(random() * 4294967296)::bigint';
    CREATE FUNCTION fuzz.bytes(n int) RETURNS bytea LANGUAGE sql VOLATILE
        AS $$SELECT decode(left(md5(random()::text) || md5(random()::text), 2 * n), 'hex')$$;
    CREATE FUNCTION fuzz.field() RETURNS jsonb LANGUAGE sql VOLATILE AS $$
        SELECT jsonb_strip_nulls(jsonb_build_object('name', {names}, 'role', {roles}, 'bits', {bits}, 'reversed', {flags},
            'rank', {ranks}, 'value', {values}))$$;
    CREATE FUNCTION fuzz.definition() RETURNS jsonb LANGUAGE plpgsql VOLATILE AS $$
        DECLARE made jsonb := jsonb_strip_nulls(jsonb_build_object('like', {likes}, 'epoch', {epochs}, 'tick', {ticks},
            'text', {forms}));
        BEGIN
            IF made ? 'like' AND random() < 0.5 THEN RETURN made; END IF;
            RETURN made || jsonb_build_object('fields',
                (SELECT COALESCE(jsonb_agg(fuzz.field()), '[]') FROM generate_series(1, fuzz.below(5)))
                || jsonb_build_object('name', 't', 'role', 'timestamp', 'bits', 1 + fuzz.below(42)));
        END$$;"""


def one_of(*values):
    """One of these expressions of the same type, each with the same probability."""
    return f"(ARRAY[{', '.join(values)}])[1 + fuzz.below({len(values)})]"


def either(*choices):
    """One of these expressions. The others are not evaluated."""
    cases = " ".join(f"WHEN {number} THEN {choice}" for number, choice in enumerate(choices[:-1]))
    return f"(CASE fuzz.below({len(choices)}) {cases} ELSE {choices[-1]} END)"


def quoted(*values):
    return [f"'{value}'" for value in values]


def helpers():
    """Functions that the expressions need."""
    numbers = ["NULL", "NULL", *(f"jsonb '{number}'" for number in (0, 1, 255, 256, -1, 0.5, 2**64 - 1, '"1"'))]
    likes = ["twitter", "si", "uniqueid", "tsid", "base64id", "cockroach", "none", ""]
    epochs = ["2024-01-01T00:00:00Z"] * 9 + [
        "1970-01-01T00:00:00.000001Z", "-004713-11-24T00:00:00Z", "-009999-01-02T00:00:00Z", "2024-01-01T00:00:00.0000001Z",
        "9999-12-30T22:00:00Z", "2024-02-30T00:00:00Z", "2024-01-01", "infinity",
    ]
    ticks = ["1ms"] * 9 + [
        "4ms", "10ms", "1s", "1us", "17us", "3600s", "0ms", "-1ms", "1m", "9223372036854775807us", "9223372036854775807s",
        "99999999999999999999s", " 1ms", "",
    ]
    roles = ["worker", "worker", "sequence", "random", "tag", "reserved", "reserved"] * 5 + ["timestamp", "flag", "Worker"]
    parts = {
        "names": one_of(*["'f' || fuzz.below(90)"] * 30, *quoted("f1", "t", "", "a b", "x" * 64)),
        "roles": one_of(*quoted(*roles)),
        "bits": either(*["to_jsonb(1 + fuzz.below(8))"] * 9, one_of(*numbers)),
        "flags": one_of(*["NULL"] * 20, "jsonb 'true'", "jsonb 'false'", "jsonb '1'"),
        "ranks": one_of(*["NULL"] * 20, *numbers),
        "values": one_of(*["NULL"] * 20, *numbers),
        "likes": one_of("NULL", "NULL", *quoted(*likes)),
        "epochs": one_of("NULL", *quoted(*epochs)),
        "ticks": one_of("NULL", *quoted(*ticks)),
        "forms": one_of(*["NULL"] * 9, *quoted(*FORMS, "")),
    }  # fmt: skip
    text = HELPERS
    for name, expression in parts.items():
        text = text.replace(f"{{{name}}}", expression)
    return text


def pools(encoding, layouts):
    """An expression for each type, for names of layouts, which all exist or most of them, and for definitions."""
    texts, instants, snos, numbers = of_text(encoding), of_time(), of_sno(), of_json()
    hostile = ["''", "' '", "'TWITTER'", "'sno'", "'twitte'", "repeat('x', 63)", "repeat('x', 64)", texts]
    known = one_of(*quoted(*layouts))
    names = quoted("worker", "sequence", "datacenter", "timestamp", "machine", "random", "tag")
    name = f"COALESCE({one_of(*names, 'NULL')}, {texts})"
    end = f"(CASE WHEN fuzz.below(8) > 0 THEN {LATELY} END)"
    definition = either(
        *["fuzz.definition()"] * 6, f"fuzz.definition() || jsonb_build_object({name}, {numbers})",
        f"jsonb_set(fuzz.definition(), '{{fields,0,bits}}', {numbers})", numbers,
    )
    bigints = ["0", "1", "-1", f"{2**63 - 1}", f"'{-(2**63)}'", f"{2**53}", "1541815603606036480"]
    integers = ["0", "1", "-1", "255", "256", "32767", "32768", "65535", "65536", f"{2**31 - 1}", f"{-(2**31)}"]
    return {
        "bigint": either(
            "fuzz.bits()", "fuzz.bits() & 9223372036854775807", "fuzz.bits() >> fuzz.below(64)",
            "fuzz.bits() >> 12 & 9007199254740991", "(fuzz.bits() & 9223372036854775807) >> fuzz.below(63)", one_of(*bigints),
        ),
        "integer": either("(fuzz.bits() >> (32 + fuzz.below(32)))::int", "fuzz.below(300)", one_of(*integers)),
        "boolean": "random() < 0.5",
        "layout": f"(CASE WHEN fuzz.below(50) > 0 THEN {known} ELSE {either(*hostile)} END)",
        "known": known,
        "text": texts,
        "timestamptz": instants,
        "tstzrange": f"fuzz.span({end}, {end}, {one_of(*quoted('[]', '[)', '(]', '()'))})",
        "jsonb": either(f"jsonb_build_object({name}, {numbers})", f"jsonb_build_object({name}, {numbers}, {name}, {numbers})",
                        numbers, "'{}'::jsonb"),
        "definition": definition,
        "text[]": either(f"ARRAY['definition=' || ({definition})::text]", f"ARRAY['definition=' || {texts}]",
                         f"ARRAY[{texts}, {texts}]", "'{}'::text[]", "'{NULL}'::text[]"),
        "oid": one_of(*["'pg_foreign_server'::regclass::oid"] * 3, "'pg_class'::regclass::oid", "0"),
        "bytea": either("fuzz.bytes(10)", "fuzz.bytes(fuzz.below(20))", "''::bytea"),
        "uuid": either(f"({snos})::uuid", "md5(random()::text)::uuid"),
        "sno": snos,
    }  # fmt: skip


LATELY = "to_timestamp(946684800 + random() * 2.8e9)"


def of_time():
    ends = quoted(
        "infinity", "-infinity", "4714-11-24 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00", "epoch",
        "2010-11-04 01:42:54.657Z", "2010-11-04 01:42:54.656999Z", "2080-07-10 17:30:30.209Z", "2079-09-07 15:47:35.552Z",
    )  # fmt: skip
    ever = "to_timestamp(-210866716800 + random() * 9.1e12)"
    return either(LATELY, LATELY, f"({one_of(*ends)})::timestamptz", ever)


def of_sno():
    fixed = quoted("2222222222222222", "xxxxxxxxxxxxxxxx", "brpk4q72xwf2m63l", "brpk4q72xwf2m63m")
    made = "(substr(sno_max(to_timestamp(1262304000 + random() * 2.1e9))::bytea, 1, 5) || fuzz.bytes(5))::sno"
    return either("fuzz.bytes(10)::sno", f"({one_of(*fixed)})::sno", made)


def of_text(encoding):
    """Texts of IDs, the same texts with a few characters changed, and other texts."""
    valid = either(
        f"({of_sno()})::text", "abs(fuzz.bits() >> fuzz.below(64))::text", "upper(md5(random()::text))",
        "left(md5(random()::text), 16)", "translate(left(encode(fuzz.bytes(9), 'base64'), 1 + fuzz.below(12)), '+/', '-_')",
    )  # fmt: skip
    character = one_of(*CHARACTERS[encoding])
    return either(
        valid, f"overlay({valid} placing {character} from 1 + fuzz.below(20) for fuzz.below(3))",
        f"overlay({valid} placing chr(1 + fuzz.below(127)) from 1 + fuzz.below(17) for 1)",
        f"repeat({character}, CASE fuzz.below(100) WHEN 0 THEN 1000000 ELSE fuzz.below(40) END)",
        "repeat('0', fuzz.below(3) * fuzz.below(1000))",
    )  # fmt: skip


def of_json():
    odd = [f"jsonb '{value}'" for value in ("null", -1, 0.5, "1e400", 2**64, '"1"', "[]", "1e13107")]
    plain = [f"to_jsonb({number})" for number in ("fuzz.below(5)", "fuzz.below(5)", "fuzz.below(5000)", "abs(fuzz.bits())")]
    return either(*plain, one_of(*odd))


SPAN = """
    CREATE FUNCTION fuzz.span(a timestamptz, b timestamptz, bounds text) RETURNS tstzrange LANGUAGE sql IMMUTABLE AS $$
        SELECT tstzrange(CASE WHEN a > b THEN b ELSE a END, CASE WHEN a > b THEN a ELSE b END, bounds)$$"""
