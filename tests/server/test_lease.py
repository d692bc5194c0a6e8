"""flake_lease: applications lease workers of the pool for a while."""

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from waiting import wait_until

SETTINGS = ("flake.node_count=2", "flake.node_id=0", "flake.lease_node=1")
# Seconds without leases after a start, and seconds that a mark needs to reach standbys.
START, ACROSS = 65, 3
STATE = psycopg.errors.ObjectNotInPrerequisiteState


@pytest.fixture
def server(own_servers):
    """A server that started long enough ago to grant leases."""
    server = own_servers(*SETTINGS, steady=True)
    lease(server)
    server.let_pass(START)
    assert lease(server).wait > 0
    server.let_pass(ACROSS)
    return server


def lease(server, *arguments, layout="twitter", **options):
    with server.connect(**options) as db:
        cursor = db.cursor(row_factory=namedtuple_row)
        parameters = ", ".join(["%s::text", *["%s"] * len(arguments)])
        return cursor.execute(f"SELECT * FROM flake_lease({parameters})", (layout, *arguments)).fetchone()


def renew(server, old):
    return lease(server, old.worker, old.until)


def ticks(one):
    return range(one.tick_from, one.tick_until)


def test_a_lease_is_worth_its_ids(server):
    one = lease(server)
    assert (one.wait, one.shift, one.count, one.tick) == (0, 22, 4096, 1000)
    assert 512 <= one.worker < 1024
    assert one.low == one.worker * 4096
    assert 9_000 < len(ticks(one)) <= 10_000
    assert one.until == one.epoch + one.tick * one.tick_until
    first = one.tick_from << one.shift | one.low
    is_now = "flake_timestamp(%s) - clock_timestamp() < '1 s'"
    parts = server.sql(f"SELECT worker, sequence, {is_now} FROM flake_decode(%s)", first, first)
    assert parts == [(one.worker, 0, True)]
    last = one.tick_until - 1 << one.shift | one.low + one.count - 1
    assert server.sql("SELECT worker, sequence FROM flake_decode(%s)", last) == [(one.worker, 4095)]


def test_a_renewal_begins_where_the_lease_ends(server):
    one = lease(server)
    two = renew(server, one)
    assert (two.worker, two.tick_from) == (one.worker, one.tick_until)
    assert 45_000 < len(ticks(two)) < 51_000


def test_a_lease_is_renewed_once(server):
    one = lease(server)
    renew(server, one)
    with pytest.raises(STATE) as error:
        renew(server, one)
    assert error.value.diag.message_primary == f'lease of worker {one.worker} of layout "twitter" cannot be renewed'
    assert error.value.diag.message_hint == "Ask for a new lease, without a worker."


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


def test_after_a_restart_no_lease_is_granted_for_a_minute(own_servers):
    server = own_servers(*SETTINGS, clock="+0", steady=True)
    lease(server)
    server.let_pass(START)
    lease(server)
    server.let_pass(ACROSS)
    one = lease(server)
    server.restart(mode="immediate")
    assert lease(server).wait > 50_000_000
    server.let_pass(START)
    # The clock has not yet passed the time that was granted to the pool before the restart.
    assert lease(server).wait > 50_000_000
    server.set_clock("+75")
    assert lease(server).wait <= 2_000_000
    server.let_pass(ACROSS)
    with pytest.raises(STATE) as error:
        renew(server, one)
    assert error.value.diag.message_primary.endswith("cannot be renewed")
    assert lease(server).tick_from > one.tick_until


def test_a_server_that_is_given_the_number_waits_for_leases(server):
    one = lease(server)
    server.restart("flake.node_id=1", "flake.lease_node=0")
    with pytest.raises(STATE) as error:
        server.sql("SELECT flake_next('twitter')")
    assert error.value.diag.message_primary == 'clock is behind the last ID of layout "twitter"'
    assert one.worker >= 512


def test_a_server_makes_no_ids_of_its_own_pool(own_servers):
    server = own_servers("flake.node_count=2", "flake.node_id=1", "flake.lease_node=1", extension=False)
    server.sql("CREATE EXTENSION flake")
    for query in ["SELECT flake_next('twitter')", "SELECT flake_lease('twitter')"]:
        with pytest.raises(STATE) as error:
            server.sql(query)
        assert error.value.diag.message_primary == "flake.lease_node is the number of this server"
    assert server.sql("SELECT ok, detail FROM flake_check() WHERE name = 'leases'") == [
        (False, "flake.node_id and flake.lease_node are both 1: applications make IDs of that number.")
    ]


