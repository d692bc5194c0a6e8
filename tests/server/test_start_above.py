"""flake_start_above: the next ID of this server is above an ID from elsewhere."""

import time

import psycopg
import pytest

from clients import Load, Made
from standing_clock import cancelled, server_at_0

HOUR_AHEAD = "flake_max(clock_timestamp() + interval '1 hour', 'twitter')"


@pytest.fixture
def server(servers):
    return servers(clock="+0")


def above(server, id, *more):
    arguments = ", ".join([f"{id}", "'twitter'", *more])
    return server.value(f"SELECT flake_start_above({arguments})")


@pytest.mark.matrix
@pytest.mark.parametrize("ahead", ["0.5 s", "4 s"])
def test_the_next_ids_of_all_sessions_are_above(server, ahead):
    made = Made()
    with server.connect() as db, Load(server, made, sessions=4):
        made.make(db, 10)
        before, id = server.sql(f"SELECT clock_timestamp(), flake_max(clock_timestamp() + interval '{ahead}', 'twitter')")[0]
        from_when = above(server, id)
        assert from_when > before
        for session in [db, server.connect()]:
            assert session.execute("SELECT flake_next('twitter')").fetchone()[0] > id
            assert session.execute("SELECT flake_timestamp(flake_next('base64id'), 'base64id')").fetchone()[0] >= from_when


@pytest.mark.matrix
@pytest.mark.parametrize(("ids", "is_above"), [
    ("flake_batch('twitter', %s)", "%s > flake_max(%s, 'twitter')"),
    ("flake_next('twitter') FROM generate_series(1, %s)", "%s > flake_max(%s, 'twitter')"),
    ("sno_next() FROM generate_series(1, %s)", "%s::sno > sno_max(%s)"),
], ids=["batch", "next", "sno"])  # fmt: skip
def test_sessions_leave_what_they_have_taken(own_servers, ids, is_above):
    """The rest of a session's block is lower."""
    server = server_at_0(own_servers)
    with server.connect() as db:
        db.execute(f"SELECT {ids}", (5,))
        instant = server.value("SELECT clock_timestamp() + interval '0.5 s'")
        above(server, f"flake_max('{instant}', 'twitter')")
        id, = db.execute(f"SELECT {ids}", (1,)).fetchone()
        assert server.value(f"SELECT {is_above}", id, instant)


def test_nothing_happens_where_ids_are_above_already(server):
    server.sql("SELECT flake_next('twitter')")
    before = server.sql("SELECT floor, generation FROM flake_stat")
    assert above(server, "flake_make('2020-01-01', '{}')") <= server.value("SELECT clock_timestamp()")
    assert server.sql("SELECT floor, generation FROM flake_stat") == before
    server.sql("SELECT flake_next('twitter')")


def test_an_instant_far_ahead_needs_force(server):
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as error:
        above(server, HOUR_AHEAD)
    assert error.value.diag.message_primary == "ID is too far ahead of the clock"
    assert error.value.diag.message_detail.endswith(" ahead. IDs of all layouts would lead the clock.")
    assert "force => true" in error.value.diag.message_hint
    assert server.value("SELECT flake_timestamp(flake_next('twitter')) < now() + interval '10 s'")

    id = server.value(f"SELECT {HOUR_AHEAD}")
    above(server, id, "force => true")
    # The lead stays, whatever is lost.
    server.restart(while_stopped=(server.dir / "data" / "flake.mark").unlink)
    for layout in ["twitter", "si"]:
        assert server.value(f"SELECT flake_timestamp(flake_next('{layout}'), '{layout}') > flake_timestamp({id})")
    assert 3500 < server.value("SELECT extract(epoch FROM lead)::float FROM flake_stat") < 3700


