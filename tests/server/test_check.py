"""flake_check: each check passes and fails, for any caller, and changes nothing."""

import datetime

import psycopg
import pytest

from test_ledger import GREEDY, put_other_version
from waiting import wait_until

CHECKS = [
    "node number", "settings", "rates", "end of layouts", "layouts", "greatest keys", "shared number", "lead",
    "pg_upgrade", "library", "keys", "turn",
]  # fmt: skip


def findings(db):
    rows = db.execute("SELECT * FROM flake_check()").fetchall()
    assert [check for check, *_ in rows] == CHECKS
    for _, ok, detail, hint in rows:
        assert detail.endswith(".")
        assert (ok is False) == (hint is not None)
    return {check: (ok, detail, hint) for check, ok, detail, hint in rows}


def check(server, name, **options):
    with server.connect(**options) as db:
        return findings(db)[name]


def wrong(db):
    return [name for name, (ok, *_) in findings(db).items() if ok is not True]


@pytest.fixture(scope="module")
def node_1_of_4(servers):
    server = servers("flake.node_id=1", "flake.node_count=4")
    server.sql("CREATE ROLE nobody LOGIN")
    return server


@pytest.mark.matrix
def test_a_server_that_is_well_and_asking_changes_nothing(node_1_of_4):
    server = node_1_of_4
    server.restart()
    mark = server.dir / "data" / "flake.mark"
    before = mark.read_bytes() if mark.exists() else None
    stats = "SELECT ledger, node_id, sessions FROM flake_stat"
    with server.connect(user="nobody") as db:
        assert wrong(db) == []
        assert findings(db)["settings"][1] == "From the first ID on, this server is node 1 of 4."
        assert findings(db)["lead"][1] == "No ID has been made since the server started."
        assert server.sql(stats) == [("unused", None, 0)]
        assert (mark.read_bytes() if mark.exists() else None) == before
        db.execute("SELECT flake_next('twitter')")
        assert wrong(db) == []
        assert findings(db)["node number"][1] == "This server is node 1 of 4."
        assert server.sql(stats) == [("open", 1, 1)]
        with db.transaction():
            db.execute("SET TRANSACTION READ ONLY")
            assert wrong(db) == []


def test_a_role_that_sees_little_gets_the_same_result(servers):
    """flake_check needs nothing that the role cannot see."""
    server = servers("wal_level=logical")
    server.sql("CREATE ROLE nobody LOGIN; CREATE TABLE secret (id bigint DEFAULT flake_next('si'))")
    server.sql("SELECT pg_create_logical_replication_slot('other', 'pgoutput')")
    with server.connect(user="nobody") as db:
        pytest.raises(psycopg.errors.InsufficientPrivilege, db.execute, "SELECT * FROM secret")
        seen = findings(db)
    with server.connect() as db:
        assert findings(db) == seen
    assert seen["node number"][0] is False
    assert seen["end of layouts"][1].startswith("si ends in ")


