"""All mistakes that a user can make, in one table: SQLSTATE, message, DETAIL and HINT of each."""

import psycopg
import pytest

# Columns: description | SQL | SQLSTATE | message | DETAIL | HINT. If a cell is a tuple, the text must contain each of its
# parts.
KNOWN = "Known layouts: twitter, snowflake, si, "
FIELDS = "The view flake_layouts shows the fields of every layout."
FORMS = "The view flake_layouts shows the text form of every layout."
SEE = "The view flake_layouts shows the epoch and the last tick of every layout."
MADE = "Check that the ID was made with this layout"
RANGE = "2010-11-04 01:42:54.657+00 and 2080-07-10 17:30:30.208999+00."
PLAIN = [
    ("misspelt layout", "flake_next('twiter')", "22023", 'layout "twiter" does not exist',
     "Names of layouts are case-sensitive.", f'Perhaps you mean "twitter". {KNOWN}'),
    ("layout in capitals", "flake_next('SnowFlake')", "22023", 'layout "SnowFlake" does not exist', "case-sensitive",
     'Perhaps you mean "snowflake".'),
    ("layout like no other", "flake_decode(1, 'zzz')", "22023", 'layout "zzz" does not exist', "", KNOWN),
    ("empty layout", "flake_timestamp(1, '')", "22023", 'layout "" does not exist', "", KNOWN),
    ("layout beyond ASCII", "flake_min(now(), 'ß')", "22023", r'layout "\xc3\x9f" does not exist', "", KNOWN),
    ("layout of any length", "flake_max(now(), repeat('x', 100000))", "22023", 'layout "xxx', "", KNOWN),
    ("negative ID", "flake_timestamp(-1)", "22003", 'ID -1 is not possible in layout "twitter"',
     "IDs of this layout are from 0 to 9223372036854775807.", MADE),
    ("negative ID to decode", "flake_decode(-9223372036854775808)", "22003", "ID -9223372036854775808", "from 0", MADE),
    ("ID of more than 53 bits", "flake_decode(9007199254740992, 'si')", "22003",
     'ID 9007199254740992 is not possible in layout "si"', "from 0 to 9007199254740991.", MADE),
    ("ID of more than 60 bits", "flake_timestamp(1152921504606846976, 'base64id')", "22003", "ID 1152921504606846976",
     "from 0 to 1152921504606846975.", MADE),
    ("reserved bits", "flake_decode(1024, 'uniqueid')", "22003", 'ID 1024 is not possible in layout "uniqueid"',
     'Its field "zero" is 1, but must be 0.', MADE),
    ("before the epoch", "flake_min('2010-11-04 01:42:54.656999Z')", "22008",
     'timestamp out of range for layout "twitter"', f"2010-11-04 01:42:54.656999+00 is not between {RANGE}", SEE),
    ("after the last tick", "flake_max('2080-07-10 17:30:30.209Z')", "22008",
     'timestamp out of range for layout "twitter"', f"2080-07-10 17:30:30.209+00 is not between {RANGE}", SEE),
    ("infinity", "flake_min('infinity')", "22008", "timestamp out of range", f"infinity is not between {RANGE}", SEE),
    ("minus infinity", "flake_max('-infinity')", "22008", "timestamp out of range", "-infinity is not", SEE),
    ("the first timestamptz", "flake_min('4714-11-24 00:00:00 BC')", "22008", "timestamp out of range", "BC is not between", SEE),
    ("the last timestamptz", "flake_max('294276-12-31 23:59:59.999999')", "22008", "timestamp out of range",
     "294247-01-10 04:00:54.775806+00 or a later time is not between", SEE),
    ("before 1970", "flake_min('1969-12-31Z', 'base64id')", "22008", "timestamp out of range", "2018-03-01", SEE),
    ("tag for a layout without one", "flake_next('twitter', 1)", "22023", 'layout "twitter" has no tag field', "role",
     "Call flake_next"),
    ("layout to read only", "flake_next('yitter')", "22023", 'cannot make IDs of layout "yitter"', "flake only reads",
     "SELECT name FROM flake_layouts WHERE generates"),
    ("unknown field", "flake_make(now(), '{\"wrker\": 3}')", "22023", 'layout "twitter" has no field "wrker"',
     "Its fields are timestamp, datacenter, worker, sequence.", FIELDS),
    ("field too large", "flake_make(now(), '{\"worker\": 32}')", "22003", 'worker 32 is out of range for layout "twitter"',
     "The valid range is 0 to 31.", FIELDS),
    ("field beyond 64 bits", "flake_make(now(), '{\"worker\": 18446744073709551616}')", "22003", 'field "worker"',
     "Fields hold whole numbers that are not negative.", FIELDS),
    ("negative field", "flake_make(now(), '{\"worker\": -1}')", "22003",
     'invalid value for field "worker" of layout "twitter": -1',
     "Fields hold whole numbers that are not negative.", FIELDS),
    ("field that is no number", "flake_make(now(), '{\"worker\": \"x\"}')", "22023", ': "x"', "Fields hold", FIELDS),
    ("long value of a field", "flake_make(now(), jsonb_build_object('worker', repeat('é', 50)))", "22023",
     ': "' + 39 * "é" + "...", "Fields hold", FIELDS),
    ("field beyond all numbers", "flake_make(now(), '{\"worker\": 1e400}')", "22003",
     'invalid value for field "worker" of layout "twitter": ' + "1".ljust(40, "0") + "...", "Fields hold", FIELDS),
    ("field that is nested deeply", "flake_make(now(), ('{\"worker\":' || repeat('[', 1000) || repeat(']', 1000) || '}')::jsonb)",
     "22023", f': {40 * "["}...', "Fields hold", FIELDS),
    ("fields that are no object", "flake_make(now(), '[1]')", "22023", "fields must be a JSON object", "keys", "For example"),
    ("timestamp of another instant", "flake_make('2024-01-01Z', '{\"timestamp\": 5}')", "22023",
     'timestamp 5 does not match the given time in layout "twitter"',
     "The tick of the given time is", "Omit the timestamp"),
    ("time outside to make", "flake_make('1999-01-01Z', '{}')", "22008", "timestamp out of range", "1999-01-01", SEE),
    ("malformed text", "flake_from_text('12x4')", "22P02", 'invalid input syntax for an ID of layout "twitter": "12x4"',
     'Character 3, "x", is not a digit of this text form.', FORMS),
    ("empty text", "flake_from_text('')", "22P02", "invalid input syntax", "Expected 1 character, got 0.", FORMS),
    ("text of the wrong length", "flake_from_text('AAAA', 'base64id')", "22P02", "invalid input syntax",
     "Expected 10 characters, got 4.", FORMS),
    ("text too large", "flake_from_text('18446744073709551616')", "22P02", "invalid input syntax",
     "The number exceeds 64 bits at character 20.", FORMS),
    ("text beyond ASCII", "flake_from_text('1ß')", "22P02", "invalid input syntax", "Character 2", FORMS),
    ("text of an impossible ID", "flake_from_text('9223372036854775808')", "22003", "is not possible", "", MADE),
    ("impossible ID to encode", "flake_to_text(-1)", "22003", "is not possible", "", MADE),
    ("impossible ID to draw", "flake_explain(1024, 'uniqueid')", "22003", "is not possible", "", MADE),
    ("impossible ID of a node", "flake_node(1024, 'uniqueid')", "22003", "is not possible", "", MADE),
    ("node by a layout like no other", "flake_node(1, 'zzz')", "22023", 'layout "zzz" does not exist', "", KNOWN),
    ("span without an order", "flake_during(1, '[2026-01-01Z,)', 'uniqueid')", "22023", "not ordered by time", "",
     "flake_timestamp"),
    ("span past the turn", "flake_during(1, '[2026-01-01Z,2085-01-01Z)', 'discord')", "22008", "timestamp out of range",
     "2084-09-06", SEE),
    ("past the turn", "flake_min('2047-01-01Z', 'instagram')", "22008", "timestamp out of range", "2046-06-27", SEE),
    ("rows of a view", "flake_take(NULL::pg_stat_activity, 'pg_class', 'x', 1)", "42809", "rows can be taken from tables only",
     "Views and foreign tables are not supported.", "SELECT * FROM flake_take(NULL::outbox"),
    ("rows of no table", "flake_take(1, 'pg_class', 'x', 1)", "42809", "rows can be taken from tables only", "", "For example"),
    ("rows of a table without IDs", "flake_take(NULL::pg_class, 'pg_class', 'x', 1)", "55000",
     "table pg_catalog.pg_class has no key to take its rows by", "Its default is flake_next", "make it the primary key"),
    ("no rows", "flake_take(NULL::pg_class, 'pg_class', 'x', 0)", "22023", "number of rows must be positive",
     "It is 0; the valid range is 1 to 2147483647.", ""),
    ("rows for nobody", "flake_take(NULL::pg_class, 'pg_class', NULL, 1)", "22004", 'argument "consumer" must not be null',
     "Only the first argument can be NULL", ""),
    ("definition with an unknown key", "flake_create_layout('x', '{\"lik\": 1}')", "22023", "unknown field `lik`", "",
     "For example"),
    ("name of a built-in layout", "flake_create_layout('si', '{\"like\": \"si\"}')", "42710", 'layout "si" already exists',
     "It is built in.", "Choose another name."),
    ("name of a built-in layout for another", "flake_create_layout('twitter', '{\"lik\": 1}')", "42710",
     'layout "twitter" already exists', "It is built in.", "Choose another name."),
    ("no layout to drop", "flake_drop_layout('x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("built-in layout to drop", "flake_drop_layout('si')", "22023", 'cannot drop layout "si" because it is built in',
     "flake_create_layout", "flake_layouts"),
    ("key like no other", "flake_seal(1, 'nobody')", "42704", 'key "nobody" does not exist', "foreign servers",
     "flake_create_key"),
    ("key beyond ASCII", "flake_unseal('x', 'ß')", "42704", r'key "\xc3\x9f" does not exist', "", "flake_create_key"),
    ("key of any length", "flake_seal_uuid(1, repeat('x', 100000))", "42704", 'key "xxx', "", "flake_create_key"),
    ("name in capitals for a key", "flake_create_key('Usr', 'twitter')", "22023", 'invalid name for a key: "Usr"',
     "letters a to z", "short name"),
    ("secret of the wrong length", "flake_import_key('usr', 'twitter', '\\x00')", "22023",
     "secret of a key must have 16 bytes, not 1", "AES-128",
     "flake_create_key"),
    ("key like no other to rotate", "flake_rotate_key('nobody', 1, true)", "42704", 'key "nobody" does not exist', "",
     "flake_create_key"),
    ("key like no other to drop", "flake_drop_key('nobody')", "42704", 'key "nobody" does not exist', "", "flake_create_key"),
    ("NULL to convert", "flake_convert(to_regclass('misspelt'), 'twitter')", "22004", 'argument "relation" must not be null',
     "no table to convert", ""),
    ("no layout to convert to", "flake_convert('pg_class', NULL)", "22004", 'argument "layout" must not be null', "no layout",
     ""),
    ("no table to convert", "flake_convert(0::oid, 'twitter')", "42809", "cannot convert table with OID 0", "It does not exist.",
     "converts tables"),
    ("view to convert", "flake_convert('flake_layouts', 'twitter')", "42809", "cannot convert table public.flake_layouts", "It is a view.",
     "converts tables"),
    ("table whose key is no number to convert", "flake_convert('pg_class', 'twitter')", "42804", "cannot convert table pg_class",
     "Its key oid is of type oid; IDs are of type bigint.", "cannot be compared with IDs"),
    ("layout like no other to convert to", "flake_convert('pg_class', 'zzz')", "22023", 'layout "zzz" does not exist', "", KNOWN),
    ("no order of time", "flake_min(now(), 'uniqueid')", "22023", 'IDs of layout "uniqueid" are not ordered by time',
     "The order of its bits is not the order of time", "Use flake_timestamp(id, layout) instead, which can be indexed."),
    ("no order of time either", "flake_max(now(), 'uniqueid')", "22023", "not ordered by time", "", "flake_timestamp"),
    ("no order of time of a filter", "flake_plan.since(now(), 'uniqueid')", "22023", "not ordered by time", "",
     "flake_timestamp"),
    ("no layout of a filter", "flake_plan.before('infinity', 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("no layout of a filter either", "flake_plan.since(now(), 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("no order of time after", "flake_plan.after(now(), 'uniqueid')", "22023", "not ordered by time", "", "flake_timestamp"),
    ("no order of time until", "flake_plan.until(now(), 'uniqueid')", "22023", "not ordered by time", "", "flake_timestamp"),
    ("no order of time before", "flake_plan.before(now(), 'uniqueid')", "22023", "not ordered by time", "", "flake_timestamp"),
    ("no layout after", "flake_plan.after(now(), 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("no layout until", "flake_plan.until(now(), 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("no first ID of a span", "flake_plan.first('(,)', 'uniqueid')", "22023", "not ordered by time", "", "flake_timestamp"),
    ("no last ID of a span", "flake_plan.last('(,)', 'uniqueid')", "22023", "not ordered by time", "", "flake_timestamp"),
    ("first ID of a span by a layout like no other", "flake_plan.first('(,)', 'x')", "22023", 'layout "x" does not exist', "",
     KNOWN),
    ("last ID of a span by a layout like no other", "flake_plan.last('(,)', 'x')", "22023", 'layout "x" does not exist', "",
     KNOWN),
    ("span by a layout like no other", "flake_during(1, '(,)', 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("parts by a layout like no other", "flake_make(now(), '{}', 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("text by a layout like no other", "flake_to_text(1, 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("text of a layout like no other", "flake_from_text('1', 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("drawing by a layout like no other", "flake_explain(1, 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("batch of a layout like no other", "flake_batch('x', 1)", "22023", 'layout "x" does not exist', "", KNOWN),
    ("batch of a layout to read only", "flake_batch('yitter', 1)", "22023", 'cannot make IDs of layout "yitter"', "only reads",
     "WHERE generates"),
    ("negative batch", "flake_batch('twitter', -1)", "22023", "count must not be negative", "The count is -1", ""),
    ("cover by a layout like no other", "flake_cover(1, 'x')", "22023", 'layout "x" does not exist', "", KNOWN),
    ("cover of an impossible ID", "flake_cover(-1)", "22003", "is not possible", "", MADE),
    ("long fields", "flake_make(now(), jsonb_build_object('worker', repeat('x', 20000)))", "54000", "JSON is too long",
     "Its text has 20014 bytes; flake reads at most 16000 bytes of text.", ""),
    ("large fields", "flake_make(now(), jsonb_build_object('worker', repeat('x', 200000)))", "54000", "JSON is too long",
     "It takes 2000", ""),
    ("metabyte of a later sno", "sno_next(m) FROM (VALUES (0), (256)) v(m)", "22023", "metabyte 256 is out of range for a sno",
     "The valid range is 0 to 255.", ""),
    ("metabyte of a new sno", "sno_next(256)", "22023", "metabyte 256 is out of range for a sno", "The valid range is 0 to 255.",
     ""),
    ("partition of a new sno", "sno_next(0, 32768)", "22023", "partition 32768 is out of range for a sno",
     "The valid range is 0 to 32767.", "assigned automatically"),
    ("another metabyte", "sno_with_metabyte(sno_next(), 256)", "22023", "metabyte 256 is out of range for a sno", "", ""),
    ("partition of a sno", "sno_make(now(), 0, 65536)", "22003", "partition 65536 is out of range for a sno", "0 to 65535.",
     "assigned automatically"),
    ("time of a sno", "sno_make('1999-01-01Z')", "22008", 'timestamp out of range for layout "sno"', "1999-01-01", SEE),
    ("time of the smallest sno", "sno_min('1999-01-01Z')", "22008", 'timestamp out of range for layout "sno"', "1999-01-01", SEE),
    ("time of the largest sno", "sno_max('1999-01-01Z')", "22008", 'timestamp out of range for layout "sno"', "1999-01-01", SEE),
    ("bytes to encode", "sno_encode('\\x00')", "22023", "a sno must have 10 bytes, not 1", "", ""),
    ("text to decode", "sno_decode('x')", "22P02", 'invalid input syntax for type sno: "x"', "Expected 16 characters",
     "16 characters"),
]  # fmt: skip


def check(error, sqlstate, message, detail, hint):
    diag = error.value.diag
    assert diag.sqlstate == sqlstate
    assert message in diag.message_primary
    assert diag.message_detail and detail in diag.message_detail
    # An empty hint means that the error has none.
    assert hint in diag.message_hint if hint else diag.message_hint is None


@pytest.mark.parametrize("sql, expected", [pytest.param(row[1], row[2:], id=row[0]) for row in PLAIN])
def test_each_mistake_has_its_sqlstate_detail_and_hint(server, sql, expected):
    with server.connect() as db:
        db.execute("SET timezone = 'UTC'")
        with pytest.raises(psycopg.Error) as error:
            db.execute("SELECT " + sql)
        check(error, *expected)
        # The session can still make IDs afterwards.
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)


@pytest.fixture(scope="module")
def configured(servers):
    return servers("max_connections=100")


# Columns: settings | call | SQLSTATE | message | DETAIL | HINT
CONFIGURATIONS = [
    ("node_id = node_count", ["flake.node_id=4", "flake.node_count=4"], "flake_next('twitter')", "22023",
     "node 4 is out of range for 4 nodes", "flake.node_id is 4, but flake.node_count is 4; the valid range is 0 to 3.",
     "Correct flake.node_id and flake.node_count in the server's configuration"),
    ("more nodes than workers", ["flake.node_id=4", "flake.node_count=1025"], "flake_next('twitter')", "22023",
     'layout "twitter" has too few workers for 1025 nodes',
     "The layout has 1024 workers, but flake.node_count is 1025.", "Lower flake.node_count"),
    ("more nodes than there is one worker", ["flake.node_id=0", "flake.node_count=2"], "flake_next('si_single')", "22023",
     'layout "si_single" has too few workers for 2 nodes', "The layout has 1 worker, but flake.node_count is 2.",
     "more worker bits"),
    ("fewer snos of a partition than turns", ["flake.node_id=0", "flake.node_count=32768"], "sno_next(0, 1)", "55000",
     'this node has too few IDs of layout "sno"',
     "In each tick, this node has 1 worker with 2 sequence numbers each, which cannot be divided into 8 parts.",
     "Lower flake.node_count and restart"),
]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize(
    "settings, call, expected", [pytest.param(row[1], row[2], row[3:], id=row[0]) for row in CONFIGURATIONS]
)
def test_an_impossible_configuration_is_an_error(configured, settings, call, expected):
    configured.restart(*settings)
    with configured.connect() as db:
        for _ in range(2):
            with pytest.raises(psycopg.Error) as error:
                db.execute(f"SELECT {call}")
            check(error, *expected)
        # Existing IDs can be read in any configuration.
        assert db.execute("SELECT flake_timestamp(1, 'twitter'), sno_timestamp('2222222222222222')").fetchone()


def test_node_settings_are_in_force_until_the_next_start(servers):
    server = servers("flake.node_id=1", "flake.node_count=4")
    assert server.value("SELECT (flake_decode(flake_next('twitter'))).worker / 256") == 1
    server.reload("flake.node_id=3")
    with server.connect() as db:
        notices = []
        # The text of a notice is available only while it is handled.
        db.add_notice_handler(lambda n: notices.append((n.severity, n.message_primary, n.message_hint)))
        assert db.execute("SELECT (flake_decode(flake_next('twitter'))).worker / 256").fetchone() == (1,)
        db.execute("SELECT flake_next('twitter')")
        assert notices == [(
            "WARNING", "flake.node_id = 3 and flake.node_count = 4 are not in force; this server is node 1 of 4",
            "Restart the server to apply the new settings.",
        )]  # fmt: skip
    server.restart()
    assert server.value("SELECT (flake_decode(flake_next('twitter'))).worker / 256") == 3


# Columns: clock | layout | SQLSTATE | message | DETAIL | HINT
CLOCKS = [
    ("timestamp used up", "2080-07-10 17:30:31", "twitter", "2200H", 'reached the last tick of layout "twitter"',
     "Its last tick ended at 2080-07-10 17:30:30.209+00.", "Check the server's clock"),
    ("timestamp used up in 34 years", "2056-01-01 00:00:00", "si", "2200H", 'reached the last tick of layout "si"',
     "Its last tick ended at 2055-11-04 19:53:47.776+00.", "use a layout with a later epoch"),
    ("timestamp of a sno used up", "2079-09-07 15:47:36", "sno", "2200H", 'reached the last tick of layout "sno"',
     "Its last tick ended at 2079-09-07 15:47:35.552+00.", "use a layout with a later epoch"),
]  # fmt: skip


@pytest.mark.parametrize("clock, layout, expected", [pytest.param(row[1], row[2], row[3:], id=row[0]) for row in CLOCKS])
def test_a_clock_outside_of_a_layouts_time_is_an_error(servers, clock, layout, expected):
    server, call = servers(clock="+0"), "sno_next()" if layout == "sno" else f"flake_next('{layout}')"
    server.set_clock(clock)
    with server.connect() as db:
        db.execute("SET timezone = 'UTC'")
        with pytest.raises(psycopg.Error) as error:
            db.execute(f"SELECT {call}")
        check(error, *expected)
        server.set_clock("+0")
        assert db.execute(f"SELECT {call} IS NOT NULL").fetchone() == (True,)


def test_a_generator_that_lives_past_the_last_tick_raises_an_error(servers):
    server = servers(clock="@2080-07-10 17:20:00")
    with server.connect() as db:
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)
        server.set_clock("@2080-07-10 17:30:31")
        with pytest.raises(psycopg.errors.SequenceGeneratorLimitExceeded):
            db.execute("SELECT flake_next('twitter')")


def test_a_standby_makes_ids_once_it_is_promoted(servers):
    primary = servers()
    standby = servers(standby_of=primary)
    calls = {"flake_next('twitter')": "flake_next", "flake_batch('twitter', 1)": "flake_next", "sno_next()": "sno_next"}
    with standby.connect() as db:
        for call, name in calls.items():
            error = pytest.raises(psycopg.errors.ReadOnlySqlTransaction, db.execute, f"SELECT {call}").value
            assert error.diag.message_primary == f"cannot execute {name}() during recovery"
        assert db.execute("SELECT flake_timestamp(1)").fetchone()
        standby.promote()
        assert None not in db.execute(f"SELECT {', '.join(calls)}").fetchone()


REFUSED_IN_RECOVERY = [
    "flake_internal.flake_record_mark()", "flake_accept_clock()", "flake_accept_turn()", "flake_start_above(1, 'twitter')",
    "flake_cover(1, 'twitter')", "flake_publish_watermark()", "flake_convert('pg_class', 'twitter')",
]  # fmt: skip
REFUSED_AS_READ_ONLY = [
    """flake_create_layout('new', '{"like": "si"}')""", "flake_drop_layout('old')", "flake_create_key('new', 'si')",
]  # fmt: skip


def test_a_standby_does_not_begin_to_use_time(servers):
    """A ledger that a standby had begun would keep the primary's turn after a promotion."""
    primary = servers()
    primary.sql("SELECT flake_next('twitter')")
    standby = servers(standby_of=primary)
    file = standby.dir / "data" / "flake.mark"
    before = file.read_bytes()
    for call in REFUSED_IN_RECOVERY:
        error = pytest.raises(psycopg.errors.ReadOnlySqlTransaction, standby.sql, f"SELECT {call}").value
        name = call.partition("(")[0].removeprefix("flake_internal.")
        assert error.diag.message_primary == f"cannot execute {name}() during recovery"
    assert file.read_bytes() == before
    primary.sql("""SELECT flake_create_layout('old', '{"like": "si"}')""")
    standby.wait_for_replay(primary)
    for call in REFUSED_AS_READ_ONLY:
        error = pytest.raises(psycopg.errors.ReadOnlySqlTransaction, standby.sql, f"SELECT {call}").value
        assert error.diag.message_primary == f"cannot execute {call.partition('(')[0]}() in a read-only transaction"


@pytest.mark.parametrize("encoding", ["LATIN1", "EUC_JP", "SQL_ASCII"])
def test_names_in_databases_of_other_encodings_are_shown(server, encoding):
    server.sql(f"CREATE DATABASE {encoding} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with server.connect(dbname=encoding.lower()) as db:
        db.execute("CREATE EXTENSION flake")
        name = "chr(228)" if encoding == "LATIN1" else "convert_from('\\xa4a2', 'EUC_JP')"
        if encoding == "SQL_ASCII":
            name = "chr(200)"
        with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
            db.execute(f"SELECT flake_next({name})")
        assert error.value.diag.message_primary.startswith('layout "\\x')
        with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
            db.execute(f"SELECT flake_make(now(), jsonb_build_object({name}, 1))")
        assert "has no field" in error.value.diag.message_primary
        with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
            db.execute(f"SELECT flake_create_layout('x', jsonb_build_object({name}, 1))")
        assert "unknown field" in error.value.diag.message_primary
        with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
            db.execute(
                f"""DO $$ BEGIN EXECUTE format('CREATE SERVER x FOREIGN DATA WRAPPER flake_layout OPTIONS (definition %L)',
                    jsonb_build_object({name}, 1)); END $$"""
            )
        assert "unknown field `?" in error.value.diag.message_primary
        assert db.execute("SELECT flake_next('twitter') > 0").fetchone() == (True,)


@pytest.mark.matrix
@pytest.mark.parametrize("settings", [[], ["shared_preload_libraries=flake"]])
def test_errors_have_no_backtraces(servers, settings):
    """Rust's backtraces do not help clients, so errors lack them whatever the server's environment says."""
    server = servers(*settings)
    server.environment["SERVER_ENV"] = "RUST_BACKTRACE=full"
    server.restart()
    server.sql("""SELECT flake_create_layout('slow', '{"epoch": "2024-01-01T00:00:00Z", "tick": "2s", "fields": [
                      {"name": "t", "bits": 41, "role": "timestamp"}, {"name": "s", "bits": 12, "role": "sequence"}]}')""")
    with server.connect() as db:
        db.execute("SET statement_timeout = '500ms'")
        wait = "SELECT flake_next('slow') FROM generate_series(1, 100000)"
        error = pytest.raises(psycopg.errors.QueryCanceled, db.execute, wait).value.diag
        assert (error.message_primary, error.message_detail) == ("canceling statement due to statement timeout", None)
        # PostgreSQL raises an error in a function that flake has called.
        create = "SELECT flake_create_layout('slow-', '{\"like\": \"si\"}')"
        db.execute("BEGIN READ ONLY")
        error = pytest.raises(psycopg.errors.ReadOnlySqlTransaction, db.execute, create).value.diag
        assert error.message_detail is None


def test_a_cancellation_that_comes_with_a_warning_ends_the_statement_only(servers):
    """PostgreSQL processes a cancellation after each message. It ends the statement, and the session continues."""
    server = servers("flake.node_id=1", "flake.node_count=4")
    server.sql("SELECT flake_next('twitter')")
    server.reload("flake.node_id=3")
    for call in "flake_next('twitter')", "sno_next()":
        with server.connect() as db:
            with pytest.raises(psycopg.errors.QueryCanceled):
                db.execute(f"SELECT pg_cancel_backend(pg_backend_pid()), {call} FROM generate_series(1, 100000)")
            db.execute(f"SELECT {call}")


@pytest.mark.matrix
def test_a_cancellation_while_the_library_is_loaded_leaves_it_usable(servers):
    """The library warns of a client's invalid setting when it is loaded. The input function of an array's elements is looked up
    when a value is read."""
    server = servers()
    server.sql("SELECT flake_next('twitter')")
    with server.connect(options="-c flake.node_id=x") as db:
        with pytest.raises(psycopg.errors.QueryCanceled):
            read = "('{' || repeat('2', 16) || '}')::sno[]"
            db.execute(f"SELECT pg_cancel_backend(pg_backend_pid()), {read} FROM generate_series(1, 100000)")
        db.execute("SELECT flake_next('twitter')")
