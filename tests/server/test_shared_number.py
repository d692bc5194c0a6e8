"""The check "shared number" finds rows that another server with this server's number has made, and no others."""

import re

import pytest

from conftest import ROOT
from standing_clock import running
from waiting import wait_until

TABLE = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('{}'), item text)"
FINE = "None has a key of this server's number that this server has not made."


def found(server, **options):
    with server.connect(**options) as db:
        return db.execute("SELECT ok, detail, hint FROM flake_check() WHERE name = 'shared number'").fetchone()


def is_fine(server, **options):
    ok, detail, hint = found(server, **options)
    assert ok is not True or detail.endswith(FINE) or detail == "This server has made no ID since its start."
    assert (ok is False) == (hint is not None)
    return ok


def insert(server, count=1):
    return [id for id, in server.sql("INSERT INTO orders (item) SELECT 'tea' FROM generate_series(1, %s) RETURNING id", count)]


def copy(ids, server):
    server.sql("INSERT INTO orders SELECT id, 'of another server' FROM unnest(%s::bigint[]) id ON CONFLICT DO NOTHING", ids)


@pytest.fixture
def two(own_servers):
    """Two servers, each with the number 0."""
    servers = [own_servers("flake.node_id=0", "flake.node_count=4") for _ in range(2)]
    for server in servers:
        server.sql(TABLE.format("twitter"))
    return servers


def test_a_row_of_a_server_with_this_number_is_found(two):
    """Also if the greatest keys are of servers with other numbers."""
    here, there = two
    assert is_fine(here)
    own = insert(here, 10)
    assert is_fine(here)
    there.sql("SELECT pg_sleep(0.01)")
    ids = insert(there, 2)
    copy([id | 1 << 21 for id in ids], here)
    assert here.sql("SELECT DISTINCT flake_node(id) FROM orders ORDER BY 1") == [(0,), (2,)]
    assert is_fine(here), "another node is allowed to have keys here"
    copy(ids, here)
    ok, detail, hint = found(here)
    assert ok is False and f"Key {max(ids)} of 20" in detail and "in orders has this server's number" in detail
    assert "flake.node_id" in hint
    # The other server has made the same keys itself.
    assert is_fine(there)
    # Once this server makes IDs again, it cannot tell.
    assert insert(here)[0] > max(ids + own)
    assert is_fine(here)
    copy(insert(there), here)
    assert is_fine(here) is False


@pytest.mark.matrix
@pytest.mark.parametrize("layout", ["si", "base64id", "mastodon", "sonyflake", "snowflake"])
def test_it_knows_the_parts_of_layouts(own_servers, layout):
    here, there = (own_servers() for _ in range(2))
    for server in here, there:
        server.sql(TABLE.format(layout))
    insert(here, 1000)
    assert is_fine(here)
    there.sql("SELECT pg_sleep(1.1)")
    copy(insert(there), here)
    assert is_fine(here) is False


@pytest.mark.matrix
def test_a_layout_that_was_not_used_since_the_start_is_known(two):
    here, there = two
    here.sql("SELECT flake_next('si')")
    copy(insert(there), here)
    here.restart()
    # Without an ID of its own, a server does not know what it has made before.
    assert found(here)[:2] == (True, "This server has made no ID since its start.")
    first = here.value("SELECT flake_timestamp(flake_next('si'), 'si')")
    assert is_fine(here), "the key is older than this server's first ID"
    # After a restart, IDs lead the clock for a moment.
    wait_until(lambda: there.value("SELECT clock_timestamp() > %s", first))
    copy(insert(there), here)
    assert is_fine(here) is False


@pytest.mark.matrix
@pytest.mark.parametrize("layout", ["twitter", "mastodon"])
def test_rows_of_earlier_starts_and_primaries_are_fine(own_servers, layout):
    """Neither are rows that an old primary makes after a promotion this server's."""
    primary = own_servers()
    primary.sql(TABLE.format(layout))
    standby = own_servers(standby_of=primary)
    for mode in "fast", "immediate":
        insert(primary, 1000)
        primary.restart(mode=mode)
        assert is_fine(primary)
        primary.sql("SELECT flake_next('si')")
        assert is_fine(primary)
    insert(primary, 10)
    standby.wait_for_replay(primary)
    assert is_fine(standby)
    standby.promote()
    standby.sql("SELECT flake_next('si')")
    assert is_fine(standby)
    copy(insert(primary, 10), standby)
    assert is_fine(standby)
    copy(insert(standby, 10), primary)
    assert is_fine(primary)


