"""A standby returns watermarks that its primary has published. The nemesis has consumers that read below them on standbys, which
see every row once and in order."""

import contextlib
import threading
import time

import psycopg
import pytest

from standing_clock import running
from waiting import wait_until
from watermark import OUTBOX, insert, one, passes

PREPARES = "max_prepared_transactions=64"
NONE = psycopg.errors.ObjectNotInPrerequisiteState
BELOW = "SELECT array_agg(id ORDER BY id) FROM outbox WHERE id < flake_min(flake_watermark(), 'twitter')"
REPEATABLE = "BEGIN ISOLATION LEVEL REPEATABLE READ"


def publish(db):
    return one(db, "SELECT flake_publish_watermark()::text")


def publish_above(db, id):
    """Publishes watermarks until one is above this ID."""
    assert passes(db, id)
    return publish(db)


def with_standby(own_servers, *settings):
    primary = own_servers(PREPARES, *settings)
    primary.sql(OUTBOX)
    return primary, own_servers(PREPARES, standby_of=primary)


def below(standby, primary):
    standby.wait_for_replay(primary)
    return standby.value(BELOW)


def test_a_standby_returns_what_was_published(own_servers):
    """At first there is no watermark. Then the standby returns what the primary has returned, even if an older transaction is
    open."""
    primary, standby = with_standby(own_servers)
    with primary.connect() as writer, primary.connect() as slow, primary.connect() as open:
        first = insert(writer)
        with pytest.raises(NONE) as raised:
            below(standby, primary)
        assert "flake_publish_watermark()" in raised.value.diag.message_hint
        open.execute("BEGIN; CREATE TABLE open ()")
        published = publish_above(writer, first)
        standby.wait_for_replay(primary)
        assert standby.sql("SELECT flake_watermark()::text, flake_watermark()::text") == [(published, published)]
        assert below(standby, primary) == [first]
        slow.execute("BEGIN")
        held = insert(slow)
        later = insert(writer)
        assert publish(writer) == publish(writer) > published
        assert below(standby, primary) == [first]
        slow.execute("COMMIT")
        assert below(standby, primary) == [first], "although the row is there"
        publish_above(writer, later)
        assert below(standby, primary) == [first, held, later]


def test_a_read_only_transaction_publishes_nothing(own_servers):
    """It would write for others. It may make IDs and ask for a watermark."""
    primary, standby = with_standby(own_servers)
    with primary.connect() as db:
        publish_above(db, insert(db))
        before = below(standby, primary)
        insert(db)
        db.execute("BEGIN READ ONLY; SELECT flake_next('twitter'), flake_watermark()")
        error = pytest.raises(psycopg.errors.ReadOnlySqlTransaction, publish, db).value
        assert error.diag.message_primary == "cannot execute flake_publish_watermark() in a read-only transaction"
        db.execute("ROLLBACK")
        assert below(standby, primary) == before and len(before) == 1
        publish(db)
        assert len(below(standby, primary)) == 2


@pytest.mark.matrix
@pytest.mark.parametrize("how", ["rolled back", "repeatable", "prepared", "by a trigger"])
def test_it_is_published_at_once_in_any_transaction(own_servers, how):
    """The watermark belongs to a new snapshot, and not to the transaction's. The transaction's own IDs hold it."""
    primary, standby = with_standby(own_servers)
    with primary.connect() as db, primary.connect() as writer:
        db.execute(REPEATABLE if how == "repeatable" else "BEGIN")
        db.execute("SELECT FROM outbox")
        first = insert(writer)
        assert passes(writer, first)
        if how == "by a trigger":
            db.execute("""CREATE FUNCTION publish() RETURNS trigger LANGUAGE plpgsql AS
                          $$ BEGIN PERFORM flake_publish_watermark(); RETURN NULL; END $$;
                          CREATE TRIGGER publish AFTER INSERT ON outbox EXECUTE FUNCTION publish(); COMMIT; BEGIN""")
        elif how == "prepared":
            db.execute("CREATE TABLE written ()")
            publish(db)
            db.execute("PREPARE TRANSACTION 'one'")
        own = insert(db) if how != "prepared" else insert(writer)
        if how != "prepared":
            publish(db)
        if how == "rolled back":
            db.execute("ROLLBACK")
        assert below(standby, primary) == [first]
        if how != "rolled back":
            db.execute("ROLLBACK PREPARED 'one'" if how == "prepared" else "COMMIT")
            publish_above(writer, own)
            assert below(standby, primary) == [first, own]


