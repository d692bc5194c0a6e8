"""How event stores lose events or stop, as their authors report it: Marten's #4964, #4972 and #4977 (silently skipped events),
and #5108, #5125 and #5163 (a mark that is stuck). Each event has an ID of flake, a number of a sequence, and its transaction
ID. The usual ways to read events run beside flake_take, and lose events or stop."""

import contextlib
import time

import pytest

from waiting import wait_until

STORE = """
    CREATE TABLE store (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), seq bigserial UNIQUE,
                        xid xid8 DEFAULT pg_current_xact_id(), event text);
    CREATE TABLE positions (name text, source regclass, last bigint, PRIMARY KEY (name, source));
    INSERT INTO positions VALUES ('projection', 'store');
    INSERT INTO store (event) VALUES ('first')"""
TAKE = "SELECT event FROM flake_take(NULL::store, 'positions', 'projection', 1000)"
# After how many seconds a gap in the numbers counts as permanent, and for how many seconds readers run here.
STALE, LONG_ENOUGH = 0.1, 0.5


class Reader:
    """Reads up to a mark, a number of the sequence that `move(db, mark)` moves."""

    def __init__(self, db, move):
        self.db, self.move, self.mark, self.seen = db, move, 0, []

    def poll(self):
        high = self.move(self.db, self.mark)
        rows = self.db.execute("SELECT event FROM store WHERE seq > %s AND seq <= %s ORDER BY seq", (self.mark, high)).fetchall()
        self.seen += [event for event, in rows]
        self.mark = max(self.mark, high)


class ByFlake:
    def __init__(self, db):
        self.db, self.seen = db, []

    def poll(self):
        self.seen += [event for event, in self.db.execute(TAKE).fetchall()]


class ByXmin:
    """Reads in the order of transactions, up to the oldest running one."""

    def __init__(self, db):
        self.db, self.seen, self.last = db, [], ("0", 0)

    def poll(self):
        rows = self.db.execute("""
            SELECT xid::text, seq, event FROM store
            WHERE (xid, seq) > (%s::xid8, %s) AND xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY xid, seq""",
            self.last).fetchall()  # fmt: skip
        self.seen += [event for *_, event in rows]
        self.last = rows[-1][:2] if rows else self.last


def one(db, query, *parameters):
    return db.execute(query, parameters).fetchone()[0]


def gap_after(db, mark):
    """Returns the last number before the first gap between two rows above the mark; None if there is no gap."""
    return one(db, """
        SELECT min(seq) FROM (SELECT seq, lead(seq) OVER (ORDER BY seq) AS next FROM store WHERE seq >= %s) s WHERE next > seq + 1
        """, mark)  # fmt: skip


def before_the_gap(db, mark):
    """Returns the last number before the first gap, even if that is right above the mark."""
    return one(db, "SELECT COALESCE((SELECT min(n) - 1 FROM generate_series(%s + 1, (SELECT max(seq) FROM store)) n"
                   " WHERE NOT EXISTS (SELECT FROM store WHERE seq = n)), (SELECT max(seq) FROM store))", mark)  # fmt: skip


def beside_the_gap(db, mark):
    """Misses a gap that is right above the mark."""
    return gap_after(db, mark) or one(db, "SELECT max(seq) FROM store")


def last_value(db, _mark):
    """Returns the number that a rebuild catches up to."""
    return one(db, "SELECT last_value FROM store_seq_seq")


def over_stale_gaps(may_skip=lambda _db: True):
    """Skips a gap that has lasted, as rolled-back transactions leave them, if `may_skip` allows it."""
    since = {}

    def move(db, mark):
        high = before_the_gap(db, mark)
        if high > mark or high == one(db, "SELECT max(seq) FROM store"):
            return high
        is_stale = time.monotonic() - since.setdefault(mark, time.monotonic()) > STALE
        return one(db, "SELECT min(seq) FROM store WHERE seq > %s", mark) if is_stale and may_skip(db) else mark

    return move


def nobody_could_fill_it(db):
    """Returns whether no other transaction is open."""
    return one(db, "SELECT count(*) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND state = 'idle in transaction'") == 0


