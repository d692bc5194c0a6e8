"""A clock that is set while IDs are made, and waits that can be ended."""

import time

import psycopg
import pytest

from waiting import LONG, cancelled_once, processor_seconds, wait_until, waits_in_ticks


@pytest.fixture
def advanced(servers):
    """A server for times in the future, which other tests would have to wait for."""
    return servers(clock="+0")


def ids(db, count, layout="twitter"):
    rows = db.execute("SELECT flake_next(%s) FROM generate_series(1, %s)", (layout, count))
    return [id for id, in rows]


LEAD = "SELECT extract(epoch FROM lead)::float FROM flake_stat"


@pytest.mark.matrix
@pytest.mark.parametrize("layout", ["twitter", "si", "base64id", "discord"])
@pytest.mark.parametrize("back", [0.5, 3600])
def test_a_clock_that_is_set_back_stops_nobody(servers, layout, back):
    """IDs continue where they were, at once, in the session that notices and in others. The lead is shown until it has passed."""
    faked = servers(clock="+0")
    with faked.connect() as db, faked.connect() as other:
        before = ids(db, 100, layout)
        assert faked.value(LEAD) < 1
        faked.set_clock(f"{-back:+}")
        after = ids(db, 100, layout) + ids(other, 100, layout)
        with faked.connect() as new:
            after += ids(new, 100, layout)
        assert len({*before, *after}) == 400
        assert faked.value("SELECT flake_timestamp(%s, %s) >= flake_timestamp(%s, %s)",
                           min(after), layout, max(before), layout)
        if back > 1:
            lead = faked.value(LEAD)
            assert back - 10 < lead < back + 10
            faked.set_clock(f"{-back + 1000:+}")
            ids(db, 1, layout)
            assert back - 1010 < faked.value(LEAD) < back - 990


def refused(db):
    """Makes IDs until that is refused, at the end of the reserved time."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        try:
            ids(db, 1)
        except psycopg.errors.ObjectNotInPrerequisiteState as error:
            return error.diag
    raise AssertionError("nothing was refused")


@pytest.mark.matrix
def test_a_lead_that_is_too_long_is_refused(servers):
    """The setting protects dates against a clock that was wrong for days, and one call ends the refusal."""
    faked = servers("flake.max_lead=1h", clock="+0")
    with faked.connect() as db:
        before = ids(db, 100)
        faked.set_clock("-7200")
        for _ in range(2):
            error = refused(db)
            assert "flake.max_lead" in error.message_detail
            assert "flake_accept_clock()" in error.message_hint
        assert db.execute("SELECT 1").fetchone() == (1,)
        faked.sql("ALTER SYSTEM SET flake.max_lead = '3h'")
        faked.reload()
        wait_until(lambda: db.execute("SHOW flake.max_lead").fetchone() == ("3h",))
        after = ids(db, 10)
        assert max(before) < min(after)
        faked.sql("ALTER SYSTEM RESET flake.max_lead")
        faked.reload()
        wait_until(lambda: db.execute("SHOW flake.max_lead").fetchone() == ("1h",))
        refused(db)
        generation = faked.value("SELECT generation FROM flake_stat")
        faked.sql("SELECT flake_accept_clock()")
        assert faked.value("SELECT generation FROM flake_stat") == generation + 1
        again = ids(db, 100)
        assert max(again) < min(before) and faked.value(LEAD) < 10


# A clock that stands still, how many of the tick's 73 steps are open there, and how many ticks are used up. A session that has
# made many IDs is at most 256 microseconds ahead of the clock.
COUNTS = "SELECT ARRAY[issued, overflow_waits] FROM flake_stat"
STANDS = [("2031-01-01 00:00:00", 19, 0), ("2031-01-01 00:00:00.000999", 1, 1)]


@pytest.mark.matrix
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

        def waits_for_a_second(server, db):
            waits_in_ticks(server, db)
            used.append((time.monotonic(), processor_seconds(db)))
            time.sleep(1)
            used.append((time.monotonic(), processor_seconds(db)))
            return True

        with pytest.raises(psycopg.errors.QueryCanceled), cancelled_once(waits_for_a_second, faked, db):
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


@pytest.mark.matrix
def test_a_layout_that_has_ended_has_no_rate(advanced):
    with advanced.connect() as db:
        db.execute("""SELECT flake_create_layout('short', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
            {"name": "timestamp", "bits": 30, "role": "timestamp"}, {"name": "sequence", "bits": 10, "role": "sequence"}]}')""")
        rate = "SELECT ids_per_second FROM flake_layouts WHERE name = 'short'"
        ends = db.execute("SELECT ends_at > clock_timestamp(), name FROM flake_layouts WHERE name = 'short'").fetchone()
        assert ends == (False, "short") and db.execute(rate).fetchone() == (None,)
        assert pytest.raises(psycopg.Error, db.execute, "SELECT flake_next('short')").value.sqlstate == "2200H"