@pytest.mark.matrix
def test_an_older_snapshot_gets_an_older_watermark(own_servers):
    """Later rows are not visible to the snapshot. It gets an earlier watermark, even after many others were published."""
    primary, standby = with_standby(own_servers)
    with primary.connect() as writer, primary.connect() as slow, standby.connect() as old, standby.connect() as older:
        older.execute(f"{REPEATABLE}; SELECT FROM outbox")
        first = insert(writer)
        publish_above(writer, first)
        slow.execute("BEGIN")
        held = insert(slow)
        later = insert(writer)
        standby.wait_for_replay(primary)
        old.execute(f"{REPEATABLE}; SELECT FROM outbox")
        slow.execute("COMMIT")
        for _ in range(100):
            publish_above(writer, later)
        assert below(standby, primary) == [first, held, later]
        assert one(old, BELOW) == [first]
        with pytest.raises(NONE):
            one(older, BELOW)


@pytest.mark.matrix
def test_many_subtransactions_lose_no_row(own_servers):
    """There are more subtransactions than a snapshot lists."""
    primary, standby = with_standby(own_servers)
    savepoints = "; ".join(f"SAVEPOINT s{n}; INSERT INTO outbox DEFAULT VALUES" for n in range(150))
    with primary.connect() as writer, primary.connect() as slow, standby.connect() as old:
        first = insert(writer)
        slow.execute(f"BEGIN; {savepoints}; ROLLBACK TO s100")
        last = insert(writer)
        publish(writer)
        assert below(standby, primary) == [first]
        old.execute(f"{REPEATABLE}; SELECT FROM outbox")
        slow.execute("COMMIT")
        publish_above(writer, last)
        assert len(below(standby, primary)) == 102
        assert one(old, BELOW) == [first]


def test_a_commit_that_waits_for_a_synchronous_standby_holds_it(own_servers):
    """The standby shows the commit before the primary does, which still counts it as running."""
    primary, standby = with_standby(own_servers)
    primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    primary.reload()
    with primary.connect(options="-c synchronous_commit=local") as db, primary.connect() as waiting:
        committer = threading.Thread(target=waiting.execute, args=("INSERT INTO outbox DEFAULT VALUES",))
        committer.start()
        wait_until(lambda: primary.sql("SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'"))
        later = insert(db)
        publish(db)
        assert below(standby, primary) is None
        assert len(standby.sql("SELECT FROM outbox")) == 2
        primary.sql("ALTER SYSTEM RESET synchronous_standby_names")
        primary.reload()
        committer.join()
        publish_above(db, later)
        assert len(below(standby, primary)) == 2


@pytest.mark.matrix
def test_a_snapshot_that_outlives_the_promotion_keeps_its_watermark(own_servers):
    """Rows that are committed afterwards are not below its watermark, even if a later watermark is published then."""
    primary, standby = with_standby(own_servers)
    with primary.connect() as writer, standby.connect() as old:
        first = insert(writer)
        publish_above(writer, first)
        writer.execute("BEGIN; INSERT INTO outbox DEFAULT VALUES; PREPARE TRANSACTION 'two'")
        last = insert(writer)
        publish(writer)
        standby.wait_for_replay(primary)
        old.execute(f"{REPEATABLE}; SELECT FROM outbox")
        primary.stop("immediate")
        standby.promote()
        assert one(old, BELOW) == [first]
        with standby.connect() as db:
            assert one(db, BELOW) == [first]
            db.execute("COMMIT PREPARED 'two'")
            publish_above(db, insert(db))
            assert len(one(db, BELOW)) == 4 and one(old, BELOW) == [first]
            old.execute("COMMIT")
            assert one(old, BELOW) == one(db, BELOW) and last in one(db, BELOW)


