"""The file flake.mark: when it is written, and what happens if it cannot be read or written, or if that takes long."""

import contextlib
import os
import threading
import time

import psycopg
import pytest

from clients import MAKE, Made
from standing_clock import cancelled
from waiting import is_busy, sleeps, wait_until

# The size of each half in bytes, and where a record has its number.
HALF, NUMBER = 4096, slice(16, 24)


def mark(server):
    return server.dir / "data" / "flake.mark"


def numbers(content):
    return [int.from_bytes(content[half : half + HALF][NUMBER], "little") for half in [0, HALF]]


def make_until_refused(db, made):
    """Makes IDs until they are refused, three seconds later at most."""
    errors = []

    def refused():
        try:
            made.make(db, 10)
        except psycopg.Error as error:
            errors.append(error)
        return errors

    wait_until(refused)
    return errors[0]


def make_until_written(server, db, made):
    """Makes IDs after the file can be created again. A session that asks first after the granted time has ended is refused
    once."""

    def written():
        with contextlib.suppress(psycopg.errors.DiskFull):
            made.make(db, 10)
        return mark(server).exists()

    wait_until(written)


@pytest.mark.matrix
def test_a_file_that_cannot_be_written_stops_ids_at_the_mark(servers):
    """IDs are made until the mark, then there is an error, and when the file can be written again, IDs are made again."""
    server, made = servers(), Made()
    with server.connect() as db:
        made.make(db, 10)
        mark(server).chmod(0o400)
        error = make_until_refused(db, made)
        assert isinstance(error, psycopg.errors.InsufficientPrivilege)
        assert error.diag.message_primary == 'could not write file "flake.mark": Permission denied'
        assert error.diag.message_hint.startswith("Check that the data directory is writable")
        assert isinstance(make_until_refused(db, made), psycopg.errors.InsufficientPrivilege)
        mark(server).chmod(0o600)
        made.make(db, 10)

        # The remains of a failed attempt are removed, and the next attempt succeeds.
        mark(server).unlink()
        mark(server).with_name("flake.mark.new").symlink_to("/dev/full")
        make_until_written(server, db, made)

        mark(server).unlink()
        make_until_written(server, db, made)
    server.restart(mode="immediate")
    with server.connect() as db:
        made.make(db, 10)


@pytest.mark.matrix
def test_the_file_is_written_about_every_two_seconds(own_servers):
    """A session that begins or ends writes nothing."""
    server = own_servers()
    file = server.dir / "data" / "flake.mark"

    def written():
        return max(numbers(file.read_bytes()))

    def make_in(sessions):
        for _ in range(sessions):
            with server.session() as db:
                db.execute("SELECT flake_next('twitter')")

    make_in(1)
    for others in [0, 1]:
        with contextlib.ExitStack() as stack:
            if others:
                stack.enter_context(server.connect()).execute("SELECT flake_next('twitter')")
            began, before = time.monotonic(), written()
            make_in(50)
            periods = (time.monotonic() - began) // 2 + 1
            assert written() - before <= periods


@contextlib.contextmanager
def stuck_disk(server):
    """Makes processes that read or write the file wait until the end of the block."""
    kept, stuck = mark(server).with_suffix(".kept"), mark(server).with_suffix(".stuck")
    os.link(mark(server), kept)
    os.mkfifo(stuck)  # Opening it lasts until somebody opens the other end.
    stuck.chmod(0o666)
    stuck.replace(mark(server))
    try:
        yield
    finally:
        # A waiting process continues, and finds that this is not a regular file.
        both_ends = os.open(mark(server), os.O_RDWR)
        kept.replace(mark(server))
        os.close(both_ends)


@contextlib.contextmanager
def stuck_writer(server):
    """A session that waits for the disk and has the right to change the ledger. No other session can make IDs."""
    with server.session() as before:
        before.execute(MAKE, (1,))

    ends = threading.Event()

    def make():
        with contextlib.suppress(psycopg.Error):
            while not ends.is_set():
                db.execute(MAKE, (10,))

    def is_stuck():
        """Returns whether the granted time has ended and the session sleeps in a system call that PostgreSQL does not know."""
        return server.value("SELECT mark < now() FROM flake_stat") and is_busy(server, db, "") and sleeps(db)

    writer = threading.Thread(target=make)
    with server.session() as db, contextlib.ExitStack() as after, stuck_disk(server):
        writer.start()
        after.callback(writer.join)
        after.callback(ends.set)
        wait_until(is_stuck)
        yield writer


