"""A clock that is set while IDs are made, and waits that can be ended."""

import re
import time

import psycopg
import pytest

from standing_clock import at
from waiting import LONG, Background, cancelled_once, processor_seconds, wait_until, waits_for_the_clock, waits_in_ticks


@pytest.fixture(scope="module")
def faked(servers):
    return servers(clock="+0")


@pytest.fixture
def advanced(servers):
    """A server for times in the future, which other tests would have to wait for."""
    return servers(clock="+0")


def ids(db, count, layout="twitter"):
    rows = db.execute("SELECT flake_next(%s) FROM generate_series(1, %s)", (layout, count))
    return [id for id, in rows]


def ids_after(server, db, seconds):
    """Makes IDs while the clock stands. When they are waited for, the clock is set to an instant."""

    def go_on():
        wait_until(lambda: waits_for_the_clock(server, db))
        server.set_clock(at(seconds))

    with Background(go_on):
        return ids(db, 1000)


def test_a_small_step_back_is_waited_out(advanced):
    advanced.set_clock("@2030-01-01 00:00:00")
    with advanced.connect() as db:
        db.execute(f"SET flake.max_clock_wait = '{LONG}s'")
        before = ids(db, 1000)
        advanced.set_clock(at(-0.5))
        after = ids_after(advanced, db, 3600)
        assert len({*before, *after}) == 2000
        assert max(before) < min(after)
        waits, longest = db.execute("SELECT clock_waits, longest_wait FROM flake_stats").fetchone()
        assert waits == 1
        assert longest.total_seconds() > 0


@pytest.mark.parametrize("layout", ["twitter", "base64id"])
def test_a_large_step_back_is_an_error_until_the_clock_is_back(faked, layout):
    faked.set_clock("+0")
    waits = "SELECT clock_waits FROM flake_stats"
    with faked.connect() as db:
        before, waits_before = ids(db, 100, layout), faked.value(waits)
        faked.set_clock("-3600")
        for _ in range(2):
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as error:
                ids(db, 1, layout)
        message = error.value.diag
        assert message.message_primary == f'clock is behind the last ID of layout "{layout}"'
        assert re.match(r"The clock is 3\d\d\d\.\d+s behind, and flake.max_clock_wait is 1s\.",
                        message.message_detail)
        assert re.match("IDs can be made again once the clock has reached 20", message.message_hint)
        assert db.execute("SELECT 1").fetchone() == (1,)
        assert faked.value(waits) == waits_before + 1
        faked.set_clock("+0")
        after = ids(db, 100, layout)
        assert len({*before, *after}) == 200


def test_how_long_is_waited_is_set_by_the_user(advanced):
    with advanced.connect() as db:
        advanced.set_clock("@2030-01-01 00:00:00")
        before = ids(db, 10)
        for seconds, setting in [(-2.5, "1s"), (-0.5, "0")]:
            advanced.set_clock(at(seconds))
            db.execute(f"SET flake.max_clock_wait = '{setting}'")
            with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                ids(db, 1)
        advanced.set_clock(at(-2.5))
        db.execute(f"SET flake.max_clock_wait = '{LONG}s'")
        assert max(before) < min(ids_after(advanced, db, 3600))


# A clock that stands still, how many of the tick's 73 steps are open there, and how many ticks are used up. A session that has
# made many IDs is at most 256 microseconds ahead of the clock.
COUNTS = "SELECT ARRAY[issued, overflow_waits] FROM flake_stats"
STANDS = [("2031-01-01 00:00:00", 19, 0), ("2031-01-01 00:00:00.000999", 1, 1)]


@pytest.mark.parametrize("instant, open_steps, used_up", STANDS, ids=["ahead", "used_up"])
def test_waits_can_be_cancelled_and_do_not_burn_a_core(advanced, instant, open_steps, used_up):
    """While the clock stands, a lone session takes all IDs of the steps that are open, from all lanes, and then waits."""
    faked = advanced
    faked.set_clock("+0")
    with faked.connect() as db:
        ids(db, 1, "si")
        assert faked.value(COUNTS) == [1, 0]
        faked.set_clock(instant)
        used = []

        def waits_for_two_seconds(server, db):
            waits_in_ticks(server, db)
            for _ in range(2):
                used.append((time.monotonic(), processor_seconds(db)))
                time.sleep(2)
            return True

        with pytest.raises(psycopg.errors.QueryCanceled), cancelled_once(waits_for_two_seconds, faked, db):
            ids(db, 40_000, "si")
        (began, before), (ended, after) = used
        assert after - before < (ended - began) / 2
        issued, waits = faked.value(COUNTS)
        assert waits == used_up
        # The session begins with its own lane, and leaves out the other one if that has the lower place in the first step.
        assert issued - 1 in (open_steps * 14, open_steps * 14 - 7)


