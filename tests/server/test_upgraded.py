"""Databases in use keep working when they are upgraded: their behavior before and after is compared.

Installations run the same scripts, and the next version is made up.
"""

import psycopg
import pytest

import watermark
from catalog import DEFAULT_PRIVILEGES
from clients import Made
from next_release import each_upgrade, provide
from standing_clock import at, attempts, fail_over, insert, make_in_all, pass_through, server_at_0
from test_privileges import OBJECTS, PUBLIC
from used_database import CONTENT, TABLES, USED, members, replaced

pytestmark = each_upgrade


@pytest.fixture
def make(own_servers, version):
    """Makes servers with the objects of the earlier version, which find the scripts of the later one."""

    def make(*settings, **options):
        server = own_servers(*settings, **{"extension": version} | options)
        provide(server)
        return server

    return make


@pytest.fixture
def upgrade(to):
    return f"ALTER EXTENSION flake UPDATE TO '{to}'"


def without_privilege(db):
    """The objects on which PUBLIC has other privileges than intended."""
    return [(name, may) for name, kind, may in db.execute(OBJECTS).fetchall()
            if kind in PUBLIC and set(may) != PUBLIC.get(name, PUBLIC[kind])]  # fmt: skip


def use(db, made):
    """Checks that everything in the database still works."""
    for table in TABLES:
        db.execute(f"INSERT INTO {table} SELECT FROM generate_series(1, 100)")
    made.make(db, 100)
    db.execute("REFRESH MATERIALIZED VIEW parts")
    db.execute("INSERT INTO whole SELECT flake_decode(flake_next('twitter')), sno_fields(sno_next())")
    counts = "SELECT (SELECT count(*) FROM parts) = (SELECT count(*) FROM aaa), newest() = (SELECT max(id) FROM aaa)"
    assert db.execute(counts).fetchone() == (True, True)
    assert db.execute("SELECT count(*) FROM flake_open_transactions").fetchone() == (0,)
    # The database's own layouts have few IDs, and its default privileges are on sequences, too.
    wrong = "SELECT array_agg(hint) FROM flake_check() WHERE NOT ok AND hint NOT LIKE ALL ('{Expect sessions%,Revoke UPDATE%}')"
    assert db.execute(wrong).fetchone() == (None,)


def test_everything_in_a_database_stays_over_an_upgrade(make, version, to, upgrade):
    """The owner of the database, not a superuser, has created the extension, and default privileges grant nothing."""
    server, made = make(), Made()
    server.sql("CREATE ROLE keeper LOGIN; CREATE ROLE stranger LOGIN; CREATE ROLE grantee")
    server.sql("CREATE DATABASE kept OWNER keeper")
    server.connect(dbname="kept").execute(DEFAULT_PRIVILEGES)
    connections = (server.connect(dbname="kept", user=user) for user in ["keeper", "stranger", "postgres"])
    db, other, superuser = connections
    with db, other, superuser:
        db.execute(f"CREATE EXTENSION flake VERSION '{version}'")
        db.execute(USED)
        use(db, made)
        made.make(other, 100)
        other.execute("PREPARE read AS SELECT flake_to_text(flake_next('mine'), 'Ticks.10'), sno_next()")
        other.execute("EXECUTE read")
        content, objects = db.execute(CONTENT).fetchone(), members(db)
        mark = superuser.execute("SELECT last_value FROM flake_internal.flake_mark").fetchone()
        db.execute(upgrade)
        assert db.execute("SELECT extversion FROM pg_extension WHERE extname = 'flake'").fetchone() == (to,)
        assert db.execute(CONTENT).fetchone() == content
        assert replaced(objects, members(db)) == []
        assert without_privilege(db) == []
        assert superuser.execute("SELECT last_value FROM flake_internal.flake_mark").fetchone() >= mark
        other.execute("EXECUTE read")
        made.make(other, 100)
        use(db, made)
        # Layouts are unchanged, also for their owner.
        with pytest.raises(psycopg.errors.DependentObjectsStillExist):
            db.execute("SELECT flake_drop_layout('mine')")
        db.execute("""SELECT flake_create_layout('new', '{"like": "si"}')""")
        db.execute("SELECT flake_drop_layout('new')")
    with server.connect(dbname="kept", user="stranger") as new:
        made.make(new, 100)
        new.execute("SELECT flake_watermark(); SELECT FROM flake_layouts, flake_open_transactions")


@pytest.mark.matrix
def test_no_id_is_made_twice_after_an_upgrade_and_a_failover(make, upgrade):
    """A standby replays the upgrade while it is read. Its clock is behind the IDs from before and from after."""
    primary, made = server_at_0(make), Made()
    primary.sql(USED)
    standby = make(standby_of=primary, clock=at(0))
    primary.set_clock(at(60))
    insert(primary, made)
    primary.set_clock(at(0))
    standby.wait_for_replay(primary)
    with standby.connect() as reader:
        before = reader.execute(CONTENT).fetchone()
        primary.sql(upgrade)
        attempts(primary, made)
        primary.set_clock(at(61))
        make_in_all(primary, made)
        primary.set_clock(at(0))
        primary.sql("CREATE TABLE plain ()")
        standby.wait_for_replay(primary)
        assert reader.execute(CONTENT).fetchone() == before
        assert without_privilege(reader) == []
    fail_over(primary, standby)
    assert standby.sql(CONTENT)[0] == before
    pass_through(standby, made, 0, 60, 61)
    with standby.connect() as db:
        use(db, made)


def test_transactions_from_before_an_upgrade_hold_watermarks(make, upgrade):
    """Transactions that have made IDs before still hold them, and so do prepared ones."""
    server = make("max_prepared_transactions=2")
    server.sql(watermark.OUTBOX)
    with server.connect() as writer, server.connect() as tailer, server.connect() as db:
        db.execute("BEGIN")
        prepared = watermark.insert(db)
        db.execute("PREPARE TRANSACTION 'prepared'")
        writer.execute("BEGIN")
        id = watermark.insert(writer)
        assert watermark.holds(tailer, prepared)
        db.execute(upgrade)
        for asking in [tailer, db]:
            assert watermark.holds(asking, prepared)
        assert tailer.execute("SELECT gid FROM flake_open_transactions WHERE gid IS NOT NULL").fetchall() == [("prepared",)]
        db.execute("COMMIT PREPARED 'prepared'")
        assert watermark.passes(tailer, prepared) and watermark.holds(tailer, id)
        later = watermark.insert(writer)
        writer.execute("COMMIT")
        assert watermark.passes(tailer, later)
