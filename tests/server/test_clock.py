"""A clock that is set while IDs are made, and waits that can be ended."""

import pathlib
import re
import threading
import time

import psycopg
import pytest


@pytest.fixture(scope="module")
def faked(servers):
    return servers(clock="+0")


@pytest.fixture
def advanced(servers):
    """For times to come, which other tests would have to wait for."""
    return servers(clock="+0")


def ids(db, count, layout="twitter"):
    rows = db.execute("SELECT flake_next(%s) FROM generate_series(1, %s)", (layout, count))
    return [id for id, in rows]


def test_a_small_step_back_is_waited_out(faked):
    faked.set_clock("+0")
    with faked.connect() as db:
        before = ids(db, 1000)
        faked.set_clock("-0.5")
        after = ids(db, 1000)
        assert len({*before, *after}) == 2000
        assert max(before) < min(after)
        steps, waited = db.execute("SELECT clock_steps, waited FROM flake_generators").fetchone()
        assert steps == 1
        assert 0.3 < waited.total_seconds() < 5


@pytest.mark.parametrize("layout", ["twitter", "base64id"])
def test_a_large_step_back_is_an_error_until_the_clock_is_back(faked, layout):
    faked.set_clock("+0")
    with faked.connect() as db:
        before = ids(db, 100, layout)
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
        assert db.execute("SELECT clock_steps FROM flake_generators").fetchone() == (1,)
        faked.set_clock("+0")
        after = ids(db, 100, layout)
        assert len({*before, *after}) == 200


def test_how_long_is_waited_is_set_by_the_user(faked):
    faked.set_clock("+0")
    with faked.connect() as db:
        before = ids(db, 10)
        faked.set_clock("-2.5")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            ids(db, 1)
        db.execute("SET flake.max_clock_wait = 0")
        faked.set_clock("-0.5")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            ids(db, 1)
        faked.set_clock("-2.5")
        db.execute("SET flake.max_clock_wait = '10s'")
        after = ids(db, 10)
        assert max(before) < min(after)


def test_a_clock_that_stops_while_it_is_waited_for_is_an_error(advanced):
    faked = advanced
    faked.set_clock("@2030-01-01 00:00:01")
    with faked.connect() as db:
        ids(db, 10)
        faked.set_clock("2030-01-01 00:00:00.5")
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            ids(db, 1)


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_waits_can_be_cancelled_and_do_not_burn_a_core(advanced):
    """In a frozen tick a session's IDs run out."""
    faked = advanced
    faked.set_clock("+0")
    with faked.connect() as db:
        ids(db, 1)
        faked.set_clock("2031-01-01 00:00:00")
        pid = db.info.backend_pid
        with pytest.raises(psycopg.errors.QueryCanceled):
            used = processor_seconds(pid)
            threading.Timer(3, db.cancel).start()
            began = time.monotonic()
            ids(db, 40_000)
        lasted = time.monotonic() - began
        assert 2.5 < lasted < 10
        assert processor_seconds(pid) - used < lasted / 2
        issued, share, waits = db.execute("SELECT issued, ids_per_tick, overflow_waits FROM flake_generators").fetchone()
        assert (issued, waits) == (share + 1, 1)


def test_statement_timeout_ends_a_wait(server):
    with server.connect() as db:
        db.execute("SET statement_timeout = '500ms'")
        began = time.monotonic()
        with pytest.raises(psycopg.errors.QueryCanceled):
            ids(db, 100_000, "base64id")  # 4,096 in a second
        assert time.monotonic() - began < 5
        db.execute("SET statement_timeout = 0")
        assert len(ids(db, 10, "base64id")) == 10


def test_terminated_while_waiting(server):
    with server.connect() as db:
        waiting = threading.Timer(1, lambda: server.sql(f"SELECT pg_terminate_backend({db.info.backend_pid})"))
        waiting.start()
        with pytest.raises(psycopg.OperationalError):
            ids(db, 100_000, "base64id")
    assert server.value("SELECT flake_next('twitter')") > 0


@pytest.mark.parametrize("call, timestamp, tick", [
    ("flake_next('twitter')", "flake_timestamp(id)", "1 ms"),
    ("flake_next('si')", "flake_timestamp(id, 'si')", "1 ms"),
    ("sno_next()", "sno_timestamp(id)", "4 ms"),
])  # fmt: skip
def test_every_id_is_of_the_tick_in_which_it_was_made(server, call, timestamp, tick):
    """The clock is not read for every ID; that must not show."""
    late = server.sql(f"""
        SELECT count(*), count(*) FILTER (WHERE at + interval '{tick}' <= before), count(*) FILTER (WHERE at > after)
        FROM (SELECT before, {timestamp} AS at, after FROM (
            SELECT clock_timestamp() AS before, {call} AS id, clock_timestamp() AS after
            FROM generate_series(1, 1000000) OFFSET 0) made) s""")
    assert late == [(1_000_000, 0, 0)]
