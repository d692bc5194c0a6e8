"""All mistakes that a user can make, in one table: SQLSTATE, message, DETAIL and HINT of each."""

import psycopg
import pytest

from mistakes import PLAIN


def check(error, sqlstate, message, detail, hint):
    diag = error.value.diag
    assert diag.sqlstate == sqlstate
    assert message in diag.message_primary
    assert diag.message_detail and detail in diag.message_detail
    # An empty hint means that the error has none.
    assert hint in diag.message_hint if hint else diag.message_hint is None


@pytest.mark.matrix
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


@pytest.mark.matrix
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
