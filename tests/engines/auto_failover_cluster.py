"""A cluster that pg_auto_failover runs, with the settings in docs/how-to/high-availability.md."""

import shutil

from engine import PAGE, Engine
from member import LIMIT
from pages import recipe
from waiting import wait_until

# How soon the monitor takes a member for lost, in milliseconds.
TIMES = {
    "health_check_period": 1000, "health_check_retry_delay": 500, "node_considered_unhealthy_timeout": 5000,
    "primary_demote_timeout": 5000, "startup_grace_period": 5000,
}  # fmt: skip
WELL = """SELECT nodename FROM pgautofailover.node
          WHERE goalstate = reportedstate AND reportedstate IN ('primary', 'secondary') AND health = 1 ORDER BY reportedstate"""
LOCAL = ["--auth", "trust", "--no-ssl", "--hostname", "127.0.0.1"]


class AutoFailover(Engine):
    """Two members, and the monitor. Replication is synchronous while both are there."""

    NEEDS = ("pg_autoctl",)
    EXTENSION = "pgautofailover"

    def begin(self):
        self.monitor = self.member("monitor")
        self.others.append(self.monitor)
        self.create("monitor", self.monitor)
        self.add(self.monitor, *(f"pgautofailover.{name} = {value}" for name, value in TIMES.items()), "fsync = off")
        self.start(self.monitor)
        wait_until(self.monitor.role, LIMIT)
        for number, member in enumerate(self.members, start=1):
            one, own = (block.replace("/etc/postgresql/", "../") for block in recipe(PAGE, "pg_auto_failover", "conf"))
            member.number = 3
            if self.own_numbers:
                member.number = number
                (member.base / "flake.conf").write_text(f"flake.node_id = {number}\n")
            self.join(member)
            if number == 1:
                self.add(member, own if self.own_numbers else one, "fsync = off")
            self.start(member)
            wait_until(member.role, LIMIT)

    def create(self, kind, member, *options):
        member.environment |= {"XDG_RUNTIME_DIR": str(member.base), "PGDATA": str(member.data)}
        place = ["--pgctl", self.programs / "pg_ctl", "--pgport", member.port]
        member.run_agent("pg_autoctl", "create", kind, *place, *LOCAL, *options)

    def join(self, member):
        uri = f"postgres://autoctl_node@127.0.0.1:{self.monitor.port}/pg_auto_failover?sslmode=prefer"
        self.create("postgres", member, "--name", member.name, "--pghost", member.dir, "--monitor", uri)

    def add(self, member, *settings):
        with (member.data / "postgresql.conf").open("a") as file:
            file.write("\n".join([*settings, ""]))

    def start(self, member):
        member.start("pg_autoctl", "run")

    def start_anew(self, member):
        self.monitor.run_agent("pg_autoctl", "drop", "node", "--name", member.name, "--force")
        for place in [member.data, member.base / ".local", member.base / ".config"]:
            shutil.rmtree(place)
        self.join(member)
        self.start(member)

    def sees_all_well(self, primary):
        with self.monitor.connect(dbname="pg_auto_failover") as db:
            well = [name for name, in db.execute(WELL)]
        return len(well) == len(self.members) and well[0] == primary.name

    def switch_over(self, old):
        self.monitor.run_agent("pg_autoctl", "perform", "switchover", "--wait", LIMIT)
