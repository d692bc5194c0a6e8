"""The mark of a database, in the sequence flake_mark: what may happen to it, what it costs, and who may change it."""

import subprocess

import psycopg
import pytest

from clients import KINDS, MAKE, Made
from conftest import as_server, bindir
from standing_clock import TABLE, at, attempt, attempts, fail_over, insert, make, pass_through, server_at_0

# Until when the value reserves time in the first generation.
UNTIL = "SELECT to_timestamp((last_value >> 32) * 4 + 1577836800) > now() FROM flake_internal.flake_mark"

# flake_core has the same bytes.
MAGIC = b"FLKM"

# Events in the life of a database after its IDs were made at 60. The clock is at 0 then.


def extension_recreated(server, made):
    server.sql("ALTER TABLE kept ALTER twitter DROP DEFAULT, ALTER base64id DROP DEFAULT, ALTER sno DROP DEFAULT")
    server.sql("DROP EXTENSION flake")
    server.sql("CREATE EXTENSION flake")


def database_copied_as_wal(server, made):
    server.sql("CREATE DATABASE copied TEMPLATE postgres STRATEGY wal_log")
    return {"dbname": "copied"}


def database_copied_as_files(server, made):
    server.sql("CREATE DATABASE copied TEMPLATE postgres STRATEGY file_copy")
    return {"dbname": "copied"}


def sequence_altered(server, made):
    """ALTER SEQUENCE makes a new file, which has only the last value."""
    server.sql("ALTER SEQUENCE flake_internal.flake_mark INCREMENT BY 3")


def sequence_set(server, made):
    """The last value counts only if there is no record."""
    server.sql("SELECT setval('flake_internal.flake_mark', 1)")
    server.sql("SELECT nextval('flake_internal.flake_mark')")


def maintained(server, made):
    for command in ["VACUUM (FULL, FREEZE)", "REINDEX SYSTEM postgres", "CHECKPOINT"]:
        server.sql(command)


HAPPENINGS = [
    extension_recreated, database_copied_as_wal, sequence_altered, database_copied_as_files, sequence_set, maintained,
]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("happens", HAPPENINGS, ids=lambda happens: happens.__name__)
def test_no_id_is_made_twice_after_an_event_and_a_failover(own_servers, happens):
    """After the event, a server whose clock is behind takes over, and its clock comes to the time of the IDs."""
    primary, made = server_at_0(own_servers), Made()
    standby = own_servers(standby_of=primary, clock=at(-3))
    primary.set_clock(at(60))
    insert(primary, made)
    primary.set_clock(at(0))
    options = happens(primary, made) or {}
    primary.sql("CREATE TABLE plain ()")
    fail_over(primary, standby)
    pass_through(standby, made, -3, 2, 60, **options)


@pytest.mark.matrix
def test_the_page_says_what_a_lost_file_said(own_servers):
    """The file was deleted while the server was stopped, and the clock was set back."""
    server, made = server_at_0(own_servers), Made()
    server.sql("CREATE DATABASE other")
    for statement in ["CREATE EXTENSION flake", TABLE]:
        with server.connect(dbname="other") as db:
            db.execute(statement)
    insert(server, made)
    server.set_clock(at(60))
    insert(server, made, dbname="other")
    server.stop("immediate")
    (server.dir / "data" / "flake.mark").unlink()
    server.set_clock(at(-3600))
    server.launch()
    attempts(server, made)
    attempts(server, made, dbname="other")
    pass_through(server, made, -3600, 0, 60, dbname="other")


def test_its_last_value_can_be_set_by_setval(own_servers):
    """pg_upgrade sets it by setval, and so does replication since PostgreSQL 19, even in a database without IDs."""
    server = own_servers()
    for sequence in ["flake_internal.flake_mark", "flake_internal.flake_mark_until"]:
        server.sql(f"SELECT setval('{sequence}', last_value, is_called) FROM {sequence}")
    dump = server.run("pg_dump", "--binary-upgrade", "--schema-only", "postgres").stdout
    assert "CREATE UNLOGGED SEQUENCE flake_internal.flake_mark_until" in dump


def test_a_page_without_marks_is_an_error(own_servers):
    """A page that does not begin with the right bytes is refused."""
    server = server_at_0(own_servers)
    file = server.dir / "data" / server.value("SELECT pg_relation_filepath('flake_internal.flake_mark')")
    checks = server.value("SHOW data_checksums") == "on"
    server.stop()
    content = file.read_bytes()
    assert content.count(MAGIC) == 1
    file.write_bytes(content.replace(MAGIC, b"none"))
    if checks:
        disable = as_server(bindir() / "pg_checksums", "--disable", "-D", server.dir / "data")
        subprocess.run(disable, check=True, capture_output=True)
    server.launch()
    with pytest.raises(psycopg.errors.DataCorrupted, match="flake_mark"):
        server.sql("SELECT flake_next('twitter')")


