"""Which locks sessions wait for that make IDs: none that a role without privileges can hold, or wait for."""

import threading

import psycopg
import pytest

from clients import KINDS
from waiting import Background, wait_until

LAYOUT = """SELECT flake_create_layout('mine', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z"}')"""
# Everything that needs time, or says which time rows have.
CALLS = [
    *KINDS.values(), "flake_next('mine')", "count(*) FROM flake_batch('twitter', 3)", "flake_watermark()",
    "flake_publish_watermark()", "flake_cover(flake_next('twitter'))",
]  # fmt: skip
# The relations of the extension that a role can name.
NAMED = """
    SELECT c.oid::regclass::text, c.relkind
    FROM pg_depend d JOIN pg_class c ON d.classid = 'pg_class'::regclass AND d.objid = c.oid
    WHERE d.deptype = 'e' AND d.refobjid = (SELECT oid FROM pg_extension WHERE extname = 'flake')
      AND has_schema_privilege('stranger', c.relnamespace, 'USAGE')"""
# PostgreSQL locks the relation for the first two before it looks at who owns it. The others have a lock of their own.
WAITING = [
    "CREATE RULE r AS ON INSERT TO {} DO ALSO NOTHING",
    "CREATE TRIGGER t BEFORE INSERT ON {} EXECUTE FUNCTION suppress_redundant_updates_trigger()",
    "ALTER TABLE {} ADD c int", "ALTER SEQUENCE {} RESTART", "ALTER SEQUENCE {} RENAME TO mine", "DROP SEQUENCE {}",
    "COMMENT ON SEQUENCE {} IS 'mine'", "CREATE INDEX ON {} (last_value)", "CREATE POLICY p ON {}",
    "CREATE STATISTICS s ON a, b FROM {}",
    "VACUUM {}", "ANALYZE {}", "CLUSTER {}", "REINDEX TABLE {}", "TRUNCATE {}", "DELETE FROM {}",
    "CREATE TEMP VIEW v AS SELECT last_value FROM {}", "SELECT last_value FROM {}",
]  # fmt: skip
# A role may know the OID of any relation. These functions wait for no strong lock.
BY_OID = ["nextval({})", "setval({}, 1)", "pg_sequence_last_value({})", "pg_relation_size({})", "lastval()"]


@pytest.fixture(scope="module")
def server(servers):
    server = servers()
    server.sql(f"CREATE ROLE stranger LOGIN; {LAYOUT}")
    return server


def make_everything(server, **client):
    """A session that waits for a lock of somebody else raises an error."""
    with server.connect(options="-c lock_timeout=5s", **client) as db:
        for call in CALLS:
            db.execute(f"SELECT {call}")


def test_ids_wait_for_no_relation_that_a_role_can_name(server):
    """A superuser locks all of them; a role could wait for such a lock."""
    with server.connect() as holder:
        named = holder.execute(NAMED).fetchall()
        assert {kind for _, kind in named} >= {"v"} and len(named) >= 4
        holder.execute("BEGIN")
        for number, (relation, kind) in enumerate(named):
            holder.execute(f"ALTER {'SEQUENCE' if kind == 'S' else 'TABLE'} {relation} RENAME TO renamed_{number}")
        for user in ["postgres", "stranger"]:
            make_everything(server, user=user)


@pytest.mark.parametrize("holds", ["SELECT last_value FROM {}", "ALTER SEQUENCE {} NO CYCLE"])
def test_a_role_cannot_wait_for_a_lock_of_the_mark(server, holds):
    mark = "flake_internal.flake_mark"
    with server.connect() as holder, server.connect(user="stranger", options="-c lock_timeout=5s") as stranger:
        oid = holder.execute(f"SELECT '{mark}'::regclass::oid").fetchone()[0]
        holder.execute(f"BEGIN; {holds.format(mark)}")
        for statement in WAITING:
            with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported)):
                stranger.execute(statement.format(mark))
        if holds.startswith("SELECT"):
            stranger.execute("BEGIN")
            for call in BY_OID:
                stranger.execute("SAVEPOINT s")
                try:
                    stranger.execute(f"SELECT {call.format(oid)}")
                except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState):
                    stranger.execute("ROLLBACK TO s")
            make_everything(server)


MANY = "SELECT flake_next('twitter') FROM generate_series(1, 50)"
# The errors of a session whose extension or database is dropped: its objects are gone.
GONE = (
    psycopg.errors.UndefinedFunction, psycopg.errors.UndefinedTable, psycopg.errors.UndefinedObject,
    psycopg.errors.ObjectNotInPrerequisiteState,
)  # fmt: skip


@pytest.mark.matrix
def test_what_a_superuser_does_to_the_objects_beside_sessions_that_make_ids(own_servers):
    """The extension is dropped and created, its sequence is altered, and the database is dropped. No ID is made twice, and the
    sessions of another database notice nothing."""
    server = own_servers()
    for name in ["shop", "other"]:
        server.sql(f"CREATE DATABASE {name}")
        server.connect(dbname=name).execute("CREATE EXTENSION flake")
    made, kept = [], []

    def make_in_shop():
        while not loads.ends.is_set():
            try:
                with server.connect(dbname="shop") as db:
                    while True:
                        made.extend(db.execute(MANY).fetchall())
            except GONE:
                continue
            except psycopg.OperationalError:
                # The database is being dropped.
                if not dropped.is_set():
                    raise

    def make_in_other():
        with server.connect(dbname="other") as db:
            while not loads.ends.is_set():
                kept.extend(db.execute(MANY).fetchall())

    dropped = threading.Event()
    loads = Background(make_in_shop, make_in_shop, make_in_other)
    with loads, server.connect(dbname="shop") as db:
        for _ in range(20):
            db.execute("ALTER SEQUENCE flake_internal.flake_mark NO CYCLE")
            db.execute("DROP EXTENSION flake; CREATE EXTENSION flake")
        wait_until(lambda: made and kept)
        dropped.set()
        server.sql("DROP DATABASE shop WITH (FORCE)")
    assert len(made + kept) == len(set(made + kept))
