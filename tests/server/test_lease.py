"""flake_lease: applications lease lots of the lessees' part of a node for a while."""

import concurrent.futures
import time

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from standing_clock import at, server_at_0

STATE = psycopg.errors.ObjectNotInPrerequisiteState
# Seconds after the last lease for which a restarted server may grant none.
START = 71
LAYOUT = """SELECT flake_create_layout('{}', '{{"epoch": "{}-01-01T00:00:00Z", "tick": "1ms", "fields": [
    {{"name": "time", "role": "timestamp", "bits": {}}}, {{"name": "worker", "role": "worker", "bits": {}}},
    {{"name": "sequence", "role": "sequence", "bits": {}}}]}}')"""


@pytest.fixture
def server(own_servers):
    return own_servers()


def lease(server, *arguments, layout="twitter", **options):
    with server.connect(**options) as db:
        cursor = db.cursor(row_factory=namedtuple_row)
        parameters = ", ".join(["%s::text", *["%s"] * len(arguments)])
        return cursor.execute(f"SELECT * FROM flake_lease({parameters})", (layout, *arguments)).fetchone()


def release(server, one, last_tick, layout="twitter"):
    return server.value("SELECT flake_release(%s, %s, %s)", layout, one.token, last_tick)


def renew(server, old):
    return lease(server, old.token)


def ticks(one):
    return range(one.tick_from, one.tick_until)


def composed(one, tick, number):
    made = (tick << one.shift) + one.low + (number << one.step)
    assert 0 <= made < 1 << 63
    return made


def database(server, name, owner="postgres"):
    server.sql(f"CREATE DATABASE {name} OWNER {owner}")
    with server.connect(dbname=name) as db:
        db.execute("CREATE EXTENSION flake")


def test_a_lease_is_worth_its_ids(server):
    one = lease(server)
    assert (one.protocol, one.reason, one.wait) == (1, None, 0)
    assert (one.shift, one.step, one.count, one.tick) == (22, 0, 4096, 1000)
    # The server is the only node, and turn 1 of the lessees is the sixth of eight parts.
    assert 640 <= one.worker < 768
    assert one.low == one.worker * 4096
    assert 9_000 < len(ticks(one)) <= 10_000
    assert one.until == one.epoch + one.tick * one.tick_until
    assert 0 < one.token < 1 << 63
    is_now = "flake_timestamp(%s) - clock_timestamp() < '1 s'"
    first = composed(one, one.tick_from, 0)
    parts = server.sql(f"SELECT worker, sequence, {is_now} FROM flake_decode(%s)", first, first)
    assert parts == [(one.worker, 0, True)]
    last = composed(one, one.tick_until - 1, one.count - 1)
    assert server.sql("SELECT worker, sequence FROM flake_decode(%s)", last) == [(one.worker, 4095)]


@pytest.mark.parametrize("layout", ["sonyflake", "base64id", "discord", "wide", "si"])
def test_sessions_make_other_ids(server, layout):
    """Where bits lie below the sequence, where worker numbers have more than 32 bits, and where a worker has several lessees."""
    if layout == "wide":
        server.sql(LAYOUT.format("wide", 2026, 30, 33, 1).replace("1ms", "1s"))
    leases = [lease(server, layout=layout) for _ in range(3)]
    assert len({one.low for one in leases}) == len({one.token for one in leases}) == 3
    decode = "SELECT worker, sequence FROM flake_decode(%s, %s)"
    leased = set()
    for one in leases:
        lots = set()
        for number in 0, one.count - 1:
            lots.update(server.sql(decode, composed(one, one.tick_from, number), layout))
        assert {worker for worker, _ in lots} == {one.worker}
        last, first = max(lots)[1], min(lots)[1]
        assert last - first == one.count - 1
        leased |= {(one.worker, sequence) for sequence in range(first, last + 1)}
    assert sum(one.count for one in leases) == len(leased), "no two lots meet"
    made = f"SELECT DISTINCT worker, sequence FROM flake_batch('{layout}', 3000) id, flake_decode(id, '{layout}')"
    assert leased.isdisjoint(server.sql(made))


def test_a_renewal_begins_where_the_lease_ends(server):
    one = lease(server)
    two = renew(server, one)
    assert (two.worker, two.tick_from) == (one.worker, one.tick_until)
    assert 45_000 < len(ticks(two)) < 51_000
    assert two.token != one.token


def test_a_lease_is_renewed_once(server):
    one = lease(server)
    renew(server, one)
    for token in one.token, 1, 0, -1:
        row = lease(server, token)
        assert (row.protocol, row.reason, row.wait, row.token, row.worker, row.until) == (1, "lost", 0, None, None, None)
        assert row.now > one.now


