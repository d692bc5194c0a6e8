"""Two servers that both write and replicate to each other, with Doctrine and with Hibernate on both: no key is made twice."""

import concurrent.futures
import itertools
import shutil

import pytest
import test_doctrine
import test_hibernate
from application import Application, report

from conftest import bindir
from replication import execute, recipe, settings
from test_many_writers import Builtin
from test_upgrades import pg_config
from waiting import wait_until

ROUNDS = 4


def use_doctrine(directory):
    def create(application):
        test_doctrine.doctrine(application, "create")
        # A key that stays an integer would be made by both.
        application.sql("ALTER TABLE counted ALTER id TYPE bigint")

    return create, lambda application: test_doctrine.doctrine(application, "walk", ORM="yes")


def use_hibernate(directory):
    hibernate = test_hibernate.Hibernate(directory)

    def create(application):
        hibernate.compile(application)
        hibernate(application, "create")

    return create, lambda application: hibernate(application, "walk")


@pytest.mark.parametrize("use, program, tables", [
    (use_doctrine, "php", ["party", "person", "purchase", "article", "notes", "ticket"]),
    (use_hibernate, "javac", ["customers", "companies", "orders", "items", "invoices"]),
])  # fmt: skip
def test_no_key_is_made_by_both(own_servers, tmp_path, use, program, tables):
    if not shutil.which(program):
        pytest.skip(f"{program} is not there")
    create, walk = use(tmp_path)
    version = pg_config(Builtin.VERSION)
    own = [settings("Many writers", flake_node_id=number) for number in range(2)]
    servers = [own_servers(*each, extension=False, pg_config=version) for each in own]
    applications = [Application(server, "shop") for server in servers]
    # The names of both must be the same for the commands of the page.
    create(applications[0])
    applications[0].adopt("si", path=True)
    dump = applications[0].run(bindir(version) / "pg_dump")
    applications[1].psql(dump)
    applications[1].sql(f"ALTER DATABASE {applications[1].name} SET search_path = public, flake_sequences, pg_catalog")
    once, for_each_other = recipe("Many writers", "bash")
    places = [f"host={one.server.dir} user=postgres dbname={one.name}" for one in applications]
    for number, place in enumerate(places):
        execute(servers[number], once, NODE=place, TO=str(number))
    for to, of in itertools.permutations(range(2)):
        execute(servers[to], for_each_other, NODE=places[to], OTHER=places[of], FROM=str(of), TO=str(to))
    begun = [count(one, tables) for one in applications]
    assert begun[0] == begun[1]
    with concurrent.futures.ThreadPoolExecutor(2) as both:
        for _ in range(ROUNDS):
            list(both.map(walk, applications))
    conflicts = lambda: sum(int(one.sql(Builtin.CONFLICTS)[0][0] or 0) for one in applications)  # noqa: E731
    wait_until(lambda: conflicts() or content(applications[0], tables) == content(applications[1], tables), 60)
    assert conflicts() == 0
    made = count(applications[0], tables)
    assert all(made[table] > begun[0][table] for table in tables)
    assert [one.dangling() for one in applications] == [0, 0]
    report("Two servers", program=program, rows=sum(made.values()) - sum(begun[0].values()), conflicts=conflicts())


def count(application, tables):
    return {table: application.sql(f"SELECT count(*) FROM {table}")[0][0] for table in tables}


def content(application, tables):
    rows = "SELECT count(*), sum(hashtextextended(t::text, 0)) FROM {} t"
    return {table: application.sql(rows.format(table)) for table in tables}
