"""An upgrade as operators experience it, by the steps of docs/how-to/install.md. A primary and its standby get the package of a
made-up next version, and then of one that needs a restart, while clients write and read. In the end the package is removed and
purged.

scripts/package-test makes the machines and the packages.
"""

import os
import pathlib

import pytest

from clients import Everybody, Readers, is_of_other_library, is_of_restart, returns
from machine import Database, Machine
from waiting import wait_until
from writers import orders

MAJOR = os.environ["FLAKE_MACHINE_MAJOR"]
MACHINES = os.environ["FLAKE_MACHINES"].split()
# The last version's library cannot run beside the other ones.
THIS, NEXT, LAST = map(pathlib.Path, os.environ["FLAKE_UPGRADE_PACKAGES"].split())
PACKAGE = THIS.name.split("_")[0]
# The layout of each database's table. The extension of the first database is updated at once, even where a restart is needed.
LAYOUTS = {"early": "twitter", "late": "si"}
READ = """
    SELECT count(*), max(flake_timestamp(id)) FROM orders WHERE flake_timestamp(id) >= now() - interval '10 s'
    UNION ALL SELECT count(*), max(sno_timestamp(sno)) FROM orders WHERE sno_timestamp(sno) >= now() - interval '10 s'"""
CHECK = 'SELECT name, detail, hint FROM flake_check() WHERE NOT ok'


def version(package):
    return package.name.split("_")[1].removesuffix("-1")


class Cluster:
    def __init__(self):
        self.primary = Machine(MACHINES[0], MAJOR, 5432)
        self.standby = Machine(MACHINES[1], MAJOR, 5433, self.primary)
        self.machines = [self.primary, self.standby]
        self.files = [machine.files() for machine in self.machines]
        self.databases = [Database(name, *self.machines) for name in LAYOUTS]
        for machine in self.machines:
            machine.upgrade(THIS)
        self.primary.ctl("start")
        self.primary.sql("postgres", "CREATE ROLE app LOGIN")
        for name, layout in LAYOUTS.items():
            self.primary.sql("postgres", f"CREATE DATABASE {name}")
            table = orders(f"bigint DEFAULT flake_next('{layout}')")
            self.primary.sql(name, f"CREATE EXTENSION flake; {table}")
        self.standby.copy(self.primary)

    def update(self, database):
        """Updates the extension, and returns the warnings."""
        with database.connect() as db:
            warned = []
            db.add_notice_handler(lambda notice: warned.append(notice.message_primary))
            db.execute("ALTER EXTENSION flake UPDATE")
        return warned

    def wait_for_replay(self):
        last = self.primary.sql("postgres", "SELECT pg_current_wal_insert_lsn()")[0][0]
        wait_until(lambda: self.standby.sql("postgres", f"SELECT pg_last_wal_replay_lsn() >= '{last}'") == [(True,)])

    def assert_well(self, installed):
        """Checks that flake_check finds nothing, and that the databases have the objects of this version."""
        self.wait_for_replay()
        for machine in self.machines:
            for name in LAYOUTS:
                assert machine.sql(name, CHECK) == []
                found = machine.sql(name, "SELECT extversion FROM pg_extension WHERE extname = 'flake'")
                assert found == [(installed,)]

    def switch_over(self):
        """Promotes the standby after it has replayed everything that the stopped primary has written."""
        self.primary.ctl("stop")
        self.standby.ctl("promote")
        self.primary, self.standby = self.standby, self.primary
        self.standby.follow(self.primary)


def upgrade(cluster, everybody, package, restart):
    early, late = cluster.databases
    to = version(package)
    with everybody.phase(f"package {to} on the standby"):
        cluster.standby.upgrade(package)
        everybody.go_on()
    if restart:
        with everybody.phase("restart of the standby", is_of_restart):
            cluster.standby.ctl("restart")
            everybody.go_on()
    refused = len(everybody.errors_of(returns))
    with everybody.phase(f"package {to} on the primary", *([is_of_other_library] if restart else []), of=returns):
        cluster.primary.upgrade(package)
        if restart:
            wait_until(lambda: len(everybody.errors_of(returns)) >= refused + 20)
            assert [row[0] for row in early.sql(CHECK)] == ["library"]
        assert cluster.update(early) == []
        everybody.go_on(but=returns if restart else lambda client: False)
    if restart:
        with everybody.phase("restart of the primary", is_of_restart, is_of_other_library) as phase:
            cluster.primary.ctl("restart")
        with everybody.phase("after the restart", is_of_restart):
            everybody.go_on()
        everybody.assert_above(phase)
    with everybody.phase(f"update to {to}"):
        assert cluster.update(late) == []
        everybody.go_on()
    cluster.assert_well(to)


def test_packages_are_upgraded_without_a_lost_or_repeated_id():
    cluster = Cluster()
    readers = Readers(Database("early", *cluster.machines, attributes="standby"), READ)
    with Everybody(cluster.databases, readers) as everybody:
        with everybody.phase(f"version {version(THIS)}"):
            everybody.go_on()
        upgrade(cluster, everybody, NEXT, restart=False)
        with everybody.phase("switchover", is_of_restart) as phase:
            cluster.switch_over()
        with everybody.phase("after the switchover", is_of_restart):
            everybody.go_on()
        everybody.assert_above(phase)
        upgrade(cluster, everybody, LAST, restart=True)
    assert [len(each.errors) for each in everybody.all()] == everybody.seen
    everybody.report()
    everybody.assert_unique()
    cluster.wait_for_replay()
    for database, writers in everybody.writers.items():
        writers.assert_whole(*(Database(database.name, machine, attributes="any") for machine in cluster.machines))
    leave(cluster)


def leave(cluster):
    """Removes the extension as docs/how-to/leave.md says."""
    for name in LAYOUTS:
        cluster.primary.sql(name, """
            ALTER TABLE orders ALTER id DROP DEFAULT, ALTER sno DROP DEFAULT, ALTER sno TYPE text COLLATE "C" USING sno::text;
            DROP EXTENSION flake""")
    rows = cluster.primary.sql("early", "SELECT count(*), min(id), max(sno) FROM orders")
    cluster.wait_for_replay()
    for machine, files, how in zip(cluster.machines, cluster.files, ["remove", "purge"], strict=True):
        machine.apt(how, PACKAGE)
        assert machine.files() == files, how
        with pytest.raises(AssertionError, match="no packages found"):
            machine.run("dpkg-query", "--show", PACKAGE)
        machine.ctl("restart")
        assert machine.sql("early", "SELECT count(*), min(id), max(sno) FROM orders") == rows