def test_a_lease_that_was_released_goes_to_the_next_one(server):
    server.sql(LAYOUT.format("few", 2020, 41, 4, 4))
    one = lease(server, layout="few")
    last = one.tick_from + 500
    time.sleep(1)
    assert release(server, one, last, "few")
    assert not release(server, one, last, "few")
    assert lease(server, one.token, layout="few").reason == "lost"
    database(server, "other")
    with server.connect(dbname="other") as db:
        db.execute(LAYOUT.format("few", 2020, 41, 4, 4))
    two, three = lease(server, layout="few"), lease(server, layout="few", dbname="other")
    assert {two.low, three.low} == {one.low, one.low + 16}
    again = two if two.low == one.low else three
    assert last < again.tick_from < one.tick_until
    assert release(server, two, None, "few")
    assert not release(server, three, None, "few"), "of another database"


def test_the_last_tick_that_was_used_is_not_leased_again(own_servers):
    """The clock stands in that tick. The layout has one lot."""
    server = server_at_0(own_servers)
    server.sql(LAYOUT.format("one", 2020, 41, 3, 4))
    one = lease(server, layout="one")
    assert release(server, one, one.tick_from, "one")
    assert lease(server, layout="one").reason == "exhausted"
    server.set_clock(at(1))
    assert lease(server, layout="one").tick_from > one.tick_from


def test_a_renewal_writes_nothing(server):
    """One renewal in five seconds extends the granted time of the pool, and writes."""

    def written():
        return server.value("SELECT pg_current_wal_insert_lsn()"), (server.dir / "data" / "flake.mark").stat().st_mtime_ns

    one = lease(server)
    for _ in range(10):
        before = written()
        for _ in range(5):
            one = renew(server, one)
        if written() == before:
            return
    pytest.fail("renewals write")


def test_two_lessees_have_different_workers(server):
    assert len({lease(server).worker for _ in range(20)}) == 20


def test_a_server_under_another_number_of_nodes_waits_for_leases(server):
    """Its sessions' part may contain the worker of a lease."""
    one = lease(server)
    server.restart("flake.node_count=2", "flake.node_id=1")
    with pytest.raises(STATE) as error:
        server.sql("SELECT flake_next('twitter')")
    assert error.value.diag.message_primary == 'clock is behind the last ID of layout "twitter"'
    assert one.worker >= 512


def test_leases_after_a_restart_begin_above_earlier_ones(own_servers):
    server = own_servers(clock="+0")
    one = lease(server)
    server.restart(mode="immediate")
    row = lease(server)
    assert (row.reason, row.token) == ("starting", None)
    assert 50_000_000 < row.wait <= 70_000_000
    assert server.sql("SELECT ok, detail FROM flake_check() WHERE name = 'leases'")[0][0] is True
    server.set_clock(f"+{START}")
    assert renew(server, one).reason == "lost"
    assert lease(server).tick_from > one.tick_until
    server.set_clock("-600")
    row = lease(server)
    assert row.reason == "clock"
    assert row.wait > 600_000_000
    ok, detail = server.sql("SELECT ok, detail FROM flake_check() WHERE name = 'leases'")[0]
    assert ok is False
    assert detail.startswith("The clock was ahead, and no lease is granted before ")


def test_an_idle_server_leases_at_once_after_a_restart(server):
    server.sql("SELECT flake_next('twitter')")
    server.restart()
    assert lease(server).reason is None


def test_twenty_databases_lease_after_a_restart(own_servers):
    """Four processes of each ask at the same time, and renew."""
    server = own_servers("max_connections=120", clock="+0")
    names = [f"shop{number}" for number in range(20)]
    database(server, "shop")
    for name in names:
        server.sql(f"CREATE DATABASE {name} TEMPLATE shop")
    assert [lease(server, dbname=name).reason for name in names] == [None] * 20
    server.restart(mode="immediate")
    assert {lease(server, dbname=name).reason for name in names} == {"starting"}
    server.set_clock(f"+{START}")

    def use(name):
        with server.connect(dbname=name) as db:
            cursor, token, lots = db.cursor(row_factory=namedtuple_row), None, set()
            for _ in range(10):
                row = cursor.execute("SELECT * FROM flake_lease('twitter', %s)", (token,)).fetchone()
                if row.reason == "clock":
                    time.sleep(row.wait / 1e6)
                    continue
                assert row.reason is None, row
                token = row.token
                lots.add(row.low)
            assert len(lots) == 1
            return lots.pop()

    with concurrent.futures.ThreadPoolExecutor(80) as pool:
        lots = list(pool.map(use, names * 4))
    assert len(set(lots)) == 80


