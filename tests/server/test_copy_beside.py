"""Watermarks, flake_take and other servers beside a COPY, which keeps rows with IDs until it inserts them together."""

import psycopg
import pytest

from copying import TRACKED, counted, distinct, load
from taking import LAST, TAKE, events, prepared, wait_until_complete
from waiting import is_busy, wait_until
from watermark import holds, insert, passes, wait_for_next_tick, watermark

COPY = "COPY outbox (event) FROM STDIN"
# Whether this session has a transaction that has made an ID.
HOLDS = "SELECT FROM flake_open_transactions WHERE pid = %s"
# Longer than what COPY reads from a client at once, and than what it keeps.
MANY = 3000


@pytest.fixture
def db(server):
    yield from prepared(server)


class Slow:
    """A COPY whose client has sent some lines, and sends the rest later."""

    def __init__(self, server, writer, lines):
        self.writer = writer
        self.cursor = writer.cursor()
        self.copy = self.cursor.copy(COPY)
        self.stream = self.copy.__enter__()
        self.send(lines)
        wait_until(lambda: server.sql(HOLDS, writer.info.backend_pid))

    def send(self, lines):
        self.stream.write("".join(f"{line}\n" for line in lines))
        # The client's library keeps lines too.
        self.writer.pgconn.flush()

    def end(self, error=None):
        if not self.copy.__exit__(type(error) if error else None, error, None) and error:
            raise error


def lines(first, count):
    return [str(n) for n in range(first, first + count)]


def test_a_slow_copy_holds_the_watermark(server, db, writer):
    """It has made IDs for rows that it has not inserted yet."""
    copy = Slow(server, writer, lines(11, MANY))
    later = insert(db)
    wait_for_next_tick(db, later)
    held = [watermark(db)]
    copy.send(lines(11 + MANY, MANY))
    assert holds(db, later)
    held.append(watermark(db))
    copy.end()
    first, rows = db.execute("SELECT min(id), count(*) FROM outbox WHERE event::int > 10").fetchone()
    assert rows == 2 * MANY and all(first >= instant for instant in held)
    assert passes(db, later) and passes(db, db.execute("SELECT max(id) FROM outbox").fetchone()[0])


def test_a_consumer_takes_all_rows_of_a_slow_copy_in_order(server, db, writer):
    """Rows of others that have later IDs wait until the COPY has ended."""
    take = TAKE.replace("100", "100000")
    assert events(db, take) == list(range(1, 11))
    copy = Slow(server, writer, lines(11, MANY))
    server.sql("INSERT INTO outbox (event) VALUES (0)")
    wait_for_next_tick(db, server.value("SELECT max(id) FROM outbox"))
    assert events(db, take) == []
    copy.send(lines(11 + MANY, MANY))
    assert events(db, take) == []
    copy.end()
    wait_until_complete(server)
    found = events(db, take)
    assert sorted(found) == [0, *range(11, 11 + 2 * MANY)] and [n for n in found if n] == list(range(11, 11 + 2 * MANY))
    assert db.execute(LAST).fetchone() == db.execute("SELECT max(id) FROM outbox").fetchone()


ENDS = ["canceled", "terminated", "by its client", "at its last row", "by an earlier statement's rollback"]


@pytest.mark.parametrize("how", ENDS)
def test_a_copy_that_fails_lets_the_watermark_go(server, db, how):
    take = TAKE.replace("100", "100000")
    assert events(db, take) == list(range(1, 11))
    with server.session() as writer:
        if "rollback" in how:
            writer.execute("BEGIN")
            load(writer, COPY, lines(11, MANY))
            server.sql("INSERT INTO outbox (event) VALUES (0)")
            assert holds(db, server.value("SELECT max(id) FROM outbox")) and events(db, take) == []
            writer.execute("ROLLBACK")
        else:
            copy = Slow(server, writer, lines(11, MANY))
            server.sql("INSERT INTO outbox (event) VALUES (0)")
            assert holds(db, server.value("SELECT max(id) FROM outbox")) and events(db, take) == []
            if how == "canceled":
                writer.cancel()
                # A session that waits for its client is canceled by what comes next.
                wait_until(lambda: copy.send(lines(1, MANY)) or not is_busy(server, writer))
            elif how == "terminated":
                server.sql("SELECT pg_terminate_backend(%s, 60000)", writer.info.backend_pid)
            elif how == "at its last row":
                copy.send(["too\tmany"])
            with pytest.raises(psycopg.Error) as failed:
                copy.end(psycopg.Error("no more") if how == "by its client" else None)
            # The driver raises the error of the client or of the server, whichever it meets first.
            expected = {"canceled": {"57014"}, "terminated": {"57P01", None}, "by its client": {None, "57014"}}
            assert failed.value.sqlstate in expected.get(how, {"22P04"}), failed.value
        wait_until_complete(server)
        assert events(db, take) == [0] and distinct(db, "outbox") == (11, 11)
        if how != "terminated":
            load(writer, COPY, lines(11, MANY))
            wait_until_complete(server)
            assert events(db, take) == list(range(11, 11 + MANY))