@pytest.mark.matrix
def test_the_default_number_is_wrong_if_other_servers_make_ids(servers):
    """docs/how-to/high-availability.md says that the default suffices for a primary and its standbys, unless these make IDs
    too."""
    primary = servers("wal_level=logical")
    primary.sql("CREATE ROLE nobody LOGIN")
    alone = (True, "This server is node 0 of 1, and has no logical replication slots or subscriptions.", None)
    assert check(primary, "node number") == alone
    primary.sql("CREATE SUBSCRIPTION s CONNECTION 'dbname=none' PUBLICATION p WITH (connect = false, slot_name = NONE)")
    assert "(subscriptions: 1)" in check(primary, "node number")[1]
    primary.sql("DROP SUBSCRIPTION s")
    primary.sql("SELECT pg_create_logical_replication_slot('other', 'pgoutput')")
    ok, detail, hint = check(primary, "node number")
    assert (ok, detail) == (False, "This server is node 0 of 1, the default, but it is not alone (logical replication slots: 1).")
    assert check(primary, "node number", user="nobody") == (ok, detail, hint)
    assert "flake.node_count" in hint and "flake.node_id" in hint and "restart" in hint
    primary.sql("SELECT pg_drop_replication_slot('other')")

    primary.sql("SELECT pg_create_physical_replication_slot('standby')")
    standby = servers(standby_of=primary)
    wait_until(lambda: primary.value("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == 1)
    assert check(primary, "node number") == check(standby, "node number") == alone
    standby.restart("flake.node_id=1", "flake.node_count=2")
    primary.restart("flake.node_count=2")
    for server in [primary, standby]:
        assert check(server, "node number")[0]
        assert server.sql("SELECT name, detail FROM flake_check() WHERE NOT ok") == []


def test_settings_that_wait_for_a_restart_are_named(node_1_of_4):
    server = node_1_of_4
    server.restart()
    server.sql("SELECT flake_next('twitter')")
    assert check(server, "settings")[:2] == (True, "The settings in the server's configuration are in force.")
    # The settings after a restart are checked too.
    server.sql("CREATE TABLE used (id bigint DEFAULT flake_next('twitter'))")
    server.reload("flake.node_count=2048")
    with server.connect() as db:
        assert wrong(db) == ["settings", "rates"]
        assert findings(db)["settings"] == (
            False, "flake.node_id = 1 and flake.node_count = 2048 are not in force; this server is node 1 of 4.",
            "Restart the server to apply the new settings.",
        )  # fmt: skip
        assert findings(db)["node number"][1] == "This server is node 1 of 4."
        assert "The layout has 1024 workers, but flake.node_count is 2048." in findings(db)["rates"][1]
    server.reload("flake.node_count=1")
    with server.connect() as db:
        assert wrong(db) == ["settings", "rates"]
        for name in ["settings", "rates"]:
            assert findings(db)[name][1].startswith("flake.node_id is 1, but flake.node_count is 1; the valid range is 0 to 0.")
    server.reload("flake.node_count=4")
    with server.connect() as db:
        assert wrong(db) == []
        db.execute("DROP TABLE used")


def test_settings_that_were_never_valid_are_named(servers):
    server = servers("flake.node_id=7", "flake.node_count=7")
    with server.connect() as db:
        assert wrong(db) == ["node number", "settings", "rates"]
        assert findings(db)["node number"][0] is None
        server.reload("flake.node_id=6")
    with server.connect() as db:
        assert wrong(db) == []


@pytest.mark.parametrize("who", [{"options": "-c flake.node_id=0"}, {"user": "shadowed"}], ids=["client", "role"])
def test_settings_that_hide_the_servers_are_named(node_1_of_4, who):
    server = node_1_of_4
    server.sql("DROP ROLE IF EXISTS shadowed; CREATE ROLE shadowed LOGIN; ALTER ROLE shadowed SET flake.node_id = 0")
    server.restart()
    for state in ["no number is in force before the first ID", "this server is node 1 of 4"]:
        with server.connect(**{"user": "nobody"} | who) as db:
            ok, detail, hint = findings(db)["settings"]
            assert not ok and detail.startswith("The client, the role or the database has set") and state in detail
            assert "ALTER ROLE" in hint
            # A check pins nothing, so the number stays unknown.
            assert findings(db)["node number"][0] is (None if state.startswith("no number") else True)
            assert findings(db)["rates"][0] is findings(db)["node number"][0]
        assert check(server, "settings")[0]
        server.sql("SELECT flake_next('twitter')")


def test_layouts_without_ids_for_this_server_are_named(servers):
    """A layout has none where there are more nodes than workers."""
    server = servers("max_connections=1000", "flake.node_count=128", "flake.node_id=127")
    with server.connect() as db:
        ok, detail, hint = findings(db)["rates"]
        assert ok and hint is None, "no default and no session uses one of these"
        unused = detail.removeprefix("This server can make IDs of all layouts in use; with these settings it could make none of ")
        unused = unused.removesuffix(".").split(", ")
        assert {"si", "si_single"} <= set(unused)
        assert not any("sno" in name for name in unused)
        built_in = [name for name, in db.execute("SELECT name FROM flake_layouts WHERE generates AND ends_at > now()").fetchall()]
        for name in [*built_in, "sno"]:
            call = "sno_next()" if name == "sno" else f"flake_next('{name}')"
            if name in unused:
                assert pytest.raises(psycopg.Error, db.execute, f"SELECT {call}").value.sqlstate == "22023"
            else:
                db.execute(f"SELECT {call}")

        db.execute("CREATE TABLE used (id bigint DEFAULT flake_next('si'::varchar))")
        db.execute("""SELECT flake_create_layout('narrow', '{"epoch": "2024-01-01T00:00:00Z", "tick": "1ms", "fields": [
            {"name": "timestamp", "bits": 41, "role": "timestamp"}, {"name": "worker", "bits": 6, "role": "worker"},
            {"name": "sequence", "bits": 8, "role": "sequence"}]}')""")
        ok, detail, hint = findings(db)["rates"]
        assert not ok
        assert detail.startswith("si: The layout has 32 workers, but flake.node_count is 128. ")
        assert "narrow: The layout has 64 workers, but flake.node_count is 128." in detail
        assert hint == "Lower flake.node_count and restart the server, or use a layout with more worker bits."
    server.restart("flake.node_count=1", "flake.node_id=0", "max_connections=100")
    assert check(server, "rates")[0]


@pytest.mark.matrix
def test_a_used_layout_with_less_than_one_id_in_16_microseconds_is_named(servers):
    """The check counts the IDs that all sessions can make together, which follow from the number of nodes alone."""
    server = servers("max_connections=100")
    rate_of = "SELECT ids_per_second FROM flake_layouts WHERE name = '{}'"
    rate = rate_of.format("base64id")
    with server.connect() as db:
        db.execute("SELECT flake_next('base64id')")
        # A turn has an eighth of the IDs. Nothing but less than a step's IDs of each lane is left out.
        in_a_tick = server.value(rate)
        assert 2**16 - 100 < in_a_tick <= 2**16
        db.execute("CREATE TABLE t (id bigint DEFAULT flake_next('base64id'), s sno DEFAULT sno_next())")
        assert findings(db)["rates"][0]
    server.restart("max_connections=1000")
    assert server.value(rate) == in_a_tick, "it does not depend on the connections"
    server.restart("flake.node_count=16")
    number = server.value(rate)
    assert 2**12 - 100 < number <= 2**12
    slow = (
        False, f"All sessions together can make {number} IDs of base64id in a second, which is less than one in 16 microseconds.",
    )  # fmt: skip
    ok, detail, hint = check(server, "rates")
    assert (ok, detail) == slow and "flake.node_count" in hint
    server.sql("DROP TABLE t")
    with server.connect() as db:
        assert findings(db)["rates"][0], "nothing uses it"
        db.execute("SELECT flake_next('base64id')")
        assert findings(db)["rates"][:2] == slow, "this session makes them"
    server.restart("flake.node_count=32")
    assert server.value(rate_of.format("si")) == 32_000
    server.restart("flake.node_count=64")
    assert server.value(rate_of.format("si")) is None
    assert server.value("SELECT count(*) FROM flake_layouts WHERE ids_per_second IS NOT NULL AND NOT generates") == 0


def test_a_layout_whose_definition_was_changed_is_named(servers):
    server = servers()
    with server.connect() as db:
        db.execute("SELECT flake_create_layout('mine', '{\"like\": \"si\"}')")
        db.execute("CREATE TABLE t (id bigint DEFAULT flake_next('mine'))")
        assert wrong(db) == []
        db.execute("ALTER SERVER mine OPTIONS (SET definition '{\"like\": \"twitter\"}')")
        assert wrong(db) == ["rates"]
        ok, detail, hint = findings(db)["rates"]
        assert (ok, detail) == (False, 'mine: definition of layout "mine" has been changed.')
        assert hint.startswith("Undo the change")


def test_layouts_that_end_soon_are_named(servers):
    server = servers()
    with server.connect() as db:
        db.execute("SET timezone = 'UTC'")
        assert findings(db)["end of layouts"][:2] == (True, "No column default uses a layout, and this session has not made IDs.")
        db.execute("CREATE TABLE a (id bigint DEFAULT flake_next('twitter'), s sno DEFAULT sno_next(5))")
        ok, detail, _ = findings(db)["end of layouts"]
        assert ok and detail.startswith("sno ends in 5") and "twitter ends in 5" in detail
        db.execute("SELECT flake_next('discord')")
        ok, detail, _ = findings(db)["end of layouts"]
        assert ok and "The order of discord by time ends in 5" in detail and "and discord in 12" in detail
        # A generated column shows what clients make.
        for name, days in [("last", 400), ("nearly", 4 * 365), ("later", 6 * 365)]:
            epoch = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days, milliseconds=-(2**41))
            definition = f'{{"like": "twitter", "epoch": "{epoch:%Y-%m-%dT%H:%M:%SZ}"}}'
            db.execute("SELECT flake_create_layout(%s, %s)", (name, definition))
        assert findings(db)["end of layouts"][0], "not in use"
        db.execute("CREATE TABLE b (id bigint, at timestamptz GENERATED ALWAYS AS (flake_timestamp(id, 'last')) STORED)")
        ok, detail, hint = findings(db)["end of layouts"]
        assert not ok and detail.startswith("last ends in 399 days (")
        assert "flake_create_layout" in hint
        db.execute("DROP TABLE b; CREATE TABLE b (id bigint DEFAULT flake_next('nearly'))")
        ok, detail, _ = findings(db)["end of layouts"]
        assert not ok and detail.startswith("nearly ends in 3 years (")
        db.execute("ALTER TABLE b ALTER id SET DEFAULT flake_next('later')")
        assert findings(db)["end of layouts"][0]


def test_a_lead_is_named(servers):
    server = servers(clock="+3600")
    with server.connect() as db:
        db.execute("SELECT flake_next('twitter')")
        assert wrong(db) == []
        server.set_clock("+0")
        assert wrong(db) == ["lead"]
        _, detail, hint = findings(db)["lead"]
        assert detail.startswith("IDs lead the clock by 3") and "flake_accept_clock()" in hint
        assert "docs/how-to/runbook.md" in hint and "max_lead" not in hint
        db.execute("SELECT flake_next('twitter')")
        assert wrong(db) == ["lead"]
        server.set_clock("-100000")
        assert "flake.max_lead" in findings(db)["lead"][2]
        server.set_clock("+0")
        assert server.value("SELECT flake_accept_clock() < now() + interval '1 minute'")
        assert wrong(db) == []
        server.sql("SELECT flake_next('twitter')")
        assert wrong(db) == []


@pytest.mark.parametrize("name", ["flake_mark", "flake_turns"])
def test_a_last_value_that_was_set_back_is_named_until_the_next_ids(servers, name):
    """pg_upgrade keeps the values of the sequence and of its copy. The next IDs write them."""
    server = servers()
    server.sql("SELECT flake_next('twitter')")
    sequences = [name, {"flake_mark": "flake_mark_until", "flake_turns": "flake_turns_copy"}[name]]
    for sequence in sequences:
        server.sql(f"SELECT setval('flake_internal.{sequence}', 1)")
    ok, detail, hint = check(server, "pg_upgrade")
    assert not ok and detail.startswith('The last value of sequence "flake_mark", "flake_turns" or of their copies')
    assert hint.startswith("Make an ID in this database")
    wait_until(lambda: server.value("SELECT flake_next('twitter')") and check(server, "pg_upgrade")[0])
    mark, copy = (server.sql(f"SELECT last_value FROM flake_internal.{sequence}") for sequence in sequences)
    assert mark == copy


@pytest.mark.matrix
def test_a_library_of_another_version_is_named(servers):
    server = servers()
    put_other_version(server)
    with server.connect() as db:
        ok, detail, hint = findings(db)["library"]
        assert not ok and detail.startswith("The server's shared memory has form 99 ") and hint.startswith("Restart the server")
        # The other checks need shared memory.
        assert wrong(db) == ["settings", "shared number", "lead", "pg_upgrade", "library", "turn"]
    server.restart()
    assert check(server, "library")[0]


@pytest.mark.matrix
def test_missing_shared_memory_is_named(servers):
    server = servers()
    server.restart()
    server.sql(f"CREATE FUNCTION take_shared_memory() RETURNS void LANGUAGE c AS '{server.compile('greedy', GREEDY)}'")
    server.sql("SELECT take_shared_memory()")
    with server.connect() as db:
        for _ in range(2):
            error = pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, findings, db).value
            assert "shared_preload_libraries" in error.diag.message_hint
    server.restart("shared_preload_libraries=flake")
    server.sql("SELECT take_shared_memory()")
    with server.connect() as db:
        assert wrong(db) == []