def test_a_database_has_half_of_the_lots(server):
    server.sql(LAYOUT.format("few", 2020, 41, 4, 4))
    assert server.value("SELECT lots FROM flake_layouts WHERE name = 'few'") == 2
    one = lease(server, layout="few")
    row = lease(server, layout="few")
    assert row.reason == "exhausted"
    assert 9_000_000 < row.wait <= 10_000_000
    assert one.worker in {10, 11}


def test_a_database_has_so_many_leases_of_all_layouts(server):
    server.sql("CREATE ROLE keeper LOGIN")
    for name in "greedy", "modest":
        database(server, name, owner="keeper")
    with server.connect(dbname="greedy", user="keeper") as db:
        assert db.execute("SELECT flake_node(1)").fetchone()
        assert db.execute("SHOW flake.max_leases").fetchone() == ("64",)
        for number in range(4):
            db.execute(LAYOUT.format(f"own{number}", 2020 + number, 41, 10, 12))
            for _ in range(16):
                assert db.execute(f"SELECT reason FROM flake_lease('own{number}')").fetchone() == (None,)
        reason, wait = db.execute("SELECT reason, wait FROM flake_lease('twitter')").fetchone()
        assert (reason, 0 < wait <= 10_000_000) == ("limited", True)
        check = "SELECT ok, detail FROM flake_check() WHERE name = 'leases'"
        said = "As many leases as flake.max_leases allows are in use: 64."
        assert db.execute(check).fetchone() == (False, said)
        for change in "SET flake.max_leases = 100", "ALTER DATABASE greedy SET flake.max_leases = 100":
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(change)
    assert lease(server, dbname="modest", user="keeper").reason is None
    server.sql("ALTER DATABASE greedy SET flake.max_leases = 65")
    assert [lease(server, dbname="greedy").reason for _ in range(2)] == [None, "limited"]
    server.sql("ALTER DATABASE modest SET flake.max_leases = 0")
    assert lease(server, dbname="modest").reason == "limited"
    # A client's option does not count, whether or not the library is loaded.
    assert lease(server, dbname="modest", user="keeper", options="-c flake.max_leases=10").reason == "limited"
    leases, grants, limited, lost = server.sql("""SELECT leases, lease_grants, (lease_refusals->>'limited')::int,
        (lease_refusals->>'lost')::int FROM flake_stats""")[0]
    assert (leases, grants, limited, lost) == (66, 66, 4, 0)


@pytest.mark.parametrize(("layout", "reason"), [
    ("mastodon", "Its IDs have no worker, so all of them are for the server's sessions."),
    ("si_single", "Its IDs have no worker, so all of them are for the server's sessions."),
    ("uniqueid", "Its IDs are not in the order of time, so all of them are for the server's sessions."),
    ("seata", "Its IDs are not in the order of time, so all of them are for the server's sessions."),
])  # fmt: skip
def test_layouts_without_lots_are_refused(server, layout, reason):
    with pytest.raises(psycopg.errors.FeatureNotSupported) as error:
        lease(server, layout=layout)
    assert error.value.diag.message_primary == f'layout "{layout}" cannot be leased'
    assert error.value.diag.message_detail == reason
    assert server.value("SELECT lots FROM flake_layouts WHERE name = %s", layout) is None


WRAPPER = """CREATE FUNCTION app.lease(text, bigint) RETURNS flake_leased LANGUAGE sql SECURITY DEFINER
             SET search_path = public, pg_temp BEGIN ATOMIC SELECT flake_lease($1, $2); END"""


def test_the_owners_say_who_may(server):
    server.sql("CREATE ROLE keeper LOGIN; CREATE ROLE joe LOGIN")
    server.sql("CREATE DATABASE kept OWNER keeper")
    with server.connect(dbname="kept", user="keeper") as db:
        db.execute("CREATE EXTENSION flake; CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO joe")
        db.execute(WRAPPER)
    assert lease(server, dbname="kept", user="keeper").token
    for call in "flake_lease('twitter')", "flake_release('twitter', 1, 1)":
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as error, server.connect(dbname="kept", user="joe") as db:
            db.execute(f"SELECT {call}")
        name = call.split("(")[0]
        said = f"must be owner of extension flake or of the database to call {name}"
        assert error.value.diag.message_primary == said
    with server.connect(dbname="kept", user="joe") as db:
        assert db.execute("SELECT reason, wait FROM app.lease('twitter', NULL)").fetchone() == (None, 0)
    assert server.sql("SELECT role FROM flake_leases ORDER BY since") == [("keeper",), ("joe",)]