def test_copies_of_many_sessions_never_share_an_id(server):
    """Each of eight sessions loads eight times, by COPY, COPY in a function, and INSERT."""
    server.write("numbers", "".join(f"{n}\n" for n in range(MANY)))
    server.sql("CREATE TABLE loaded (id bigint PRIMARY KEY DEFAULT flake_next('si'), n int)")
    script = "COPY loaded (n) FROM 'numbers'; INSERT INTO loaded (n) SELECT generate_series(1, 100); " \
             "DO $$ BEGIN COPY loaded (n) FROM 'numbers'; END $$;"  # fmt: skip
    server.pgbench(script, "-c", 8, "-j", 2, "-t", 8)
    assert distinct(server.connect(), "loaded") == (64 * (2 * MANY + 100),) * 2


def test_the_first_copy_of_logical_replication(own_servers):
    """A column that the publisher lacks gets IDs: by the twin in the first copy, and by flake_next in what follows."""
    server = own_servers("wal_level=logical", TRACKED)
    for name in ["publisher", "subscriber"]:
        server.sql(f"CREATE DATABASE {name}")
    with server.connect(dbname="publisher") as publisher, server.connect(dbname="subscriber") as subscriber:
        publisher.execute(f"""
            CREATE TABLE outbox (n int PRIMARY KEY); INSERT INTO outbox SELECT generate_series(1, {MANY});
            CREATE PUBLICATION p FOR TABLE outbox""")
        publisher.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        subscriber.execute("""CREATE EXTENSION flake;
                              CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), n int)""")
        subscriber.execute(f"CREATE SUBSCRIPTION s CONNECTION 'host={server.dir} user=postgres dbname=publisher' PUBLICATION p "
                           "WITH (create_slot = false)")  # fmt: skip
        wait_until(lambda: distinct(subscriber, "outbox") == (MANY, MANY))
        publisher.execute(f"INSERT INTO outbox SELECT generate_series({MANY + 1}, {MANY + 100})")
        wait_until(lambda: distinct(subscriber, "outbox") == (MANY + 100, MANY + 100))
        # The workers report what they have called after a while.
        calls = "SELECT funcname, calls FROM pg_stat_user_functions WHERE funcname LIKE 'flake_next%%' ORDER BY calls"
        wait_until(lambda: subscriber.execute(calls).fetchall() == [("flake_next", 100), ("flake_next_in_copy", MANY)])
        subscriber.execute("ALTER SUBSCRIPTION s DISABLE; ALTER SUBSCRIPTION s SET (slot_name = NONE); DROP SUBSCRIPTION s")


def test_a_copy_that_waits_for_the_clock_can_be_canceled(own_servers):
    """One of 32 nodes has 32 IDs of si in a millisecond, so COPY waits in each."""
    server = own_servers("flake.node_count=32", "flake.node_id=7", TRACKED)
    with server.connect() as db:
        db.execute("CREATE TABLE outbox (id bigint PRIMARY KEY DEFAULT flake_next('si'), event text)")
        with counted(db) as calls:
            load(db, COPY, range(500))
        assert calls == {"plain": 0, "twin": 500} and distinct(db, "outbox") == (500, 500)
        db.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            load(db, COPY, range(200_000))
        db.execute("SET statement_timeout = 0")
        load(db, COPY, range(500))
        assert distinct(db, "outbox") == (1000, 1000)