def test_ids_are_above_a_dump_restored_where_the_clock_is_behind(server):
    """The dump comes from a server whose clock is right."""
    id = server.value("SELECT flake_next('twitter')")
    server.sql(f"CREATE TABLE restored AS SELECT {id} AS id")
    server.restart(while_stopped=lambda: ((server.dir / "data" / "flake.mark").unlink(), server.set_clock("-3")))
    server.sql("DROP EXTENSION flake; CREATE EXTENSION flake")
    above(server, "(SELECT max(id) FROM restored)")
    assert server.value("SELECT flake_next('twitter')") > id


def test_snos_start_above_too(server):
    id = server.value("SELECT sno_max(clock_timestamp() + interval '2 s')")
    server.value("SELECT sno_start_above(%s)", id)
    assert server.value("SELECT sno_next() > %s::sno", id)
    with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
        server.sql("SELECT sno_start_above(sno_max(clock_timestamp() + interval '1 day'))")


def test_called_again_after_a_cancellation_it_waits_again(own_servers):
    """The function returns only when no session can use time that was granted before, even if another call has raised the
    marks."""
    server = server_at_0(own_servers)
    with server.connect() as db, server.connect() as operator:
        db.execute("BEGIN; SELECT flake_next('twitter')")
        id, = operator.execute("SELECT flake_min(clock_timestamp() + interval '2.5 s')").fetchone()
        for _ in range(2):
            with cancelled(operator), pytest.raises(psycopg.errors.QueryCanceled):
                operator.execute(f"SELECT flake_start_above({id}, 'twitter')")
        db.execute("ROLLBACK")
        operator.execute(f"SELECT flake_start_above({id}, 'twitter')")


@pytest.mark.matrix
@pytest.mark.parametrize("setting", ["0", "'0.7 s'"], ids=["default", "lock_timeout"])
def test_a_transaction_that_stays_open_is_named_in_an_error(own_servers, setting):
    """The session of another database is idle. New sessions are above the ID all the same, and the call succeeds once the
    transaction has ended."""
    server = own_servers()
    server.sql("CREATE DATABASE other TEMPLATE postgres")
    notices = []
    with server.connect(dbname="other") as db, server.connect() as operator:
        operator.add_notice_handler(lambda diag: notices.append((diag.message_primary, diag.message_detail)))
        db.execute("BEGIN; SELECT flake_next('twitter')")
        operator.execute(f"SET lock_timeout = {setting}")
        # A call that waits for ever fails here.
        operator.execute("SET statement_timeout = '1 min'")
        id, = operator.execute("SELECT flake_max(clock_timestamp() + interval '0.5 s', 'twitter')").fetchone()
        since = time.monotonic()
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as error:
            operator.execute("SELECT flake_start_above(%s, 'twitter')", (id,))
        lasted = time.monotonic() - since
        # The machine may be slow, but a lock_timeout must end the wait before the default does.
        assert lasted >= 10 if setting == "0" else 0.7 <= lasted < 10
        whom = f'process {db.info.backend_pid} in database "other"'
        diag = error.value.diag
        assert diag.message_primary == "transactions that have made IDs are still open"
        assert diag.message_detail == (
            f"New transactions make IDs above the given one, but these may still make lower ones: {whom}.")
        assert diag.message_hint.startswith("End them, as by pg_terminate_backend, or wait. Then call the function again")
        assert notices == [("waiting for transactions that have made IDs", f"They belong to {whom}.")]
        for name in ["postgres", "other"]:
            with server.connect(dbname=name) as new:
                assert new.execute("SELECT flake_next('twitter')").fetchone()[0] > id, name
        db.execute("ROLLBACK")
        operator.execute("SELECT flake_start_above(%s, 'twitter')", (id,))


@pytest.mark.matrix
def test_bad_arguments_are_errors(server):
    for call, state in [("flake_start_above(-1, 'twitter')", "22003"), ("flake_start_above(1, 'nothing')", "22023")]:
        assert pytest.raises(psycopg.Error, server.sql, f"SELECT {call}").value.sqlstate == state
    assert server.value("SELECT flake_start_above(NULL::bigint, 'twitter')") is None