def test_the_databases_owner_may_after_a_superuser_has_restored_it(server, tmp_path):
    """The extension belongs to the superuser then. Keys and layouts that the owner makes are the owner's."""
    server.sql("CREATE ROLE keeper LOGIN; CREATE ROLE joe LOGIN")
    for name in "kept", "restored":
        server.sql(f"CREATE DATABASE {name} OWNER keeper")
    make = f"SELECT flake_create_key('usr', 'twitter'); {LAYOUT.format('own', 2020, 41, 10, 12)}"
    with server.connect(dbname="kept", user="keeper") as db:
        db.execute("CREATE EXTENSION flake; CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO joe")
        db.execute(WRAPPER)
        db.execute(make)
    server.run("pg_dump", "-Fc", "-f", tmp_path / "dump", "kept")
    server.run("pg_restore", "--exit-on-error", "-d", "restored", tmp_path / "dump")
    with server.connect(dbname="restored", user="joe") as db:
        assert db.execute("SELECT reason FROM app.lease('twitter', NULL)").fetchone() == (None,)
    check = "SELECT ok FROM flake_check() WHERE name = 'leases'"
    with server.connect(dbname="restored", user="keeper") as db:
        assert db.execute("SELECT r.rolname FROM pg_extension JOIN pg_roles r ON r.oid = extowner WHERE extname = 'flake'"
                          ).fetchone() == ("postgres",)  # fmt: skip
        db.execute("SELECT flake_rotate_key('usr'); SELECT flake_create_key('new', 'si')")
        db.execute("SELECT flake_drop_layout('own'); SELECT flake_drop_key('usr')")
        owners = db.execute("SELECT srvowner::regrole::text FROM pg_foreign_server").fetchall()
        assert owners == [("keeper",)]
        assert db.execute(check).fetchone() == (True,)
    # A wrapper of a role that may not is found, whatever its body is.
    for body in "LANGUAGE sql AS 'SELECT flake_lease($1)'", "LANGUAGE sql BEGIN ATOMIC SELECT flake_lease($1); END":
        with server.connect(dbname="restored") as db:
            db.execute(f"CREATE FUNCTION bad(text) RETURNS flake_leased SECURITY DEFINER {body}")
            db.execute("ALTER FUNCTION bad OWNER TO joe")
            ok, detail = db.execute("SELECT ok, detail FROM flake_check() WHERE name = 'leases'").fetchone()
            assert (ok, detail) == (False, "These functions call flake_lease as a role that may not: function bad(text).")
            db.execute("DROP FUNCTION bad")
    with server.connect(dbname="restored") as db:
        db.execute("CREATE FUNCTION used() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM flake_leases'")
        db.execute("ALTER FUNCTION used OWNER TO joe")
        assert db.execute(check).fetchone() == (True,)


def test_the_view_shows_who_has_a_lease(server):
    with server.connect(application_name="billing") as db:
        worker, pid = db.execute("SELECT worker, pg_backend_pid() FROM flake_lease('twitter')").fetchone()
    rows = server.sql("""SELECT layout, worker, database, role, application_name, client_addr, pid, until > now(), since <= now()
                         FROM flake_leases""")
    assert rows == [("twitter", worker, "postgres", "postgres", "billing", None, pid, True, True)]


def test_the_view_hides_what_pg_stat_activity_hides(server):
    server.sql("CREATE ROLE joe LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_read_all_stats")
    lease(server, application_name="billing")
    for user, seen in ("joe", (None, None, True)), ("watcher", ("postgres", "billing", False)):
        with server.connect(user=user) as db:
            assert db.execute("SELECT role, application_name, pid IS NULL FROM flake_leases").fetchall() == [seen]


def test_the_view_shows_leases_of_a_database_that_was_dropped(server):
    """Their workers stay in use until the leases end."""
    server.sql("CREATE DATABASE gone")
    with server.connect(dbname="gone") as db:
        db.execute("CREATE EXTENSION flake")
    one = lease(server, dbname="gone")
    server.sql("DROP DATABASE gone WITH (FORCE)")
    assert server.sql("SELECT worker, database FROM flake_leases") == [(one.worker, None)]


def test_a_layout_that_has_ended_is_not_leased(server):
    server.sql("""SELECT flake_create_layout('over', '{"epoch": "1980-01-01T00:00:00Z", "tick": "1ms", "fields": [
        {"name": "time", "role": "timestamp", "bits": 38}, {"name": "worker", "role": "worker", "bits": 3},
        {"name": "sequence", "role": "sequence", "bits": 12}]}')""")
    said = []
    for call in "flake_next('over')", "flake_lease('over')":
        with pytest.raises(psycopg.Error) as error:
            server.sql(f"SELECT {call}")
        said.append((error.value.sqlstate, error.value.diag.message_primary, error.value.diag.message_hint))
    assert said[0] == said[1]


def test_null_is_no_layout_and_no_token(server):
    for call in "flake_lease(NULL)", "flake_release(NULL, 1)":
        with pytest.raises(psycopg.errors.InvalidParameterValue):
            server.sql(f"SELECT {call}")
    assert server.value("SELECT flake_release('twitter', NULL)") is False
