"""Statements of the pages for all tables run nothing of other owners: by a superuser, or by the owner of the database."""

import contextlib
import re
import subprocess

import psycopg
import pytest

import hostile
import pages
from conftest import ROOT

DOCS = ROOT / "docs/how-to"
WIDEN = ROOT / "examples/widen.sql"
ROLES = ["Keeper", "postgres"]


@pytest.fixture
def server(own_servers):
    server = own_servers()
    hostile.plant(server, *ROLES)
    return server


def psql(server, role, *scripts, arguments=()):
    """Runs scripts in one session, whose search_path has the role's own tables. Returns what it prints."""
    client = server.of_client(role, "postgres", f"-c search_path={hostile.schema(role)},public")
    done = client.run("psql", "-XAtq", "-v", "ON_ERROR_STOP=1", *arguments, input="\n".join(scripts), stderr=subprocess.STDOUT)
    return done.stdout


def blocks(page, heading, *beginnings):
    """The blocks of SQL below a heading that have these texts."""
    found = pages.recipe(DOCS / page, heading)
    return [next(block for block in found if beginning in block) for beginning in beginnings]


def executed(query):
    """Runs what the last query of a block prints."""
    return query.rstrip().removesuffix(";") + " \\gexec"


def columns(server, role, shown, *names):
    """Returns what the catalog shows of columns of the role's own tables. This session calls nothing in public either."""
    query = f"SELECT {shown} FROM pg_attribute WHERE attrelid = %s::regclass AND attname = %s"
    with server.connect(options="-c search_path=pg_catalog") as db:
        pairs = (f"{hostile.schema(role)}.{name}".rsplit(".", 1) for name in names)
        return [db.execute(query, pair).fetchone()[0] for pair in pairs]


TYPE = "format_type(atttypid, atttypmod)"


def nothing_ran(server):
    assert hostile.ran(server) == set() and not hostile.has_risen(server)


@pytest.mark.matrix
def test_a_role_that_uses_a_table_runs_functions_of_its_owner(server):
    """Without that, the other tests could not fail."""
    uses = {place: use for place, (_, use) in hostile.PLACES.items() if use}
    if server.value("SHOW debug_assertions") == "on":
        # PostgreSQL asserts that no constant function of a domain's constraint catches an error.
        del uses["domain"]
    for place, use in uses.items():
        for role in ROLES:
            server.sql('ALTER ROLE mallory NOSUPERUSER; REVOKE "Keeper" FROM mallory')
            with contextlib.suppress(psycopg.errors.InsufficientPrivilege):
                hostile.act(server, role, use.format(t=f"m.{place}", schema=hostile.schema(role)))
            # A policy does not apply to superusers.
            assert role == "Keeper" or place == "policy" or hostile.has_risen(server), place
    assert hostile.ran(server) >= uses.keys() | {"attempt"}


OF_THE_OWNER = """
    CREATE FUNCTION m.greatest() RETURNS bigint SECURITY DEFINER SET search_path = pg_catalog, pg_temp LANGUAGE plpgsql AS $$
    BEGIN
        RETURN (SELECT max(id) FROM m.index);
    END $$"""


@pytest.mark.matrix
@pytest.mark.parametrize("query", ["SET LOCAL ROLE mallory; SELECT max(id) FROM m.index", "SELECT m.greatest()"])
def test_in_a_session_of_a_superuser_it_is_not_enough_to_act_as_the_owner(server, query):
    """The owner's function can reset the role, or plant a trigger that fires when the transaction commits."""
    if server.value("SHOW debug_assertions") == "on":
        pytest.skip("PostgreSQL asserts that no trigger catches an error during COMMIT")
    hostile.act(server, "mallory", OF_THE_OWNER)
    hostile.act(server, "postgres", f"BEGIN; {query}; COMMIT")
    if server.value("SELECT current_setting('server_version_num')::int >= 180000") and "SET" not in query:
        # Since PostgreSQL 18, the trigger runs as the role that inserted the row.
        assert not hostile.has_risen(server)
    else:
        assert hostile.ran(server) >= {"attempt" if "SET" in query else "commit"} and hostile.has_risen(server)


