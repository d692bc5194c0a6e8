"""The runbook, section by section: what it says to run, on servers to which the event happens, prints what it says."""

import functools
import inspect
import re
import sys

import pages
from conftest import ROOT
from test_versions import VERSION
from waiting import wait_until

PAGE = ROOT / "docs" / "runbook.md"
follow = functools.partial(pages.Section, PAGE)
ORDERS = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)"
INSERT = "INSERT INTO orders SELECT FROM generate_series(1, 10)"


def with_orders(server):
    server.sql(ORDERS)
    server.sql(INSERT)
    return server


def next_is_above(server):
    """All that was there before."""
    return server.value("SELECT flake_next('twitter') > max(id) FROM orders")


def pair(own_servers):
    primary = with_orders(own_servers("flake.node_count=32", "wal_log_hints=on", "wal_keep_size=64MB"))
    standby = own_servers(standby_of=primary)
    standby.wait_for_replay(primary)
    return primary, standby


def test_every_section_is_executed():
    headings = re.findall(r"^## (.*)$", PAGE.read_text(), re.M)
    executed = re.findall(r'follow\("(.*?)"\)', inspect.getsource(sys.modules[__name__]))
    assert [heading for heading in headings if pages.section(PAGE, heading)] == executed


def test_first_look(own_servers):
    server = with_orders(own_servers("flake.node_count=32"))
    with follow("First look") as section:
        section.sql(server)
        section.sql(server)


def test_promotion(own_servers):
    old, new = pair(own_servers)
    old.stop("immediate")
    with follow("A standby is promoted") as section:
        section.sql(new)
        assert next_is_above(new)
        section.bash(old, PRIMARY=new.dir, KEPT=old.dir / "kept")
    new.sql(INSERT)
    old.wait_for_replay(new)
    assert old.value("SELECT count(*) FROM orders") == 20


def test_switchover(own_servers):
    old, new = pair(own_servers)
    with follow("Switchover") as section:
        section.bash(old)
        section.sql(new)
        assert next_is_above(new)
        section.bash(old, PRIMARY=new.dir)
        section.sql(old)
    new.sql(INSERT)
    old.wait_for_replay(new)
    assert old.value("SELECT count(*) FROM orders") == 20


def test_clone(own_servers):
    server = with_orders(own_servers("flake.node_count=32"))
    clone = server.dir / "clone"
    with follow("A clone") as section:
        section.bash(server, ORIGINAL=server.dir, CLONE=clone)
        try:
            section.sql(server, "-p", "5433")
        finally:
            pages.run(server, f"{pages.bindir()}/pg_ctl -D {clone} -m immediate -w stop")


def test_restored_server(own_servers):
    """Its clock is three seconds behind the last ID of the original."""
    server = with_orders(own_servers(clock="+0"))
    greatest = server.value("SELECT flake_max(clock_timestamp() + interval '3 s')")
    with follow("A restored server") as section:
        section.sql(server, greatest=greatest)
        section.sql(server, greatest=greatest)


def test_restored_dump(own_servers):
    old, new = with_orders(own_servers(clock="+0")), own_servers(clock="-3", extension=False)
    old.sql("""SELECT flake_create_layout('ours', '{"like": "si"}')""")
    new.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", input=old.run("pg_dump").stdout)
    with follow("A restored dump") as section:
        section.sql(old)
        section.sql(new)
    assert next_is_above(new)


def test_clock_behind(own_servers):
    server = with_orders(own_servers(clock="+0"))
    server.set_clock("-3600")
    with follow("The clock is behind") as section:
        section.sql(server)
        section.sql(server)
        server.set_clock("+10")
        section.sql(server)
    assert next_is_above(server)


def test_clock_ahead(own_servers):
    server = own_servers(clock="+0")
    server.sql("SELECT flake_next('twitter')")
    server.set_clock("+3600")
    server.sql("SELECT flake_next('twitter')")
    server.set_clock("+10")
    with follow("The clock was ahead") as section:
        section.sql(server)
        section.sql(server)
        section.sql(server)


def test_node_added(own_servers):
    server = own_servers()
    with follow("A node is added or removed") as section:
        section.sql(server)
        section.bash(server)
        section.sql(server)
    assert server.value("SELECT (flake_decode(flake_next('twitter'))).worker / 32") == 5


def test_library_updated(own_servers):
    """The memory that the server's sessions share is that of another version."""
    server = with_orders(own_servers())
    library = server.compile("version", VERSION)
    server.sql(f"CREATE FUNCTION set_version(integer) RETURNS integer LANGUAGE c AS '{library}'")
    server.sql("SELECT set_version(99)")
    with follow("The library was updated") as section:
        section.sql(server)
        section.bash(server)
        section.sql(server)
    assert next_is_above(server)


def test_damaged_file(own_servers):
    server = with_orders(own_servers())
    server.stop()
    server.write("flake.mark", "not a mark")
    server.launch()
    with follow("flake.mark cannot be used") as section:
        section.sql(server)
        section.bash(server)
        section.sql(server)
    assert next_is_above(server)


def test_consumers(own_servers):
    server = with_orders(own_servers())
    db = server.connect()
    with follow("Consumers") as section:
        db.execute("BEGIN")
        db.execute(INSERT)
        section.sql(server)
        section.sql(server)
        wait_until(lambda: not server.sql("SELECT FROM flake_open"))
    db.close()
