"""flake_cover() makes a transaction hold the watermark at another transaction's ID, or raises an error if it is too late."""

import psycopg
import pytest

from standing_clock import at, running
from watermark import OUTBOX, holds, insert_in_transactions, one, passes, passes_sno, take_snapshot, watermark

COVER = {"bigint": "flake_cover", "sno": "sno_cover"}
TOO_LATE = psycopg.errors.ObjectNotInPrerequisiteState


@pytest.fixture(scope="module")
def server(servers):
    server = servers("max_prepared_transactions=2")
    server.sql(OUTBOX)
    return server


def make(db):
    return one(db, "SELECT flake_next('twitter')")


def test_an_id_that_is_covered_holds_it(writer, tailer):
    id = make(writer)
    writer.execute("BEGIN")
    assert one(writer, "SELECT flake_cover(%s)", id) == id
    assert writer.execute("SELECT flake_cover(NULL::bigint), sno_cover(NULL)").fetchone() == (None, None)
    assert holds(tailer, id)
    assert tailer.execute("SELECT pid FROM flake_open_transactions").fetchall() == [(writer.info.backend_pid,)]
    writer.execute("INSERT INTO outbox VALUES (%s)", (id,))
    assert holds(tailer, id)
    take_snapshot(tailer)
    writer.execute("COMMIT")
    insert_in_transactions(writer, 100)
    assert holds(tailer, id)
    tailer.execute("COMMIT")
    assert passes(tailer, id)


@pytest.mark.parametrize("call", [
    # Read by twitter, which counts from another instant.
    "flake_cover(flake_next('like_unix'))", "flake_cover(9223372036854775807, 'twitter')",
    "sno_cover(sno_min(now() + '1 min'))",
])  # fmt: skip
def test_an_id_ahead_of_the_clock_is_refused(server, writer, tailer, call):
    """If an ID is read by a layout that has not made it, the watermark may have passed it already."""
    server.sql("""SELECT flake_create_layout('like_unix', '{"like": "twitter", "epoch": "1970-01-01T00:00:00Z"}')
                  WHERE NOT EXISTS (SELECT FROM flake_layouts WHERE name = 'like_unix')""")
    error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, writer.execute, f"SELECT {call}").value.diag
    assert error.message_primary == "ID is too far ahead of the clock"
    assert error.message_detail and error.message_hint
    assert tailer.execute("SELECT * FROM flake_open_transactions").fetchall() == []
    writer.execute("BEGIN; SELECT flake_cover(flake_next('like_unix'), 'like_unix'); SELECT sno_cover(sno_min(now() + '4 s'))")
    writer.execute("COMMIT")


@pytest.mark.parametrize("make, kind, passes", [("flake_next('twitter')", "bigint", passes), ("sno_next()", "sno", passes_sno)])
def test_an_id_below_a_watermark_is_refused(writer, tailer, make, kind, passes):
    """It does not hold the watermark."""
    id = one(writer, f"SELECT {make}")
    assert passes(tailer, id)
    before = watermark(tailer)
    error = pytest.raises(TOO_LATE, writer.execute, f"SELECT {COVER[kind]}('{id}')").value.diag
    assert error.message_detail and error.message_hint and watermark(tailer) >= before
    # A transaction with IDs of its own may not cover it either. A new ID can always be covered.
    writer.execute(f"BEGIN; SELECT {make}; SAVEPOINT s")
    with pytest.raises(TOO_LATE):
        writer.execute(f"SELECT {COVER[kind]}('{id}')")
    writer.execute(f"ROLLBACK TO s; SELECT {COVER[kind]}({make}); COMMIT")
    assert tailer.execute("SELECT * FROM flake_open_transactions").fetchall() == []


def test_an_earlier_id_than_the_transactions_own_holds_it(writer, tailer):
    pool = [row[0] for row in writer.execute("SELECT flake_batch('twitter', 10)").fetchall()]
    writer.execute("BEGIN")
    own = make(writer)
    writer.execute("SELECT flake_cover(%s)", (pool[0],))
    assert holds(tailer, pool[0]) and pool[0] < own
    # Covering one ID also covers the IDs above it.
    assert one(writer, "SELECT count(flake_cover(id)) FROM unnest(%s::bigint[]) id", pool) == 10
    writer.execute("COMMIT")
    assert passes(tailer, own)


def test_an_id_of_a_cursor_that_outlived_its_transaction_can_be_too_late(writer, tailer):
    """WITH HOLD makes all IDs of the cursor before the transaction ends. test_watermark.py covers one in time."""
    writer.execute("BEGIN; DECLARE ids CURSOR WITH HOLD FOR SELECT flake_batch('twitter', 3); COMMIT")
    late = one(writer, "FETCH 1 FROM ids")
    assert passes(tailer, late)
    with pytest.raises(TOO_LATE):
        writer.execute(f"INSERT INTO outbox VALUES (flake_cover({late}))")


def test_a_procedure_covers_an_id_again_after_a_commit(writer, tailer):
    writer.execute("""CREATE PROCEDURE keep(INOUT id bigint) LANGUAGE plpgsql AS $$ BEGIN
                          id := flake_next('twitter'); COMMIT; PERFORM flake_cover(id); INSERT INTO outbox VALUES (id);
                          PERFORM set_config('kept.id', id::text, false); PERFORM pg_advisory_lock_shared(1);
                      END $$""")
    writer.execute("CALL keep(NULL)")
    assert passes(tailer, int(one(writer, "SELECT current_setting('kept.id')")))


def test_an_id_of_a_long_tick_is_covered_until_the_watermark_passes_it(own_servers):
    """The tailer asks for the watermark before the ID's tick, in it, and after it."""
    server = own_servers(clock=running(-7200))
    server.sql("""SELECT flake_create_layout('of_seconds', '{"like": "twitter", "tick": "1s"}')""")
    server.set_clock(at(0.3))
    with server.connect() as writer, server.connect() as tailer:
        id = one(writer, "SELECT flake_next('of_seconds')")
        server.set_clock(at(0.6))
        # The tick has not ended, so no consumer of this layout has passed it.
        assert watermark(tailer, "of_seconds") <= id
        writer.execute(f"BEGIN; SELECT flake_cover({id}, 'of_seconds')")
        server.set_clock(at(2.3))
        assert watermark(tailer, "of_seconds") <= id
        writer.execute("COMMIT")
        assert watermark(tailer, "of_seconds") > id
        with pytest.raises(TOO_LATE):
            writer.execute("SELECT flake_cover(%s, 'of_seconds')", (id,))


@pytest.mark.matrix
@pytest.mark.parametrize("back", ["ROLLBACK", "ROLLBACK TO s; COMMIT"])
def test_no_id_is_covered_by_a_page_that_was_rolled_back(own_servers, back):
    """The server loses its file, and its clock is behind: only the page knows the watermark. A transaction drops and creates the
    extension, and covers an ID by the page that is new in it."""
    server = own_servers(clock="+0")
    cover = "SELECT flake_cover(flake_min(clock_timestamp()))"
    with server.connect() as tailer:
        assert passes(tailer, make(tailer))
    server.restart(while_stopped=(server.dir / "data/flake.mark").unlink)
    server.set_clock("-30")
    with server.connect() as db:
        db.execute(f"BEGIN; SAVEPOINT s; DROP EXTENSION flake; CREATE EXTENSION flake; {cover}; {back}")
        with pytest.raises(TOO_LATE):
            db.execute(cover)
