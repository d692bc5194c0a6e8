"""The runbook, section by section: on servers in the described state, the commands print what the page shows."""

import functools
import inspect
import re
import shutil
import subprocess
import sys

import psycopg
import pytest

import pages
from conftest import LAYOUTS, ROOT, bindir
from test_ledger import put_other_version
from waiting import wait_until

PAGE = ROOT / "docs/how-to/runbook.md"
follow = functools.partial(pages.Section, PAGE)
ORDERS = "CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)"
INSERT = "INSERT INTO orders SELECT FROM generate_series(1, 10)"


# The configuration of Debian is not in the data directory, which is the harder case.
LAYOUTS_OF_SERVERS = [pytest.param("of initdb", marks=pytest.mark.matrix), "of Debian"]


@pytest.fixture(params=LAYOUTS_OF_SERVERS)
def laid_out(request):
    """Gives a server the directories that operators know from Debian."""
    is_debian = request.param == "of Debian"
    if is_debian and not (shutil.which("pg_createcluster") and str(bindir()).startswith("/usr/lib/postgresql/")):
        pytest.skip("no pg_createcluster for this PostgreSQL")
    return pages.lay_out_as_debian if is_debian else lambda server: server


def with_orders(server):
    server.sql(ORDERS)
    server.sql(INSERT)
    return server


def next_is_above(server):
    """Checks that the next ID is above all earlier ones."""
    return server.value("SELECT flake_next('twitter') > max(id) FROM orders")


def pair(own_servers, laid_out):
    primary = with_orders(own_servers("flake.node_count=32", "wal_log_hints=on", "wal_keep_size=64MB"))
    standby = own_servers(standby_of=primary)
    laid_out(primary)
    # The primary was started again. A standby that has not connected again would miss the last record before a switchover.
    wait_until(lambda: primary.value("SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'") == 1)
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


@pytest.mark.matrix
def test_promotion(own_servers, laid_out):
    old, new = pair(own_servers, laid_out)
    # Numbers of nodes are set in the same way.
    old.sql("ALTER SYSTEM SET work_mem = '5MB'")
    old.stop("immediate")
    with follow("A standby is promoted") as section:
        section.sql(new)
        assert next_is_above(new)
        section.bash(old, PRIMARY=new.dir, KEPT=old.dir / "kept")
    assert old.value("SHOW work_mem") == "5MB"
    new.sql(INSERT)
    old.wait_for_replay(new)
    assert old.value("SELECT count(*) FROM orders") == 20


@pytest.mark.matrix
def test_switchover(own_servers, laid_out):
    old, new = pair(own_servers, laid_out)
    with follow("Switchover") as section:
        section.bash(old)
        section.sql(new)
        assert next_is_above(new)
        section.bash(old, PRIMARY=new.dir)
        section.sql(old)
    new.sql(INSERT)
    old.wait_for_replay(new)
    assert old.value("SELECT count(*) FROM orders") == 20


@pytest.mark.matrix
def test_clone(own_servers, laid_out):
    server = laid_out(with_orders(own_servers("flake.node_count=32")))
    clone = server.dir / "clone"
    config = pages.emptied_debian_cluster(server, clone) if laid_out is pages.lay_out_as_debian else clone
    with follow("A clone") as section:
        section.bash(server, ORIGINAL=server.dir, CLONE=clone, CONFIG=str(config))
        try:
            section.sql(server, "-p", "5433")
        finally:
            pages.run(server, f"{bindir()}/pg_ctl -D {clone} -m immediate -w stop")


def test_restored_server(own_servers):
    """The server's clock is three seconds behind the last ID of the original."""
    server = with_orders(own_servers(clock="+0"))
    greatest = server.value("SELECT flake_max(clock_timestamp() + interval '3 s')")
    with follow("A restored server") as section:
        section.sql(server, greatest=greatest)
        section.sql(server, greatest=greatest)


@pytest.mark.matrix
def test_restored_dump(own_servers):
    old, new = with_orders(own_servers(clock="+0")), own_servers(clock="-3", extension=False)
    old.sql("""SELECT flake_create_layout('ours', '{"like": "si"}')""")
    new.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", input=old.run("pg_dump").stdout)
    latest = new.value("SELECT max(id) FROM orders")
    with follow("A restored dump") as section:
        section.sql(old)
        section.sql(new)
        section.sql(new)
        section.sql(new, id=latest, layout="twitter")
    assert next_is_above(new)