def test_only_ticks_that_were_used_up_count_as_such(server):
    """A session that keeps pace with the clock waits more often."""
    with server.connect() as db:
        db.execute("""SELECT flake_create_layout('few', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
            {"name": "timestamp", "bits": 41, "role": "timestamp"}, {"name": "sequence", "bits": 7, "role": "sequence"}]}')""")
        before = server.value(COUNTS)[1]
        ticks, = db.execute("""
            SELECT 1 + extract(epoch FROM max(at) - min(at)) * 1000
            FROM (SELECT flake_timestamp(flake_next('few'), 'few') AS at FROM generate_series(1, 3000)) s""").fetchone()
        waits = server.value(COUNTS)[1] - before
        db.execute("SELECT flake_drop_layout('few')")
    assert 0 < waits <= ticks


@pytest.fixture
def waiting_for_days(server):
    """A session whose next tick begins in some days."""
    with server.connect() as db:
        db.execute("""SELECT flake_create_layout('of_days', '{"like": "twitter", "tick": "864000s"}')""")
        db.execute("SET flake.max_clock_wait = '20d'")
        yield db
    server.sql("SELECT flake_drop_layout('of_days')")


def test_statement_timeout_ends_a_wait(waiting_for_days):
    db = waiting_for_days
    db.execute("SET statement_timeout = '500ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        ids(db, 1, "of_days")
    db.execute("SET statement_timeout = 0")
    assert len(ids(db, 10)) == 10


def test_a_waiting_session_can_be_terminated(server, waiting_for_days):
    db = waiting_for_days

    def terminate():
        wait_until(lambda: waits_for_the_clock(server, db))
        server.sql("SELECT pg_terminate_backend(%s)", db.info.backend_pid)

    with Background(terminate), pytest.raises(psycopg.OperationalError):
        ids(db, 1, "of_days")
    assert server.value("SELECT flake_next('twitter')") > 0


@pytest.mark.parametrize("call, timestamp, tick", [
    ("flake_next('twitter')", "flake_timestamp(id)", "1 ms"),
    ("flake_next('si')", "flake_timestamp(id, 'si')", "1 ms"),
    ("sno_next()", "sno_timestamp(id)", "4 ms"),
])  # fmt: skip
def test_every_id_is_of_the_tick_in_which_it_was_made(server, call, timestamp, tick):
    """The session does not read the clock for every ID, which must not show in the IDs."""
    late = server.sql(f"""
        SELECT count(*), count(*) FILTER (WHERE at + interval '{tick}' <= before), count(*) FILTER (WHERE at > after)
        FROM (SELECT before, {timestamp} AS at, after FROM (
            SELECT clock_timestamp() AS before, {call} AS id, clock_timestamp() AS after
            FROM generate_series(1, 200000) OFFSET 0) made) s""")
    assert late == [(200_000, 0, 0)]


def test_a_clock_before_the_epoch_is_named_in_the_error(advanced):
    """A server may start before its clock is synchronized. The error says so, instead of calling the time out of range."""
    advanced.sql("CREATE TABLE t (id bigint DEFAULT flake_next('snowflake'))")
    with advanced.connect(options="-c timezone=UTC") as db:
        rate = "SELECT ids_per_second FROM flake_layouts WHERE name = 'snowflake'"
        assert db.execute(rate).fetchone()[0] > 0
        advanced.set_clock("2019-05-06 07:08:09")
        error = pytest.raises(psycopg.Error, db.execute, "SELECT flake_next('snowflake')").value
        assert (error.sqlstate, error.diag.message_primary) == ("55000", 'the clock is before the epoch of layout "snowflake"')
        assert error.diag.message_detail == "The clock says 2019-05-06 07:08:09+00, and the epoch is 2021-01-01 00:00:00+00."
        assert error.diag.message_hint.startswith("Check the server's clock")
        ok, detail, hint = db.execute("SELECT ok, detail, hint FROM flake_check() WHERE name = 'end of layouts'").fetchone()
        assert not ok and detail.startswith("The clock says 2019-05-06 07:08:09+00. snowflake begins in ")
        assert hint.startswith("Check the server's clock")
        assert db.execute(rate).fetchone() == (None,)


def test_a_layout_that_has_ended_has_no_rate(advanced):
    with advanced.connect() as db:
        db.execute("""SELECT flake_create_layout('short', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
            {"name": "timestamp", "bits": 30, "role": "timestamp"}, {"name": "sequence", "bits": 10, "role": "sequence"}]}')""")
        rate = "SELECT ids_per_second FROM flake_layouts WHERE name = 'short'"
        ends = db.execute("SELECT ends_at > clock_timestamp(), name FROM flake_layouts WHERE name = 'short'").fetchone()
        assert ends == (False, "short") and db.execute(rate).fetchone() == (None,)
        assert pytest.raises(psycopg.Error, db.execute, "SELECT flake_next('short')").value.sqlstate == "2200H"
