"""A conversion changes for clients which keys they can choose, what time old keys have, and which columns are too small. A
check finds a key that a client has chosen."""

import psycopg
import pytest


@pytest.fixture
def db(server):
    with server.connect(autocommit=False) as db:
        db.execute("""SET LOCAL lock_timeout = '2s';
                      CREATE TABLE gifts (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, what text)""")
        yield db
        db.rollback()


def diagnostics(db, query):
    found = []
    names = ["severity", "message_primary", "message_detail", "message_hint"]
    db.add_notice_handler(lambda diag: found.append(tuple(getattr(diag, name) for name in names)))
    db.execute(query)
    return found


def warnings(db, query):
    """Leaves out the WARNING about the time of old keys."""
    return [(primary, detail) for _, primary, detail, _ in diagnostics(db, query) if "contain no time" not in primary]


def refused(db, query):
    db.execute("SAVEPOINT before")
    error = pytest.raises(psycopg.Error, db.execute, query).value
    db.execute("ROLLBACK TO before")
    return error


def check(db, name="greatest keys"):
    return db.execute("SELECT ok, detail FROM flake_check() WHERE name = %s", [name]).fetchone()


def test_a_key_that_clients_cannot_choose_needs_force(db):
    """The statements of the HINT keep clients from choosing keys."""
    db.execute("""ALTER TABLE gifts ADD "An Other" int, ADD twice int GENERATED ALWAYS AS ("An Other" * 2) STORED;
                  CREATE ROLE client; GRANT INSERT ON gifts TO client""")
    error = refused(db, "SELECT flake_convert('gifts')")
    assert error.sqlstate == "55000" and "GENERATED ALWAYS" in error.diag.message_detail
    revoke, _, rest = error.diag.message_hint.partition(": ")[2].partition(", and ")
    grant = rest.partition(". Then")[0]
    assert grant == 'GRANT INSERT (what, "An Other") ON public.gifts TO …'
    db.execute("SELECT flake_convert('gifts', force => true)")
    for statement in (revoke, grant):
        db.execute(statement.replace("…", "client"))
    db.execute("SET ROLE client; INSERT INTO gifts (what) VALUES ('tea')")
    assert refused(db, "INSERT INTO gifts (id, what) VALUES (77, 'chosen')").sqlstate == "42501"
    db.execute("RESET ROLE")


@pytest.mark.parametrize("layout, key, is_near", [
    ("twitter", "NULL", False), ("twitter", "5000", True), ("twitter", "-5", True), ("si", "5000", True),
    ("base64id", "1000000000", True),
    ("twitter", "flake_max('2010-11-05 01:42:54.656Z')", True), ("twitter", "flake_min('2010-11-05 01:42:54.657Z')", False),
    ("twitter", "flake_min('2026-01-01Z')", False),
])  # fmt: skip
def test_it_warns_of_keys_whose_time_would_be_near_the_epoch(db, layout, key, is_near):
    db.execute(f"""CREATE TABLE t ("the Id" bigint PRIMARY KEY); INSERT INTO t SELECT {key} WHERE {key} IS NOT NULL""")
    found = diagnostics(db, f"CREATE TABLE converted AS SELECT first_id FROM flake_convert('t', '{layout}')")
    assert len(found) == is_near
    for severity, primary, detail, hint in found:
        assert (severity, primary) == ("WARNING", "the keys that public.t has contain no time")
        assert detail.startswith(f'Layout "{layout}" reads them as times near its epoch')
        condition = hint.partition("condition ")[2].partition(".")[0]
        assert condition == f'"the Id" >= {db.execute("SELECT first_id FROM converted").fetchone()[0]}'
        db.execute("INSERT INTO t DEFAULT VALUES")
        aged = f"SELECT count(*) FROM t WHERE flake_timestamp(greatest(\"the Id\", 0), '{layout}') < now() - interval '1 year'"
        assert db.execute(aged).fetchone() == (1,)
        assert db.execute(f"{aged} AND {condition}").fetchone() == (0,)
        assert db.execute(f"SELECT count(*) FROM t WHERE {condition}").fetchone() == (1,)


@pytest.mark.parametrize("type, is_small", [
    ("int", True), ("smallint", True), ("int[]", True), ("numeric(18)", True), ("char(12)", True), ("varchar(18)[]", True),
    ("real", True), ("double precision", True), ("bigint", False), ("bigint[]", False), ("numeric(19)", False), ("text", False),
    ("jsonb", False),
])  # fmt: skip
def test_it_warns_of_columns_of_each_type_that_is_too_small(db, type, is_small):
    name = "member_ids" if "[]" in type else "member_id"
    db.execute(f"CREATE TABLE members (id bigint PRIMARY KEY); CREATE TABLE teams (team text, {name} {type})")
    found = warnings(db, "SELECT flake_convert('members')")
    assert [detail.rpartition(": ")[2] for _, detail in found] == ([f"public.teams.{name}."] if is_small else [])


@pytest.mark.parametrize("key", [2**63 - 1, "flake_min(now() + interval '2 days')"])
def test_a_key_that_a_client_has_chosen_is_found(db, key):
    db.execute("SELECT flake_convert('gifts', force => true); INSERT INTO gifts (what) VALUES ('tea')")
    fine = "Columns whose default makes IDs and that this role may look at: 1. None has a key far ahead of the clock."
    assert check(db) == (True, fine)
    db.execute(f"INSERT INTO gifts VALUES ({key}, 'chosen')")
    ok, detail = check(db)
    id = db.execute("SELECT max(id) FROM gifts").fetchone()[0]
    assert not ok and detail.startswith(f"The greatest key of gifts is {id}, which is of "), detail
    db.execute("DELETE FROM gifts WHERE what = 'chosen'")
    assert check(db)[0]


@pytest.mark.parametrize("change, looked_at", [
    ("GRANT SELECT ON gifts TO client", 1),
    ("GRANT SELECT (id) ON gifts TO client", 1),
    ("GRANT SELECT (what) ON gifts TO client", 0),
    ("GRANT SELECT ON gifts TO client; ALTER TABLE gifts ENABLE ROW LEVEL SECURITY", 0),
    ("GRANT SELECT ON gifts TO client; ALTER TABLE gifts DROP CONSTRAINT gifts_pkey", 0),
    ("GRANT SELECT ON gifts TO client; ALTER TABLE gifts SET SCHEMA hidden", 0),
    ("ALTER ROLE client SUPERUSER", 1),
])  # fmt: skip
def test_only_what_the_caller_may_read_is_looked_at(db, change, looked_at):
    db.execute(f"""CREATE ROLE client; CREATE SCHEMA hidden; SELECT flake_convert('gifts', force => true);
                   INSERT INTO gifts VALUES (9223372036854775807); {change}; SET ROLE client""")
    ok, detail = check(db)
    assert (ok, "9223372036854775807" in detail) == (looked_at == 0, looked_at == 1), detail


def test_tables_that_somebody_changes_are_left_out(server):
    """The check waits for nobody, and keeps no lock."""
    server.sql("""CREATE TABLE held (id bigint PRIMARY KEY DEFAULT flake_next('twitter'));
                  INSERT INTO held VALUES (9223372036854775807)""")
    try:
        with server.connect(autocommit=False) as holder, server.connect(autocommit=False) as db:
            holder.execute("LOCK TABLE held")
            assert check(db)[0]
            holder.rollback()
            assert not check(db)[0]
            assert db.execute("SELECT FROM pg_locks WHERE relation = 'held'::regclass").fetchone() is None
    finally:
        server.sql("DROP TABLE held")