@pytest.mark.matrix
def test_sessions_that_wait_for_a_stuck_disk_can_be_canceled(servers):
    """The writing session must wait for the disk. Sessions that wait for it can be canceled, and exit."""
    server = servers()
    with stuck_writer(server) as writer:
        for _ in range(3):
            with server.connect() as db, cancelled(db):
                pytest.raises(psycopg.errors.QueryCanceled, db.execute, MAKE, (10,))
        assert server.value("SELECT ledger FROM flake_stat") == "open"
        assert writer.is_alive()
    server.sql(MAKE, 1)


@pytest.mark.matrix
@pytest.mark.parametrize("call", ["flake_next('twitter')", "sno_next()", "flake_watermark()"])
def test_a_session_canceled_at_its_first_id_is_counted_once(servers, call):
    server, sessions = servers(), "SELECT sessions FROM flake_stat"
    with server.session() as db:
        with stuck_writer(server), server.session() as gone:
            for session in gone, db, db:
                with cancelled(session):
                    pytest.raises(psycopg.errors.QueryCanceled, session.execute, f"SELECT {call}")
        assert server.value(sessions) == 1
        db.execute(f"SELECT {call}")
        assert server.value(sessions) == 1
    assert server.value(sessions) == 0


@pytest.mark.matrix
def test_a_file_that_cannot_be_read_is_an_error(servers):
    server, made = servers(), Made()
    with server.session() as db:
        made.make(db, 10)
    whole = mark(server).read_bytes()
    newest = numbers(whole).index(max(numbers(whole)))

    # Half of the newest record is lost, so the record before it counts.
    def tear():
        torn = bytearray(whole)
        torn[HALF * newest + 60 : HALF * newest + 100] = b"x" * 40
        mark(server).write_bytes(torn)

    server.restart(while_stopped=tear)
    with server.connect() as db:
        made.make(db, 10)

    # The file is cut off. The lost part may be the newer record.
    server.restart(while_stopped=lambda: mark(server).write_bytes(whole[:HALF]))
    with server.connect() as db:
        assert pytest.raises(psycopg.errors.DataCorrupted, made.make, db, 1)
    server.restart(while_stopped=lambda: mark(server).write_bytes(b"x" * 8192))
    for _ in range(2):
        with server.connect() as db:
            error = pytest.raises(psycopg.errors.DataCorrupted, made.make, db, 1).value.diag
            assert error.message_primary == 'file "flake.mark" contains no valid record'
            assert "You can delete it" in error.message_hint
            told = 'SELECT ok, detail, hint FROM flake_check() WHERE name = \'lead\''
            ((ok, detail, hint),) = db.execute(told).fetchall()
            assert (ok, hint) == (False, error.message_hint)
            assert detail == f"No IDs can be made: {error.message_primary}. {error.message_detail}"
    # A file that never ends is not read to its end.
    mark(server).unlink()
    mark(server).symlink_to("/dev/zero")
    with server.connect() as db:
        assert pytest.raises(psycopg.errors.DataCorrupted, made.make, db, 1)
    mark(server).unlink()
    with server.connect() as db:
        made.make(db, 10)
    # The file exists, but the server may not read it.
    server.restart(while_stopped=lambda: mark(server).chmod(0))
    with server.connect() as db:
        error = pytest.raises(psycopg.Error, made.make, db, 1).value.diag
        assert error.message_primary.startswith('could not read file "flake.mark"'), error.message_primary
        assert db.execute(told).fetchone()[1].startswith(f"No IDs can be made: {error.message_primary}. ")
    mark(server).chmod(0o600)
    with server.connect() as db:
        made.make(db, 10)
        assert db.execute(told).fetchone()[0]


@pytest.mark.matrix
def test_a_file_that_is_cut_off_in_a_running_server_is_an_error(own_servers):
    """The lost part may be the newer record. A session that exits must not extend the file again."""
    server, made = own_servers(), Made()
    with server.session() as db:
        made.make(db, 10)
        os.truncate(mark(server), HALF)
    assert mark(server).stat().st_size == HALF
    server.restart()
    with server.connect() as db:
        assert pytest.raises(psycopg.errors.DataCorrupted, made.make, db, 1)