@pytest.mark.matrix
def test_columns_of_a_restored_dump(own_servers):
    """The query finds each column of a table whose default makes IDs, and its statements find the ID with the latest time."""
    old, new = own_servers(clock="+0"), own_servers(clock="-3", extension=False)
    old.sql("""SELECT flake_create_layout('ours', '{"like": "twitter", "epoch": "2024-01-01T00:00:00Z"}')""")
    old.sql('CREATE SCHEMA "a b"')
    layouts = [*LAYOUTS, "ours", "sno"]
    for layout in layouts:
        type, next, make = (
            ("sno", "sno_next(7)", "sno_make({0}, 7)") if layout == "sno"
            else ("bigint", f"flake_next('{layout}')", f"flake_make({{0}}, '{{{{}}}}', '{layout}')")
        )  # fmt: skip
        ids = make.format("now() - n * interval '7 minutes'")
        old.sql(f"""CREATE TABLE "a b".{layout} ("the id" {type} DEFAULT {next}, n int DEFAULT 5) PARTITION BY LIST (n);
            CREATE TABLE "a b".{layout}_part PARTITION OF "a b".{layout} DEFAULT;
            INSERT INTO "a b".{layout} SELECT {ids} FROM generate_series(0, 50) n;
            CREATE TABLE "a b".{layout}_older AS SELECT min("the id"::text)::{type} AS "an 'id" FROM "a b".{layout};
            ALTER TABLE "a b".{layout}_older ALTER "an 'id" SET DEFAULT {next};
            INSERT INTO "a b".{layout}_older VALUES (NULL)""")
    # No statement may read a view, whose functions can be another role's.
    old.sql("""CREATE VIEW "a b".view AS SELECT * FROM "a b".twitter;
        ALTER VIEW "a b".view ALTER "the id" SET DEFAULT flake_next('si')""")
    new.run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", input=old.run("pg_dump").stdout)
    found = dict(reversed(row) for statement in printed(new) for row in new.sql(statement))
    assert set(found) == set(layouts)
    for layout in layouts:
        of = "%s::sno" if layout == "sno" else f"%s, '{layout}'"
        kind = "sno" if layout == "sno" else "flake"
        read = f"{kind}_timestamp({of})"
        latest = new.value(f"""SELECT max({read.replace("%s", '"the id"')}) FROM "a b".{layout}""")
        assert new.value(f"SELECT {read}", found[layout]) == latest
        assert new.value(f"SELECT {kind}_start_above({of})", found[layout]) > latest


def printed(server):
    """The statements that the query of the page prints."""
    with server.connect() as db:
        setting, query = pages.recipe(PAGE, "A restored dump")[1].split("\n", 1)
        db.execute(setting)
        return [statement for statement, in db.execute(query)]


# Columns whose defaults make IDs by other objects, with the layout that the statement names.
BEHIND = {
    "a": ("CREATE FUNCTION make_a() RETURNS bigint RETURN (SELECT flake_next('si'))", "bigint DEFAULT make_a()", "si"),
    "b": ("CREATE FUNCTION make_b() RETURNS bigint RETURN make_a() + 0", "bigint DEFAULT make_b()", "si"),
    "c": ("CREATE FUNCTION make_c() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN public.flake_next( 'twitter' ); END $$",
          "bigint DEFAULT make_c()", "twitter"),
    "d": ("CREATE DOMAIN made AS bigint DEFAULT flake_next('discord')", "made", "discord"),
    "e": ("CREATE DOMAIN made_by AS bigint DEFAULT make_a()", "made_by", "si"),
    "f": ("CREATE FUNCTION make_f(id bigint DEFAULT flake_next('si')) RETURNS bigint RETURN id", "bigint DEFAULT make_f()", "si"),
    "g": ("CREATE FUNCTION make_g(of text) RETURNS bigint RETURN flake_next(of)", "bigint DEFAULT make_g('si')", "?"),
    "h": ("CREATE FUNCTION make_h() RETURNS sno RETURN sno_next(7)", "sno DEFAULT make_h()", "sno"),
    "i": ("CREATE FUNCTION other() RETURNS bigint RETURN 1", "bigint DEFAULT other()", "none"),
}  # fmt: skip


def test_columns_of_a_restored_dump_that_call_functions(own_servers):
    server = own_servers()
    tables = {}
    for name, (make, column, layout) in BEHIND.items():
        server.sql(f"{make}; CREATE TABLE {name} (id {column})")
        tables.setdefault(layout, []).append(f"SELECT id{'' if layout == 'sno' else '::bigint'} FROM {name}")
    order = {layout: "id" if layout == "sno" else f"flake_timestamp(id, '{layout}')" for layout in tables}
    head, tail = "SELECT id, '{}' AS layout FROM ({})", "ids(id) ORDER BY {} DESC NULLS LAST LIMIT 1;"
    assert printed(server) == sorted(
        f"{head.format(layout, ' UNION ALL '.join(ids))} {tail.format(order[layout])}"
        for layout, ids in tables.items() if layout != "none"
    )  # fmt: skip


def test_rows_that_a_policy_hides_from_the_owner_raise_an_error(own_servers):
    server = own_servers()
    server.sql("CREATE ROLE owner LOGIN; GRANT CREATE ON SCHEMA public TO owner")
    with server.connect(user="owner") as db:
        db.execute(f"{ORDERS}; {INSERT}; ALTER TABLE orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
        setting, query = pages.recipe(PAGE, "A restored dump")[1].split("\n", 1)
        db.execute(setting)
        statement, = db.execute(query).fetchone()
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="would be affected by row-level security"):
            db.execute(statement)


