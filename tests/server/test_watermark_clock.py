"""No ID is made below an announced watermark, even if the clock is wrong or another server takes over the data."""

import pytest

from clients import Made
from standing_clock import at, make, make_in_all, server_at_0
from waiting import wait_until
from watermark import OUTBOX, announce, below, goes_on, insert, one, watermark


def test_a_first_watermark_on_a_server_binds_later_ids(own_servers):
    """No session has made an ID on this server."""
    server = own_servers()
    assert server.value("SELECT flake_watermark() BETWEEN now() - interval '1 min' AND clock_timestamp()")
    server.sql(OUTBOX)
    with server.connect() as db:
        db.execute("BEGIN")
        id = insert(db)
        with server.connect() as tailer:
            wait_until(lambda: one(tailer, "SELECT flake_min(clock_timestamp()) > %s", id))
            assert watermark(tailer) <= id


@pytest.mark.matrix
@pytest.mark.parametrize("ids", ["IDs before", "no IDs before"])
def test_no_id_is_below_it_after_the_clock_is_set_back(own_servers, ids):
    """Sessions with IDs and sessions without IDs continue at once, above it, with every kind of ID."""
    server, made = server_at_0(own_servers), Made()
    with server.connect() as lasting:
        make(lasting, made)
        server.set_clock(at(10))
        if ids == "IDs before":
            make(lasting, made)
        announced = announce(server)
        server.set_clock(at(5))
        made = Made()
        make(lasting, made)
        make_in_all(server, made)
        assert announce(server) >= announced
        server.set_clock(at(11))
        make(lasting, made)
        make_in_all(server, made)
    assert below(server, made, announced) == set()


@pytest.mark.parametrize("first", [True, False], ids=["the session's first sno", "another one"])
def test_a_sno_after_a_step_back_in_a_transaction_holds_it(own_servers, first):
    """Snos have their own lead. The sno lies below all IDs of the transaction, so the transaction holds the watermark at it."""
    server = server_at_0(own_servers)
    server.set_clock(at(10))
    with server.connect() as writer, server.connect() as tailer:
        if not first:
            one(writer, "SELECT sno_next()::text")
        writer.execute("BEGIN")
        server.set_clock(at(11))
        one(writer, "SELECT flake_next('twitter')")
        server.set_clock(at(10.5))
        id = one(writer, "SELECT sno_next()::text")
        server.set_clock(at(10.8))
        below = "SELECT %s::sno < sno_min(flake_watermark())"
        assert not one(tailer, below, id), "the watermark has passed a sno of a transaction that has not ended"
        writer.execute("COMMIT")
        server.set_clock(at(12))
        assert one(tailer, below, id)


def test_no_id_is_below_it_after_a_long_time_of_asking_and_a_restart(own_servers):
    """Asking for watermarks extends the granted time again and again, as making IDs does."""
    server = server_at_0(own_servers)
    with server.connect() as db:
        for seconds in range(1, 40, 3):
            server.set_clock(at(seconds))
            announced = one(db, "SELECT flake_watermark()::text")
    server.restart(mode="immediate", while_stopped=lambda: server.set_clock(at(20)))
    goes_on(server, announced, 20, 36, 36.9)


@pytest.mark.matrix
@pytest.mark.parametrize("restarted", [False, True])
def test_accepting_the_clock_goes_below_it_and_says_so(own_servers, restarted):
    """Consumers lose rows that they have passed by then. From then on, the watermark is right again."""
    server, said = server_at_0(own_servers), []
    server.sql(OUTBOX)
    server.set_clock(at(3600))
    announced = announce(server)
    server.set_clock(at(0.5))
    if restarted:
        server.restart(mode="immediate")
    with server.connect() as writer, server.connect() as tailer:
        writer.add_notice_handler(lambda notice: said.append((notice.severity, notice.message_primary)))
        writer.execute("SELECT flake_accept_clock()")
        assert [severity for severity, message in said if "watermark" in message] == ["WARNING"]
        server.set_clock(at(10))
        writer.execute("BEGIN")
        id = insert(writer)
        assert one(writer, "SELECT flake_timestamp(%s) < %s::timestamptz", id, announced)
        server.set_clock(at(11))
        assert watermark(tailer) <= id
        writer.execute("COMMIT")
        assert watermark(tailer) > id


def test_a_snapshot_that_lasts_forgets_a_watermark_that_was_taken_back(own_servers):
    server = server_at_0(own_servers)
    server.sql(OUTBOX)
    server.set_clock(at(3600))
    with server.connect() as writer, server.connect() as tailer:
        tailer.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        passed = watermark(tailer)
        server.set_clock(at(0.5))
        writer.execute("SELECT flake_accept_clock()")
        server.set_clock(at(10))
        id = insert(writer)
        server.set_clock(at(7200))
        assert watermark(tailer) <= id < passed


def test_accepting_a_clock_that_no_watermark_has_passed_says_nothing(own_servers):
    server, made, said = server_at_0(own_servers), Made(), []
    with server.connect() as db:
        db.add_notice_handler(lambda notice: said.append(notice.message_primary))
        announce(server)
        server.set_clock(at(3600))
        make(db, made)
        server.set_clock(at(5))
        db.execute("SELECT flake_accept_clock()")
        make(db, made)
    assert said == []