@contextlib.contextmanager
def reads_by_a_slot(standby):
    """A transaction by a snapshot as a replication slot exports it on a standby since version 16: as on a primary."""
    with standby.connect() as exporting, standby.connect() as reading:
        exporting.execute(REPEATABLE)
        name = one(exporting, "SELECT pg_export_snapshot()")
        exported = (standby.dir / "data" / "pg_snapshots" / name).read_text()
        assert exported.endswith("rec:1\n")
        standby.write(f"pg_snapshots/{name}", exported.replace("rec:1", "rec:0"))
        reading.execute(f"{REPEATABLE}; SET TRANSACTION SNAPSHOT '{name}'")
        yield reading


def test_a_snapshot_that_a_slot_exported_gets_a_published_watermark(own_servers):
    """It does not begin the ledger, so a transaction that is prepared later holds watermarks after the promotion."""
    primary, standby = with_standby(own_servers)
    with primary.connect() as writer:
        first = insert(writer)
        published = publish_above(writer, first)
        standby.wait_for_replay(primary)
        with reads_by_a_slot(standby) as reading:
            assert one(reading, BELOW) == [first] and one(reading, "SELECT flake_watermark()::text") == published
            writer.execute("BEGIN; INSERT INTO outbox DEFAULT VALUES; PREPARE TRANSACTION 'two'")
            standby.wait_for_replay(primary)
            primary.stop("immediate")
            standby.promote()
            assert one(reading, BELOW) == [first]
    with standby.connect() as db:
        later = insert(db)
        assert one(db, BELOW) == [first], "the prepared transaction holds it"
        db.execute("COMMIT PREPARED 'two'")
        assert passes(db, later)


@pytest.mark.matrix
@pytest.mark.parametrize("ahead", [1, 3600])
def test_a_watermark_that_was_taken_back_is_not_returned(own_servers, ahead):
    """The clock may be accepted in another database."""
    primary = own_servers(clock=running(0))
    primary.sql("CREATE DATABASE other")
    names = ["postgres", "other"]
    with contextlib.ExitStack() as opened:
        dbs = [opened.enter_context(primary.connect(dbname=name)) for name in names]
        for db in dbs:
            db.execute(f"CREATE EXTENSION IF NOT EXISTS flake; {OUTBOX}")
            insert(db)
        standby = own_servers(standby_of=primary)
        readers = [opened.enter_context(standby.connect(dbname=name)) for name in names]
        primary.set_clock(running(ahead))
        high = [one(db, f"SELECT '{publish(db)}'::timestamptz") for db in dbs]
        primary.set_clock(running(0.5))
        dbs[0].execute("SELECT flake_accept_clock()")
        for db in dbs:
            insert(db)
            publish(db)
        standby.wait_for_replay(primary)
        told = [one(db, "SELECT flake_watermark()") for db in readers]
        if ahead == 3600:
            assert [told[n] < high[n] for n in range(2)] == [True, True]
        low = [one(db, "SELECT flake_min(%s, 'twitter')", watermark) for db, watermark in zip(readers, told, strict=True)]
        assert [insert(db) >= low[n] for n, db in enumerate(dbs)] == [True, True]


@pytest.mark.matrix
def test_constant_publishing_hides_no_watermark_from_older_snapshots(own_servers):
    """A role without privileges publishes again and again. Older snapshots still find a watermark, and the page does not grow."""
    primary, standby = with_standby(own_servers)
    primary.sql("CREATE ROLE nobody LOGIN")
    with primary.connect() as writer, standby.connect() as old, primary.connect(user="nobody") as hostile:
        first = insert(writer)
        publish_above(writer, first)
        standby.wait_for_replay(primary)
        time.sleep(0.1)
        old.execute(f"{REPEATABLE}; SELECT FROM outbox")
        last = insert(writer)
        hostile.execute("DO $$ BEGIN FOR n IN 1..3000 LOOP PERFORM flake_publish_watermark(); END LOOP; END $$")
        assert below(standby, primary) == [first, last]
        assert one(old, BELOW) == [first]
        assert primary.value("SELECT pg_relation_size('flake_internal.flake_mark')") == 16384