def test_lead(own_servers):
    server = own_servers(clock="+0")
    server.sql("SELECT flake_next('twitter')")
    server.set_clock("+3600")
    server.sql("SELECT flake_next('twitter')")
    server.set_clock("+10")
    with follow("IDs lead the clock") as section:
        section.sql(server)
        section.sql(server)
        section.sql(server)


@pytest.mark.matrix
def test_node_added(own_servers, laid_out):
    server = laid_out(own_servers())
    with follow("A node is added or removed") as section:
        section.bash(server)
        section.sql(server)
    assert server.value("SELECT (flake_decode(flake_next('twitter'))).worker / 32") == 5


def test_library_updated(own_servers):
    """The shared memory of the server belongs to another version."""
    server = with_orders(own_servers())
    put_other_version(server)
    with follow("The library was updated") as section:
        section.sql(server)
        section.bash(server)
        section.sql(server)
    assert next_is_above(server)


@pytest.mark.matrix
def test_damaged_file(own_servers, laid_out):
    server = with_orders(own_servers())
    server.stop()
    server.write("flake.mark", "not a mark")
    server.launch()
    laid_out(server)
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
        wait_until(lambda: not server.sql("SELECT FROM flake_open_transactions"))
    db.close()


COMMAND_BLOCKS = [
    (heading, number)
    for heading in re.findall(r"^## (.*)$", PAGE.read_text(), re.M)
    for number in range(len(pages.recipe(PAGE, heading, "bash")))
]
# Commands that record their calls and succeed; only the one with this number fails.
RECORDED = r"""
called() { number=$((${number:-0} + 1)); builtin echo "$number $*" >>"$CALLS"; test $number -ne $FAILING; }
for command in COMMANDS; do eval "$command() { called $command \"\$@\"; }"; done
"""


@pytest.mark.parametrize("heading, number", COMMAND_BLOCKS)
def test_a_block_stops_at_its_first_error(tmp_path, heading, number):
    block = pages.recipe(PAGE, heading, "bash")[number]
    commands = [step.split()[0] for step in pages.steps(block)]
    variables = dict.fromkeys(["PGDATA", "CONFIG", "KEPT", "PRIMARY", "ORIGINAL", "CLONE"], str(tmp_path))
    for failing in range(1, len(commands) + 2):
        calls = tmp_path / f"calls {failing}"
        script = RECORDED.replace("COMMANDS", " ".join(set(commands))) + block
        environment = {"PATH": "", "CALLS": str(calls), "FAILING": str(failing)} | variables
        done = subprocess.run(["/bin/bash", "-uc", script], check=False, env=environment, capture_output=True, text=True)
        called = [line.split()[1] for line in calls.read_text().splitlines()]
        assert called == commands[:failing], done.stderr
        assert (done.returncode == 0) == (failing > len(commands)), "the last block knows"


@pytest.mark.parametrize("heading", re.findall(r"^## (.*)$", PAGE.read_text(), re.M))
def test_only_the_first_statement_of_a_block_changes_anything(heading):
    """Statements after an error change nothing."""
    calls = "pg_promote|flake_accept_clock|flake_start_above\\(:|pg_terminate"
    changes = re.compile(rf"{calls}|\A(?!SELECT|WITH)|\b(INSERT|UPDATE|DELETE)\b")
    for sql in pages.recipe(PAGE, heading):
        assert not [statement for statement in sql.strip().split(";\n")[1:] if changes.search(statement)]


# The mode in which the old primary stops, and which block of the section makes it a standby.
BECOMES_A_STANDBY = {"A standby is promoted": ("immediate", 0), "Switchover": ("fast", 1)}


@pytest.mark.matrix
@pytest.mark.parametrize("heading", BECOMES_A_STANDBY)
def test_the_old_primary_is_never_a_second_one(own_servers, laid_out, heading):
    """Each command of the block fails once before it runs. The old primary must never be started in between."""
    mode, number = BECOMES_A_STANDBY[heading]
    old, new = pair(own_servers, laid_out)
    old.stop(mode)
    new.promote()
    block = pages.recipe(PAGE, heading, "bash")[number]
    variables = pages.of(old) | {"PRIMARY": str(new.dir), "KEPT": str(old.dir / "kept")}
    for command in pages.steps(block):
        with pytest.raises(AssertionError):
            pages.run(old, block.replace(command, "false", 1), **variables)
        assert not (old.dir / "data" / "postmaster.pid").exists(), "a second primary"
        pages.run(old, command, **variables)
        block = block.replace(command, "true", 1)
    assert old.value("SELECT pg_is_in_recovery()") and not new.value("SELECT pg_is_in_recovery()")
    new.sql(INSERT)
    old.wait_for_replay(new)
