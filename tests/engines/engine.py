"""Common parts of the engines."""

import pathlib
import shutil
import tempfile

import psycopg
import pytest

from conftest import ROOT, bindir, pg_config
from member import LIMIT, Member
from programs import Failed, free_ports, install, run
from waiting import wait_until

PAGE = ROOT / "docs/how-to/high-availability.md"


class Engine:
    """The members of a cluster in one directory, and the programs that watch them."""

    NEEDS = ()
    EXTENSION = "plpgsql"
    MEMBERS = 2
    OTHER_PORTS = 5

    def __init__(self, own_numbers=False, members=None):
        for program in self.NEEDS:
            if shutil.which(program) is None:
                pytest.skip(f"no {program}")
        if "extension_destdir" not in run(bindir() / "postgres", "--describe-config", environment={}):
            pytest.skip("this PostgreSQL does not find extensions that are not installed, as Debian's does")
        if not (pg_config("--sharedir") / "extension" / f"{self.EXTENSION}.control").exists():
            pytest.skip(f"no {self.EXTENSION} for this PostgreSQL")
        self.own_numbers = own_numbers
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="flake-engine-", dir="/tmp"))
        self.base.chmod(0o755)
        self.programs = install(self.base)
        members = members or self.MEMBERS
        self.ports = free_ports(members + self.OTHER_PORTS)
        self.members = [self.member(f"orders-{number}") for number in range(1, members + 1)]
        self.others = []

    def __enter__(self):
        try:
            self.begin()
            wait_until(lambda: self.primary() and self.is_whole(self.primary()), LIMIT)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for one in [*self.members, *self.others]:
            one.end()
        shutil.rmtree(self.base)

    def member(self, name):
        return Member(self.base, name, self.ports.pop(), self.programs)

    def primary(self):
        return next((member for member in self.members if member.role() == "primary"), None)

    def run(self, *command):
        return run(*command, environment=self.members[0].environment)

    def is_whole(self, primary):
        """Returns whether all members are well, both for the engine and in fact."""
        return self.holds(primary, self.sees_all_well, self.has_standbys)

    def is_ready(self, primary):
        """Returns whether the cluster is whole and another member may take over."""
        return self.holds(primary, self.sees_all_well, self.has_standbys, self.may_lose)

    def holds(self, primary, *conditions):
        """Returns whether all conditions hold on a member; a member that does not answer fails them."""
        try:
            return all(condition(primary) for condition in conditions)
        except (psycopg.Error, OSError, Failed):
            return False

    def has_standbys(self, primary):
        """Returns whether all other members follow the primary."""
        follow = "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'"
        return primary.value(follow) == len(self.members) - 1

    def may_lose(self, _primary):
        return True

    def go_on(self, old):
        """Continues an old primary that stood still, after another one was promoted."""
        old.go_on()

    def mend(self):
        """Repairs the cluster as an operator would after a primary stood still."""