def test_a_database_has_half_of_the_pool(server):
    server.sql("""SELECT flake_create_layout('few', '{"epoch": "2020-01-01T00:00:00Z", "tick": "1ms", "fields": [
        {"name": "time", "role": "timestamp", "bits": 41}, {"name": "worker", "role": "worker", "bits": 3},
        {"name": "sequence", "role": "sequence", "bits": 12}]}')""")
    granted = [lease(server, layout="few") for _ in range(2)]
    with pytest.raises(STATE) as error:
        lease(server, layout="few")
    assert error.value.diag.message_primary == 'all workers of layout "few" are leased'
    assert {one.worker for one in granted} == {4, 5}


@pytest.mark.parametrize("layout", ["sonyflake", "mastodon", "uniqueid"])
def test_layouts_that_no_application_can_compose_are_refused(server, layout):
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        lease(server, layout=layout)


def test_the_owner_of_the_extension_says_who_may(server):
    server.sql("CREATE ROLE keeper LOGIN; CREATE ROLE joe LOGIN")
    server.sql("CREATE DATABASE kept OWNER keeper")
    with server.connect(dbname="kept", user="keeper") as db:
        db.execute("CREATE EXTENSION flake; CREATE SCHEMA app; GRANT USAGE ON SCHEMA app TO joe")
        db.execute("""CREATE FUNCTION app.lease(text, integer, bigint) RETURNS flake_leased LANGUAGE sql SECURITY DEFINER
                      SET search_path = public, pg_temp BEGIN ATOMIC SELECT flake_lease($1, $2, $3); END""")
    assert lease(server, dbname="kept", user="keeper").now
    with pytest.raises(psycopg.errors.InsufficientPrivilege) as error:
        lease(server, dbname="kept", user="joe")
    assert error.value.diag.message_primary == "must be owner of extension flake to call flake_lease"
    server.let_pass(ACROSS)
    with server.connect(dbname="kept", user="joe") as db:
        assert db.execute("SELECT wait FROM app.lease('twitter', NULL, NULL)").fetchone() == (0,)
    assert server.value("SELECT role FROM flake_leases") == "joe"


def test_the_view_shows_who_has_a_lease(server):
    one = lease(server)
    rows = server.sql("SELECT layout, worker, database, role, until > now(), since <= now() FROM flake_leases")
    assert rows == [("twitter", one.worker, "postgres", "postgres", True, True)]


def test_the_view_hides_what_pg_stat_activity_hides(server):
    server.sql("CREATE ROLE joe LOGIN; CREATE ROLE watcher LOGIN IN ROLE pg_read_all_stats")
    lease(server, application_name="billing")
    for user, seen in ("joe", (None, None)), ("watcher", ("postgres", "billing")):
        with server.connect(user=user) as db:
            assert db.execute("SELECT role, application_name FROM flake_leases").fetchall() == [seen]


def test_the_view_shows_leases_of_a_database_that_was_dropped(server):
    """Their workers stay in use until the leases end."""
    server.sql("CREATE DATABASE gone")
    with server.connect(dbname="gone") as db:
        db.execute("CREATE EXTENSION flake")
    lease(server, dbname="gone")
    server.let_pass(ACROSS)
    one = lease(server, dbname="gone")
    server.sql("DROP DATABASE gone WITH (FORCE)")
    assert server.sql("SELECT worker, database FROM flake_leases") == [(one.worker, None)]


def test_another_number_is_refused_until_the_next_start(own_servers):
    """Until then its workers would be leased under the mark of the first one."""
    server = own_servers("flake.node_count=4", "flake.node_id=0", "flake.lease_node=1")
    lease(server)
    server.sql("ALTER SYSTEM SET flake.lease_node = 2")
    server.sql("SELECT pg_reload_conf()")
    wait_until(lambda: server.value("SHOW flake.lease_node") == "2")
    with pytest.raises(STATE) as error:
        lease(server)
    assert error.value.diag.message_primary == "flake.lease_node 2 is not in force"
    assert error.value.diag.message_detail == "Since the server started, workers of node 1 have been leased."


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


def test_without_the_setting_no_lease_is_granted(own_servers):
    server = own_servers()
    with pytest.raises(STATE) as error:
        lease(server)
    assert error.value.diag.message_detail == "flake.lease_node is not set."
