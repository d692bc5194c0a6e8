"""A cluster that Patroni runs, by the configuration in docs/how-to/high-availability.md."""

import json
import shutil
import urllib.request

import yaml

from engine import PAGE, Engine
from member import LIMIT
from pages import recipe
from programs import Program, give
from waiting import wait_until


def merged(one, other):
    """Merges two dictionaries of settings. The second one takes precedence."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one | {key: merged(one[key], value) if key in one else value for key, value in other.items()}
    return other


class Patroni(Engine):
    """Three members and an etcd. A cluster with numbers of its own uses synchronous replication."""

    NEEDS = ("patroni", "patronictl", "etcd", "etcdctl")
    MEMBERS = 3

    def begin(self):
        self.etcd_port = self.start_etcd()
        self.members[0].environment |= {
            "PATRONICTL_CONFIG_FILE": str(self.members[0].base / "patroni.yml"),
            "ETCDCTL_ENDPOINTS": f"http://127.0.0.1:{self.etcd_port}",
        }
        for number, member in enumerate(self.members, start=1):
            self.configure(member, number)
            self.start(member)
            if number == 1:
                wait_until(self.primary, LIMIT)

    def start_etcd(self):
        port, peers = self.ports.pop(), f"http://127.0.0.1:{self.ports.pop()}"
        clients, data = f"http://127.0.0.1:{port}", self.base / "etcd"
        data.mkdir()
        give(data)
        command = [
            "etcd", "--unsafe-no-fsync", "--data-dir", data, "--listen-client-urls", clients, "--advertise-client-urls", clients,
            "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}",
        ]  # fmt: skip
        self.others.append(Program(self.base / "etcd.log", *command, environment=self.members[0].environment))
        return port

    def configure(self, member, number):
        """Writes the configuration of the page, with addresses of this test and shorter times."""
        whole, own = map(yaml.safe_load, recipe(PAGE, "Patroni", "yaml"))
        member.rest = f"127.0.0.1:{self.ports.pop()}"
        here = {
            "name": member.name,
            "restapi": dict.fromkeys(["listen", "connect_address"], member.rest),
            "etcd3": {"hosts": [f"127.0.0.1:{self.etcd_port}"]},
            "bootstrap": {"dcs": {"ttl": 20, "loop_wait": 2, "retry_timeout": 5, "synchronous_mode": self.own_numbers}},
            "postgresql": {
                **dict.fromkeys(["listen", "connect_address"], f"127.0.0.1:{member.port}"),
                "data_dir": str(member.data), "bin_dir": str(member.programs), "pgpass": str(member.base / "pgpass"),
                "pg_hba": ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
                "parameters": {"unix_socket_directories": str(member.dir), "fsync": "off"},
                # A copy would wait for minutes until the primary has spread its checkpoint.
                "basebackup": {"checkpoint": "fast"},
            },
        }  # fmt: skip
        whole, member.number = merged(whole, here), whole["bootstrap"]["dcs"]["postgresql"]["parameters"]["flake.node_id"]
        if self.own_numbers:
            member.number = own["postgresql"]["parameters"]["flake.node_id"] = number
            whole = merged(whole, own)
        (member.base / "patroni.yml").write_text(yaml.safe_dump(whole))

    def start(self, member):
        member.start("patroni", member.base / "patroni.yml")

    def start_anew(self, member):
        shutil.rmtree(member.data)
        self.start(member)

    def control(self, *command):
        return self.run("patronictl", *command)

    def well_for(self, primary):
        """Returns the members that Patroni sees, with their roles."""
        with urllib.request.urlopen(f"http://{primary.rest}/cluster", timeout=10) as answer:
            seen = json.load(answer)["members"]
        return [(one["name"], one["role"]) for one in seen if one["state"] in ("running", "streaming")]

    def sees_all_well(self, primary):
        well = self.well_for(primary)
        return len(well) == len(self.members) and [name for name, role in well if role == "leader"] == [primary.name]

    def may_lose(self, primary):
        """Returns whether the cluster may lose its primary: only the synchronous standby takes over."""
        return not self.own_numbers or any(role == "sync_standby" for _, role in self.well_for(primary))

    def go_on(self, old):
        """Continues the old primary, which may take its lock back. A server that knows the other timeline cannot always follow
        it then, and is copied again."""
        old.go_on()
        wait_until(lambda: sorted(str(member.role()) for member in self.members) == ["primary", "standby", "standby"], LIMIT)
        if old.role() == "primary":
            for member in self.members:
                if member is not old:
                    self.operate(0, member.name)

    def mend(self):
        """Repairs the cluster. A primary that has taken its lock back cannot name the synchronous standby while the other one's
        entry exists."""
        if self.own_numbers:
            self.operate(1)

    def operate(self, number, name="orders-2"):
        """Runs the page's commands for an operator."""
        self.run("timeout", LIMIT, "sh", "-c", recipe(PAGE, "Patroni", "bash")[number].replace("orders-2", name))

    def switch_over(self, old):
        self.control("switchover", "--leader", old.name, "--force")