class Store:
    def __init__(self, server, opened):
        self.server, self.opened = server, opened
        server.sql(f"DROP TABLE IF EXISTS store, positions, elsewhere; CREATE TABLE elsewhere (); {STORE}")
        self.writer = self.session()
        self.flake = ByFlake(self.session())

    def session(self):
        return self.opened.enter_context(self.server.session())

    def reader(self, move):
        return Reader(self.session(), move)

    def append(self, event, db=None):
        (db or self.writer).execute("INSERT INTO store (event) VALUES (%s)", (event,))

    def polled(self, *readers, until=0):
        """Polls until this many events have reached flake's consumer, and then for as long as others wait for a gap."""

        def poll():
            for reader in (self.flake, *readers):
                reader.poll()

        wait_until(lambda: poll() or len(self.flake.seen) >= until)
        deadline = time.monotonic() + LONG_ENOUGH
        while time.monotonic() < deadline:
            poll()
            time.sleep(0.01)

    def lags(self):
        """Returns whether the watermark is behind the clock."""
        before = self.server.value("SELECT clock_timestamp()")
        return self.server.value("SELECT flake_watermark()") < before

    def complete(self):
        wait_until(lambda: self.server.value("SELECT max(id) < flake_min(flake_watermark(), 'twitter') FROM store"))
        self.flake.poll()
        return [event for event, in self.server.sql("SELECT event FROM store ORDER BY id")]


@pytest.fixture
def store(server):
    with contextlib.ExitStack() as opened:
        yield Store(server, opened)


def slow_append(store):
    """A session that has appended "slow" and has not committed."""
    slow = store.session()
    slow.execute("BEGIN")
    store.append("slow", slow)
    return slow


# Four ways to skip an event.


def none(store, reader):
    pass


def roll_back(store, reader):
    """The mark is on the number of a transaction that was rolled back, so the gap will be right above it."""
    store.writer.execute("BEGIN")
    store.append("none")
    store.writer.execute("ROLLBACK")
    reader.poll()
    reader.mark = 2


@pytest.mark.matrix
@pytest.mark.parametrize("move, before", ids=["a threshold", "a gap above the mark", "the last number"], argvalues=[
    (over_stale_gaps(), none), (beside_the_gap, roll_back), (last_value, none),
])  # fmt: skip
def test_a_slow_transaction_is_skipped(store, move, before):
    """It takes longer than any threshold; it is right above the mark; or a rebuild catches up to the last number."""
    reader = store.reader(move)
    before(store, reader)
    slow = slow_append(store)
    store.append("fast")
    assert store.lags()
    store.polled(reader)
    assert store.flake.seen == ["first"]
    slow.execute("COMMIT")
    store.polled(reader)
    assert store.complete() == store.flake.seen == ["first", "slow", "fast"]
    assert reader.seen == ["first", "fast"]


def test_a_commit_between_two_statements_of_a_reader(store):
    """Each statement has its own snapshot. The first one sees no gap, because there is no row above it."""

    def move(db, mark):
        gap = gap_after(db, mark)
        between()
        return gap or one(db, "SELECT max(seq) FROM store")

    between = lambda: None  # noqa: E731
    gaps = store.reader(move)
    store.polled(gaps, until=1)
    slow = slow_append(store)
    between = lambda: store.append("fast")  # noqa: E731
    gaps.poll()
    between = lambda: None  # noqa: E731
    store.polled(gaps)
    slow.execute("COMMIT")
    store.polled(gaps)
    assert store.complete() == store.flake.seen == ["first", "slow", "fast"]
    assert gaps.seen == ["first", "fast"]


# A mark that is stuck.


def dead_gap(store, how):
    """Uses numbers that no row will have."""
    if how == "a batch that was rolled back":
        store.writer.execute("BEGIN")
        for _ in range(10):
            store.append("none")
        store.writer.execute("ROLLBACK")
    else:
        store.writer.execute("SELECT nextval('store_seq_seq'), setval('store_seq_seq', 100)")


@pytest.mark.matrix
@pytest.mark.parametrize("gap", ["a batch that was rolled back", "a gap of the sequence"])
def test_sessions_that_are_idle_in_transactions(store, gap):
    """57 sessions hold a lock each, and none has made an ID. A reader that takes them for writers of the gap waits for ever."""
    gated = store.reader(over_stale_gaps(nobody_could_fill_it))
    for number in range(57):
        store.session().execute(f"BEGIN; SELECT pg_advisory_xact_lock({number})")
    dead_gap(store, gap)
    store.append("last")
    assert not store.lags()
    store.polled(gated, until=2)
    assert store.complete() == store.flake.seen == ["first", "last"]
    assert gated.seen == ["first"]


def test_a_long_transaction_that_makes_no_id(store):
    """A transaction has written elsewhere, and holds back readers that stop at the oldest transaction."""
    xmin = ByXmin(store.session())
    store.polled(xmin, until=1)
    assert xmin.seen == ["first"]
    long = store.session()
    long.execute("BEGIN; INSERT INTO elsewhere DEFAULT VALUES")
    store.append("last")
    assert not store.lags()
    store.polled(xmin, until=2)
    assert store.complete() == store.flake.seen == ["first", "last"]
    assert xmin.seen == ["first"]
    long.execute("COMMIT")
    xmin.poll()
    assert xmin.seen == ["first", "last"]