def test_an_accepted_clock_makes_no_row_foreign(own_servers):
    server = own_servers(clock=running(3600))
    server.sql(TABLE.format("twitter"))
    insert(server, 10)
    server.set_clock(running(0))
    server.sql("SELECT flake_accept_clock()")
    assert is_fine(server)
    insert(server, 10)
    assert is_fine(server)
    server.sql("SELECT flake_accept_clock()")
    assert is_fine(server)


def test_keys_from_elsewhere_are_fine(own_servers):
    """Converted keys, IDs by the time of rows as docs/how-to/convert.md gives them, and a copy after flake_start_above."""
    server, other = own_servers(), own_servers()
    for each in server, other:
        each.sql("""CREATE TABLE orders (
            id bigserial PRIMARY KEY, item text, created_at timestamptz NOT NULL DEFAULT clock_timestamp())""")
        each.sql("SELECT flake_next('si')")
    server.sql("INSERT INTO orders (item) SELECT 'tea' FROM generate_series(1, 1000)")
    with server.connect() as db:
        db.execute("SET lock_timeout = '5s'")
        first = db.execute("SELECT first_id FROM flake_convert('orders', 'twitter')").fetchone()[0]
        page = (ROOT / "docs/how-to/convert.md").read_text()
        ids = re.search(r"CREATE TABLE order_ids AS\n.*?;\n", page, re.S)[0].replace(":first_id", str(first))
        db.execute(ids + "UPDATE orders SET id = new_id FROM order_ids WHERE id = old_id")
        assert db.execute("SELECT count(*) FROM orders WHERE id > 1000000").fetchone()[0] > 900
    assert is_fine(server)
    other.sql("ALTER TABLE orders ALTER id SET DEFAULT flake_next('twitter')")
    ids = insert(other, 10)
    copy(ids, server)
    assert is_fine(server) is False
    server.sql("SELECT flake_start_above(%s, 'twitter')", max(ids))
    assert is_fine(server)


def test_it_leaves_out_what_it_may_not_read_and_what_has_no_order(two):
    here, there = two
    here.sql("CREATE ROLE nobody LOGIN; CREATE TABLE spread (id bigint PRIMARY KEY DEFAULT flake_next('uniqueid'))")
    there.sql("CREATE TABLE spread (id bigint PRIMARY KEY DEFAULT flake_next('uniqueid'))")
    insert(here)
    here.sql("INSERT INTO spread DEFAULT VALUES")
    for id, in there.sql("INSERT INTO spread SELECT FROM generate_series(1, 10) RETURNING id"):
        here.sql("INSERT INTO spread VALUES (%s) ON CONFLICT DO NOTHING", id)
    copy([id for id, in there.sql("SELECT flake_batch('twitter', 5)")], here)
    assert is_fine(here) is False
    assert is_fine(here, user="nobody")
    here.sql("DELETE FROM orders WHERE item <> 'tea'")
    assert is_fine(here)
    # A key of the far future is what the check "greatest keys" finds.
    here.sql("INSERT INTO orders VALUES (flake_min(now() + interval '2 days') | 4096 * 40, 'chosen')")
    assert is_fine(here)


def test_only_a_thousand_keys_are_read(two):
    here, there = two
    insert(here)
    copy(insert(there), here)
    assert is_fine(here) is False
    here.sql("ALTER TABLE orders DROP CONSTRAINT orders_pkey; CREATE INDEX ON orders (id DESC)")
    assert is_fine(here) is False
    there.sql("SELECT pg_sleep(0.01)")
    later = [id | 1 << 21 for id, in there.sql("SELECT flake_batch('twitter', 999)")]
    copy_plain = "INSERT INTO orders SELECT id, 'of node 2' FROM unnest(%s::bigint[]) id"
    here.sql(copy_plain, later)
    assert is_fine(here) is False
    here.sql(copy_plain, [later[-1] + 1])
    assert is_fine(here)
