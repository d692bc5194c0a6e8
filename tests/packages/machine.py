"""The servers on machines of scripts/machine: a primary and its standby. They share /tmp, which contains their sockets."""

import pathlib
import shutil
import subprocess

import psycopg

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Machine:
    def __init__(self, directory, major, port, first=None):
        self.directory, self.major, self.port = pathlib.Path(directory), major, port
        self.data, self.conninfo = f"/var/lib/postgresql/{major}/main", f"host=/tmp port={port} user=postgres"
        self.sockets = (first or self).directory / "tmp"
        self._machine("mount", *([first.directory] if first else []))
        for name, value in {"listen_addresses": "", "unix_socket_directories": "/tmp", "port": str(port)}.items():
            self.run("pg_conftool", major, "main", "set", name, value)
        access = self.directory / f"etc/postgresql/{major}/main/pg_hba.conf"
        access.write_text("local all,replication all trust\n")

    def _machine(self, command, *arguments):
        """Runs a command and returns its output; an error includes the output."""
        done = subprocess.run(
            [ROOT / "scripts/machine", command, self.directory, *arguments],
            check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout
        return done.stdout

    def run(self, *command):
        return self._machine("in", *command)

    def as_postgres(self, *command):
        return self.run("runuser", "-u", "postgres", "--", *command)

    def files(self):
        return self._machine("files").splitlines()

    def apt(self, *arguments):
        self._machine("apt", *arguments)

    def upgrade(self, package):
        """Upgrades to a Debian package as a user would."""
        shutil.copy(package, self.sockets)
        self.apt("install", f"/tmp/{package.name}")

    def ctl(self, action):
        self.run("pg_ctlcluster", self.major, "main", action)

    def copy(self, primary):
        """Makes the server a standby of the primary, from a base backup."""
        self.run("rm", "-r", self.data)
        self.as_postgres("pg_basebackup", "-c", "fast", "-D", self.data, "-d", primary.conninfo)
        self.follow(primary)

    def follow(self, primary):
        with open(f"{self.directory}{self.data}/postgresql.auto.conf", "a") as settings:
            settings.write(f"primary_conninfo = '{primary.conninfo}'\n")
        self.as_postgres("touch", f"{self.data}/standby.signal")
        self.ctl("start")

    def sql(self, dbname, query):
        return Database(dbname, self, attributes="any").sql(query)


class Database:
    """A database of these machines as clients name it: on the server that accepts writes, on a standby, or on any."""

    def __init__(self, name, *machines, attributes="read-write"):
        self.name, self.machines, self.attributes = name, machines, attributes

    def connect(self, user="postgres", autocommit=True):
        return psycopg.connect(
            host=",".join(str(machine.sockets) for machine in self.machines),
            port=",".join(str(machine.port) for machine in self.machines),
            dbname=self.name, user=user, autocommit=autocommit, target_session_attrs=self.attributes,
        )  # fmt: skip

    def sql(self, query):
        with self.connect() as db:
            done = db.execute(query)
            return done.fetchall() if done.description else []
