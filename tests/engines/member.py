"""A server that an engine runs, and the engine's agent for it."""

import os
import signal

import psycopg

from conftest import Server
from programs import Program, children, give, run, send
from waiting import wait_until

# Engines may wait for long timeouts of their own.
LIMIT = 600


class Member(Server):
    """A member. Its data directory and its socket are in `dir`, and everything else is in `base`."""

    def __init__(self, base, name, port, programs):
        self.base, self.dir, self.name, self.port = base / name, base / name, name, port
        self.base.mkdir()
        give(self.base)
        self.programs, self.agents, self.number = programs, [], None
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(self.base), "LC_ALL": "C.UTF-8", "TZ": "UTC",
            "PYTHONUNBUFFERED": "1", "FLAKE_SOCKETS": str(self.dir), "FLAKE_CLOCK": str(self.base / "clock"),
        }  # fmt: skip

    def connect(self, **options):
        return super().connect(**{"port": self.port, "connect_timeout": 5} | options)

    @property
    def data(self):
        return self.dir / "data"

    def start(self, *command):
        """Starts the agent, which starts the server."""
        self.agents.append(Program(self.base / "agent.log", *command, environment=self.environment))

    def run_agent(self, *command):
        """Runs a command of the engine, and waits for its end."""
        return run(*command, environment=self.environment)

    def log(self):
        return (self.base / "agent.log").read_text(errors="replace")

    def processes(self):
        return [pid for agent in self.agents for pid in agent.processes()]

    def postmaster(self):
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def kill(self):
        """Kills the agent and the postmaster. The other processes exit when they notice."""
        noticing = set(children(self.postmaster()))
        send([pid for pid in self.processes() if pid not in noticing], signal.SIGKILL)

    def await_end(self):
        wait_until(lambda: not self.processes(), LIMIT)

    def stand_still(self):
        send(self.processes(), signal.SIGSTOP)

    def go_on(self):
        send(self.processes(), signal.SIGCONT)

    def end(self):
        for agent in self.agents:
            agent.end()

    def clock(self):
        """Returns by how much its clock differs from the time of day."""
        return float((self.base / "clock").read_text())

    def role(self):
        """Returns "primary" if clients may write, "standby" if not, or None if the server does not answer. With
        pg_auto_failover, clients may write only some time after a promotion."""
        try:
            with self.connect(connect_timeout=2) as db:
                return "primary" if db.execute("SHOW transaction_read_only").fetchone()[0] == "off" else "standby"
        except (psycopg.Error, OSError):
            return None