# Its costs -----------------------------------------------------------------------------------------------------------------


def generic_records(server, since):
    """Counts the extensions' WAL records since an LSN."""
    server.sql("CREATE TABLE flushed (); DROP TABLE flushed")
    end = server.value("SELECT pg_current_wal_flush_lsn()")
    found = subprocess.run(
        [bindir() / "pg_waldump", "--rmgr=Generic", f"--path={server.dir}/data/pg_wal", f"--start={since}", f"--end={end}"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return found.stdout.count("rmgr: Generic")


@pytest.mark.matrix
def test_one_record_for_two_seconds(own_servers):
    """This holds for each database, however many sessions make IDs."""
    server, made = server_at_0(own_servers), Made()
    server.sql("CREATE DATABASE other")
    with server.connect(dbname="other") as db:
        db.execute("CREATE EXTENSION flake")
    for databases in [["postgres"], ["postgres", "other"]]:
        start = server.value("SELECT extract(epoch FROM clock_timestamp() - timestamptz '2030-01-01 00:00:00+00')::int")
        since = server.value("SELECT pg_current_wal_insert_lsn()")
        opened = [server.connect(dbname=dbname) for dbname in databases * 3]
        for half_seconds in range(1, 41):
            server.set_clock(at(start + half_seconds / 2))
            for db in opened:
                make(db, made)
        [db.close() for db in opened]
        assert 8 * len(databases) <= generic_records(server, since) <= 12 * len(databases)


def test_an_idle_server_writes_nothing(own_servers):
    """Sessions that have made IDs stay connected, and the clock runs."""
    server, made = server_at_0(own_servers, "wal_level=minimal", "max_wal_senders=0", "wal_keep_size=0"), Made()
    with server.connect() as db, server.connect() as other:
        for session in [db, other]:
            make(session, made)
        first = server.value("SELECT pg_current_wal_insert_lsn()")
        look = "SELECT pg_current_wal_insert_lsn() FROM flake_stat"
        before = [db.execute(look).fetchone()[0] for _ in range(2)][1]
        for seconds in [3, 10, 20, 60]:
            server.set_clock(at(seconds))
            assert db.execute(look).fetchone()[0] == before
        assert generic_records(server, first) == 0
        make(db, made)
        assert generic_records(server, first) == 1


# Privileges on it -----------------------------------------------------------------------------------------------------------

FORBIDDEN = [
    *(statement.replace("MARK", "flake_internal.flake_mark") for statement in [
        "SELECT setval('MARK', 1)", "SELECT setval('MARK', 1 << 60)", "SELECT nextval('MARK')", "SELECT last_value FROM MARK",
        "ALTER SEQUENCE MARK INCREMENT BY 3", "ALTER SEQUENCE MARK RESTART", "ALTER SEQUENCE MARK OWNED BY NONE",
        "ALTER SEQUENCE MARK OWNER TO CURRENT_USER", "ALTER SEQUENCE MARK RENAME TO mine",
        "ALTER SEQUENCE MARK SET SCHEMA mine", "ALTER SEQUENCE MARK SET UNLOGGED", "ALTER TABLE MARK SET TABLESPACE pg_default",
        "ALTER EXTENSION flake DROP SEQUENCE MARK",
        "DROP SEQUENCE MARK", "DROP SEQUENCE MARK CASCADE", "LOCK TABLE MARK", "LOCK TABLE MARK IN ACCESS SHARE MODE",
        "TRUNCATE MARK", "UPDATE MARK SET last_value = 1", "DELETE FROM MARK", "SELECT * FROM MARK FOR UPDATE",
        "CREATE INDEX ON MARK (last_value)", "CREATE RULE r AS ON UPDATE TO MARK DO NOTHING",
        "COMMENT ON SEQUENCE MARK IS 'mine'",
        "CREATE TEMP VIEW v AS SELECT last_value FROM MARK", "GRANT ALL ON SEQUENCE MARK TO PUBLIC",
    ]),
    "GRANT USAGE ON SCHEMA flake_internal TO CURRENT_USER", "ALTER SCHEMA flake_internal RENAME TO theirs",
    "DROP SCHEMA flake_internal CASCADE", "REASSIGN OWNED BY postgres TO CURRENT_USER", "DROP OWNED BY postgres CASCADE",
    "ALTER EXTENSION flake SET SCHEMA mine",
]  # fmt: skip
REFUSALS = (
    psycopg.errors.InsufficientPrivilege, psycopg.errors.WrongObjectType, psycopg.errors.FeatureNotSupported,
    psycopg.errors.DependentObjectsStillExist, psycopg.errors.SyntaxError,
)  # fmt: skip
# Commands that these roles can run instead, on objects with this name that come first.
LIKE_IT = [
    "CREATE TEMP SEQUENCE flake_mark", "CREATE SCHEMA AUTHORIZATION CURRENT_USER", "CREATE SEQUENCE flake_mark",
    "CREATE TABLE mine.flake_mark (n int)", "SET search_path = pg_temp, mine, public",
]  # fmt: skip


@pytest.mark.matrix
@pytest.mark.parametrize("user, dbname", [("nobody", "postgres"), ("owner", "owned")])
def test_only_a_superuser_can_change_it(own_servers, user, dbname):
    """A role without privileges cannot change the mark, and neither can the owner of a database who has created the trusted
    extension. Neither can keep other sessions from making IDs."""
    server, made = server_at_0(own_servers), Made()
    server.sql("CREATE ROLE nobody LOGIN; CREATE ROLE owner LOGIN")
    server.sql("GRANT CREATE ON DATABASE postgres TO nobody; GRANT CREATE ON SCHEMA public TO nobody")
    server.sql("CREATE DATABASE owned OWNER owner")
    if dbname == "owned":
        for statement in ["CREATE EXTENSION flake", TABLE, "GRANT ALL ON kept TO PUBLIC"]:
            with server.connect(user=user, dbname=dbname) as db:
                db.execute(statement)
    with server.connect(user=user, dbname=dbname) as db:
        db.execute("CREATE SCHEMA mine")
        server.set_clock(at(60))
        make(db, made)
    server.set_clock(at(60.004))
    insert(server, made, dbname=dbname)
    state = """SELECT last_value, relfilenode, relowner, relacl FROM flake_internal.flake_mark m, pg_class c
               WHERE c.oid = m.tableoid"""
    with server.connect(dbname=dbname) as superuser, server.connect(user=user, dbname=dbname) as db:
        before = superuser.execute(state).fetchone()
        # All of this runs in one transaction, so that its locks stay.
        db.execute("BEGIN")
        for command in FORBIDDEN:
            db.execute("SAVEPOINT s")
            with pytest.raises(REFUSALS):
                db.execute(command)
            db.execute("ROLLBACK TO s")
        for command in LIKE_IT:
            db.execute("SAVEPOINT s")
            try:
                db.execute(command)
            except (psycopg.errors.InsufficientPrivilege, psycopg.errors.DuplicateTable):
                db.execute("ROLLBACK TO s")
        assert superuser.execute(state).fetchone() == before
        for seconds in [100, 200]:
            server.set_clock(at(seconds))
            for session in [superuser, db]:
                make(session, made)
            with server.connect(user="nobody", dbname=dbname) as new:
                make(new, made)
        db.execute("COMMIT")
        # The last IDs are made by this user, whose own objects with that name come first in the search_path.
        server.set_clock(at(300))
        make(db, made)
    # The mark includes these IDs all the same.
    server.stop()
    (server.dir / "data" / "flake.mark").unlink()
    server.set_clock(at(60))
    server.launch()
    pass_through(server, made, 60, 100, 300, dbname=dbname)


def test_it_is_not_dumped(own_servers):
    """A dump may be restored on another server."""
    server = own_servers()
    server.sql(MAKE, 10)
    assert server.value("SELECT count(*) FROM flake_internal.flake_mark") == 1
    assert "flake_mark" not in server.run("pg_dump").stdout


def test_nobody_waits_behind_a_lock_for_good(own_servers):
    """A superuser may lock the sequence. Other sessions wait, and their wait can be canceled."""
    server, made = server_at_0(own_servers), Made()
    with server.connect() as holder, server.connect() as db:
        make(db, made)
        holder.execute("BEGIN; ALTER SEQUENCE flake_internal.flake_mark INCREMENT BY 3")
        server.set_clock(at(60))
        attempt(db, made)
        holder.execute("ROLLBACK")
        make(db, made)


@pytest.mark.matrix
@pytest.mark.parametrize("begin, end", [("BEGIN", "ROLLBACK"), ("BEGIN; SAVEPOINT s", "ROLLBACK TO s; COMMIT")])
@pytest.mark.parametrize("call", KINDS.values(), ids=KINDS)
def test_a_page_that_was_rolled_back_is_not_relied_on(own_servers, begin, end, call):
    """A session gets time in a transaction that creates the extension, and continues after that was rolled back."""
    server = server_at_0(own_servers)
    with server.connect() as db:
        db.execute(f"{begin}; DROP EXTENSION flake CASCADE; CREATE EXTENSION flake; SELECT {call}")
        db.execute(end)
        assert not db.execute(UNTIL).fetchone()[0]
        db.execute(f"SELECT {call}")
        assert db.execute(UNTIL).fetchone()[0], "the page must have the time of the ID"