def test_columns_with_keys_are_looked_for_in_tables_of_the_caller(server):
    block, = blocks("convert.md", "Look at these before", "CREATE FUNCTION columns_with_keys")
    for role, others in ("Keeper", "mallory, postgres"), ("postgres", '"Keeper", mallory'):
        printed = psql(server, role, block)
        assert "own|order_id|integer|1.000" in printed and "own|id" not in printed
        assert f"WARNING:  tables of other roles are left out: {others}\n" in printed
        for table in ("m.index", f"{hostile.schema(role)}.parted"):
            call = f"SELECT * FROM columns_with_keys('{table}', 'id')"
            failed = pytest.raises(subprocess.CalledProcessError, psql, server, role, call).value
            assert "belongs to another role, or has such partitions or children" in failed.stdout
    nothing_ran(server)


@pytest.mark.matrix
def test_tables_are_widened_by_a_plan_for_their_owner(server):
    for role in ROLES:
        plan = psql(server, role, arguments=["-v", "table=orders", "-f", WIDEN])
        assert re.search(r"^-- in the way: table m.reference: it, .* belongs to another role than", plan, re.M)
        assert all(line.startswith("-- ") for line in plan.splitlines())
        plan = psql(server, role, arguments=["-v", "table=customers", "-f", WIDEN])
        assert plan.count("ALTER ROLE mallory SUPERUSER") == 2 and "in the way" not in plan
        psql(server, role, plan)
        assert columns(server, role, TYPE, "orders.id", "customers.id", "visits.customer_id") == ["integer", "bigint", "bigint"]
    nothing_ran(server)


@pytest.mark.matrix
def test_a_copy_is_widened_converted_and_searched_by_the_owner_of_its_tables(server):
    beginnings = ["CREATE TEMP VIEW", "ALTER TABLE %s", "flake_convert(", "CREATE FUNCTION columns_with_ids"]
    # The keys of a table here are IDs of twitter already.
    steps = [step.replace("'si'", "'twitter'") for step in blocks("other-applications.md", "On a copy", *beginnings)]
    for role in ROLES:
        printed = psql(server, role, "ALTER TABLE own ALTER id DROP DEFAULT;", *steps)
        assert printed.splitlines()[0] == "3"
        assert {line.split("|")[1] for line in printed.splitlines() if line.startswith("own|")} == {"id", "note", "mood"}
        names = ["orders.id", "customers.id", "visits.customer_id", "own.order_id"]
        assert columns(server, role, TYPE, *names) == ["integer", "bigint", "bigint", "bigint"]
    nothing_ran(server)


def test_tables_leave_flake_by_statements_for_their_owner(server):
    query, = blocks("leave.md", "Removing flake", "WITH RECURSIVE")
    for role in ROLES:
        psql(server, role, executed(query))
        assert columns(server, role, "attidentity::text", "own.id", "parted.id") == ["d", ""]
    nothing_ran(server)


def test_each_owner_finds_the_latest_ids_of_a_restored_dump(server):
    query, above = blocks("runbook.md", "A restored dump", "WITH RECURSIVE", "flake_start_above(:id")
    for role in ROLES:
        printed = psql(server, role, executed(query))
        latest, = re.findall(r"^(\d+)\|twitter$", printed, re.M)
        assert server.value(f"SELECT max(flake_timestamp(id)) = flake_timestamp({latest}) FROM {hostile.schema(role)}.own")
        assert "m.index of mallory" in printed and "parted of" in printed
        given = ["-v", f"id={latest}", "-v", "layout=twitter"]
        psql(server, "postgres", "SET search_path = public, pg_temp;", above, arguments=given)
    nothing_ran(server)


@pytest.mark.matrix
@pytest.mark.parametrize("path", ["public, pg_temp", None])
def test_a_superuser_calls_nothing_that_others_have_put_in_front(server, path):
    """The runbook says which search_path a superuser sets. Statements that need another state, such as pg_promote, fail."""
    server.sql("""GRANT CREATE ON DATABASE postgres TO mallory; SELECT flake_create_layout('ours', '{"like": "si"}')""")
    hostile.act(server, "mallory", hostile.HIJACKED)
    page = DOCS / "runbook.md"
    assert "run `SET search_path = public, pg_temp`" in page.read_text().replace("\n", " ")
    statements = [code for language, code in pages.blocks(page) if language == "sql"]
    script = "\n".join([f"SET search_path = {path};" if path else "", *statements])
    arguments = ["-v", "greatest=1", "-v", "id=1", "-v", "layout=twitter"]
    printed = server.run("psql", "-XAtq", *arguments, input=script, stderr=subprocess.STDOUT).stdout
    assert "recovery is not in progress" in printed
    if path:
        nothing_ran(server)
    else:
        assert "postgres" in hostile.ran(server) and hostile.has_risen(server)
