"""A database for each test, and the programs that are its clients."""

import itertools
import os
import pathlib
import re
import shutil
import subprocess
import sys

import psycopg
import pytest

from conftest import ROOT
from loopback import port_of

EXAMPLES = ROOT / "examples"
PROBES = ROOT / "tests/clients/probes"
# scripts/setup installs the clients here.
CLIENTS = pathlib.Path(os.environ["FLAKE_CLIENTS"])
numbers = itertools.count()


class Database:
    """`ran` is the output of programs, and `inserts` are the INSERT statements that the server received."""

    def __init__(self, server, directory, extension=True):
        self.server, self.name, self.directory = server, f"clients_{next(numbers)}", directory
        server.sql(f"CREATE DATABASE {self.name}")
        server.sql(f"ALTER DATABASE {self.name} SET log_statement = 'all'")
        if extension:
            self.sql("CREATE EXTENSION flake")

    def sql(self, query, *parameters):
        with self.server.connect(dbname=self.name) as db:
            cursor = db.execute(query, parameters or None)
            return cursor.fetchall() if cursor.pgresult.status == psycopg.pq.ExecStatus.TUPLES_OK else None

    @property
    def environment(self):
        named = self.server.client_environment | {"PGDATABASE": self.name}
        # Without it, Python finds Debian's libraries compiled. Some have warnings if they are compiled, which are errors here.
        named.pop("PYTHONPYCACHEPREFIX", None)
        return named

    def run(self, *command, directory, succeeds=True, **environment):
        """Runs a program, and returns its output and errors."""
        done = subprocess.run(
            command, cwd=directory, env=self.environment | environment, check=False, text=True, timeout=300,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert (done.returncode == 0) == succeeds, done.stdout
        return done.stdout

    def python(self, directory, *command, **options):
        if not (CLIENTS / "python").is_dir():
            pytest.skip("Python's clients are not there and could not be installed")
        path = f"{CLIENTS / 'python'}:{PROBES}:{EXAMPLES / directory}"
        return self.run(
            sys.executable, *map(str, command), directory=EXAMPLES / directory,
            PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1", DJANGO_SETTINGS_MODULE="settings", **options,
        )  # fmt: skip

    @property
    def node_directory(self):
        """Returns the directory where ECMAScript modules find the clients; it is a copy."""
        if not shutil.which("node") or not (CLIENTS / "node_modules").is_dir():
            pytest.skip("node or its clients are not there and could not be installed")
        copy = self.directory / "node"
        if not copy.exists():
            shutil.copytree(EXAMPLES / "node", copy)
            for probe in PROBES.glob("*.mjs"):
                shutil.copy(probe, copy)
            (copy / "node_modules").symlink_to(CLIENTS / "node_modules")
        return copy

    def node(self, *command, **options):
        directory = self.node_directory
        return self.run("node", *command, directory=directory, **options)

    def drizzle_kit(self, *command):
        """Runs drizzle-kit, which exits with success even if it fails."""
        return self.node("node_modules/drizzle-kit/bin.cjs", *command)

    def rust(self, program, *arguments):
        built = ROOT / "target/clients/debug" / program
        if not built.exists():
            pytest.skip("the crates of Rust's clients are not there and could not be had")
        host = str(self.server.dir).replace("/", "%2F")
        return self.run(str(built), *arguments, directory=ROOT, DATABASE_URL=f"postgres://postgres@{host}/{self.name}")

    def debian(self, program, *arguments):
        """Runs a program in a language whose clients come from Debian."""
        if not os.environ.get("FLAKE_DEBIAN_CLIENTS"):
            pytest.skip("FLAKE_DEBIAN_CLIENTS is not set")
        java = ["java", "-cp", "/usr/share/java/postgresql.jar"]
        start = {".java": java, ".go": ["go", "run"], ".rb": ["ruby"], ".php": ["php"]}[program.suffix]
        command = [*start, str(program), *arguments]
        environment = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "GOCACHE": str(ROOT / "target/clients/go")}
        if program.suffix != ".java":
            return self.run(*command, directory=ROOT, **environment)
        with port_of(self.server) as port:
            url = f"jdbc:postgresql://127.0.0.1:{port}/{self.name}?user=postgres"
            return self.run(*command, directory=ROOT, JDBC_URL=url)

    def inserts(self, table):
        """Returns how many statements have inserted into a table."""
        pattern = rf'^{self.name} LOG:  (statement|execute [^:]*): insert into "?{table}"?[ (]'
        return len(re.findall(pattern, (self.server.dir / "server.log").read_text(), re.M | re.I))


@pytest.fixture
def database(server_of_clients, tmp_path):
    return Database(server_of_clients, tmp_path)


@pytest.fixture
def empty_database(server_of_clients, tmp_path):
    """A database without the extension."""
    return Database(server_of_clients, tmp_path, extension=False)


@pytest.fixture(scope="module")
def server_of_clients(servers):
    return servers("log_line_prefix=%d ")
