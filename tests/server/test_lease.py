"""flake_lease: applications lease workers of the lessees' part of a node for a while."""

import psycopg
import pytest
from psycopg.rows import namedtuple_row

# Seconds without leases after a start.
START = 65
STATE = psycopg.errors.ObjectNotInPrerequisiteState


@pytest.fixture
def server(own_servers):
    """A server that started long enough ago to grant leases."""
    server = own_servers(steady=True)
    lease(server)
    server.let_pass(START)
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
    # The server is the only node, and turn 1 of the lessees is the sixth of eight parts.
    assert 640 <= one.worker < 768
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
    server = own_servers(clock="+0", steady=True)
    lease(server)
    server.let_pass(START)
    one = lease(server)
    server.restart(mode="immediate")
    assert lease(server).wait > 50_000_000
    server.let_pass(START)
    # The clock has not yet passed the time that was granted to the pool before the restart.
    assert lease(server).wait > 50_000_000
    server.set_clock("+75")
    with pytest.raises(STATE) as error:
        renew(server, one)
    assert error.value.diag.message_primary.endswith("cannot be renewed")
    assert lease(server).tick_from > one.tick_until


def test_a_server_under_another_number_of_nodes_waits_for_leases(server):
    """Its sessions' part may contain the worker of a lease."""
    one = lease(server)
    server.restart("flake.node_count=2", "flake.node_id=1")
    with pytest.raises(STATE) as error:
        server.sql("SELECT flake_next('twitter')")
    assert error.value.diag.message_primary == 'clock is behind the last ID of layout "twitter"'
    assert one.worker >= 512


def test_a_database_has_half_of_the_pool(server):
    server.sql("""SELECT flake_create_layout('few', '{"epoch": "2020-01-01T00:00:00Z", "tick": "1ms", "fields": [
        {"name": "time", "role": "timestamp", "bits": 41}, {"name": "worker", "role": "worker", "bits": 5},
        {"name": "sequence", "role": "sequence", "bits": 12}]}')""")
    granted = [lease(server, layout="few") for _ in range(2)]
    with pytest.raises(STATE) as error:
        lease(server, layout="few")
    assert error.value.diag.message_primary == 'all workers of layout "few" are leased'
    assert {one.worker for one in granted} == {20, 21}, "the part has four workers"


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
    with server.connect(dbname="kept", user="joe") as db:
        assert db.execute("SELECT wait FROM app.lease('twitter', NULL, NULL)").fetchone() == (0,)
    assert server.sql("SELECT role FROM flake_leases ORDER BY since") == [("keeper",), ("joe",)]


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
