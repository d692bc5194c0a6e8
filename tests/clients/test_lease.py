"""The lease clients in examples/lease: they compute tests/vectors/lease.csv, make an ID quickly, and never make an ID twice or
outside of a lease, whatever happens to them and to the server. FLAKE_LEASE_SECONDS says how long the last test runs."""

import collections
import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from clients import EXPECTED, Made
from conftest import ROOT
from database import CLIENTS, Database
from loopback import port_of
from waiting import Background, wait_until

sys.path.insert(0, str(ROOT / "tests/clients/lease"))

import vectors

EXAMPLES, PROGRAMS = ROOT / "examples/lease", ROOT / "tests/clients/lease"
VECTORS = (ROOT / "tests/vectors/lease.csv").read_text()
SECONDS = int(os.environ.get("FLAKE_LEASE_SECONDS", "30"))
IS_LONG = SECONDS > 300
# How many clients there are of each language, and how many sessions.
PROCESSES = 8 if IS_LONG else 2
# Most nanoseconds for an ID. The best of many runs counts, because test machines are busy.
LANGUAGES = {"python": 1000, "typescript": 1000, "java": 150, "go": 60, "rust": 60}
# The faults that the Python client causes itself when it is sent a signal.
SIGNALS = {"fork": signal.SIGUSR1, "client's clock": signal.SIGUSR2}
POOL = ("flake.node_count=2", "flake.node_id=0", "flake.lease_node=1")


def lacks(language):
    """Returns what this language lacks on this machine."""
    programs = {"typescript": CLIENTS / "node_modules/typescript/bin/tsc", "java": "javac", "go": "go", "rust": "rustc"}
    return None if shutil.which(programs.get(language, sys.executable)) else f"{language} is not there"


class Programs:
    """Builds the program of each language once."""

    def __init__(self, directory):
        self.directory, self.commands = directory, {}

    def __getitem__(self, language):
        if reason := lacks(language):
            pytest.skip(reason)
        if language not in self.commands:
            self.commands[language] = list(map(str, getattr(self, language)()))
        return self.commands[language]

    def build(self, *command, cwd=ROOT):
        environment = os.environ | {"GOCACHE": str(ROOT / "target/clients/go"), "GOFLAGS": "-mod=mod"}
        subprocess.run(list(map(str, command)), check=True, cwd=cwd, env=environment)

    def copied(self, name, *files):
        """Copies files into a directory of their own."""
        for file, place in files:
            target = self.directory / name / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        return self.directory / name

    def python(self):
        return "env", f"PYTHONPATH={EXAMPLES}", "PYTHONDONTWRITEBYTECODE=1", sys.executable, PROGRAMS / "main.py"

    def typescript(self):
        files = EXAMPLES / "lease.ts", EXAMPLES / "use_lease.ts", PROGRAMS / "main.ts"
        at = self.copied("typescript", *((file, file.name) for file in files))
        (at / "package.json").write_text('{"type": "module"}')
        (at / "node_modules").symlink_to(CLIENTS / "node_modules")
        options = ("--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext")
        self.build("node", "node_modules/typescript/bin/tsc", *options, "main.ts", "use_lease.ts", cwd=at)
        return "node", at / "main.js"

    def java(self):
        at = self.directory / "java"
        self.build("javac", "-Xlint:all", "-Werror", "-d", at, EXAMPLES / "Lease.java", PROGRAMS / "Main.java")
        return "java", "-Xmx64m", "-cp", at, "Main"

    def go(self):
        at = self.copied("go", (EXAMPLES / "lease.go", "lease/lease.go"), (PROGRAMS / "main.go", "main.go"))
        (at / "go.mod").write_text("module lease\n\ngo 1.18\n")
        self.build("go", "build", "-o", "program", ".", cwd=at)
        return (at / "program",)

    def rust(self):
        program = self.directory / "rust"
        self.build("rustc", "--edition", "2024", "-O", "-D", "warnings", "-o", program, PROGRAMS / "main.rs")
        return (program,)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("lease"))


def test_the_vectors_are_those_of_the_definitions():
    assert VECTORS.splitlines() == list(vectors.lines())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_computes_the_vectors(programs, language):
    done = subprocess.run([*programs[language], "vectors"], input=VECTORS, capture_output=True, text=True, check=True)
    assert done.stdout == VECTORS


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_id_takes_no_longer(programs, language):
    done = subprocess.run([*programs[language], "time"], capture_output=True, text=True, check=True)
    print(language, done.stdout)
    # Right after a compiler has started, or on another processor, an ID may take several times as long.
    assert 0 < int(done.stdout) < 10 * LANGUAGES[language]


def use_go(database, directory):
    """Uses Debian's Go packages, which are not modules."""
    source = directory / "src/lease"
    source.mkdir(parents=True)
    shutil.copy(EXAMPLES / "lease.go", source)
    environment = {"GO111MODULE": "off", "GOPATH": f"{directory}:/usr/share/gocode", "GOCACHE": str(ROOT / "target/clients/go")}
    return database.run("go", "run", str(EXAMPLES / "use_lease.go"), directory=directory, **environment)


def use_java(database, directory):
    path = f"/usr/share/java/postgresql.jar:{directory}"
    database.run("javac", "-cp", path, "-d", str(directory), *map(str, EXAMPLES.glob("*.java")), directory=EXAMPLES)
    with port_of(database.server) as port:
        url = f"jdbc:postgresql://127.0.0.1:{port}/{database.name}?user=postgres"
        return database.run("java", "-cp", path, "UseLease", directory=directory, JDBC_URL=url)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_application_inserts_a_row_with_its_id(pool, programs, tmp_path, language):
    database = Database(pool, tmp_path)
    database.sql("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)")
    if language == "python":
        printed = database.python("lease", "use_lease.py")
    elif language == "rust":
        printed = database.rust("use_lease")
    elif language == "typescript":
        printed = database.run(*programs[language][:-1], str(programs.directory / "typescript/use_lease.js"), directory=tmp_path)
    elif "FLAKE_DEBIAN_CLIENTS" not in os.environ:
        pytest.skip("FLAKE_DEBIAN_CLIENTS is not set")
    else:
        printed = {"go": use_go, "java": use_java}[language](database, tmp_path)
    made = int(printed)
    assert database.sql("SELECT id, item FROM orders") == [(made, "tea")]
    (worker, at), = database.sql("SELECT worker, now() - flake_timestamp(%s) < '1 minute' FROM flake_decode(%s)", made, made)
    assert worker >= 512 and at


class Client:
    """A client process, and everything that it and its children have been granted and have made."""

    def __init__(self, language, command, environment, output):
        self.language, self.output = language, output
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, "load"], env=environment | {"OUTPUT": str(output)}, stdin=subprocess.PIPE, stdout=file,
            )  # fmt: skip

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def end(self):
        self.signal(signal.SIGCONT)
        self.process.stdin.close()
        self.process.wait(60)


class Deployment:
    """Clients of all languages, and faults of the clients and of their server."""

    def __init__(self, server, programs, languages, directory):
        self.server, self.programs, self.languages, self.directory = server, programs, languages, directory
        self.choose, self.clients, self.running, self.seen = random.Random(57), [], [], collections.Counter()
        self.ends = None

    def start(self, language):
        output = self.directory / f"output_{len(self.clients)}"
        client = Client(language, self.programs[language], self.server.client_environment, output)
        self.clients.append(client)
        self.running.append(client)

    def pause(self, seconds):
        time.sleep(min(seconds, max(0, self.ends - time.monotonic())))

    def event(self):
        choose, client = self.choose, self.choose.choice(self.running)
        kind = choose.choice(["stop", "stop", "fork", "kill", "client's clock", "server's clock"])
        self.seen[kind] += 1
        if kind == "stop":
            client.signal(signal.SIGSTOP)
            self.pause(choose.choice([0.1, 3, 12, 70 if IS_LONG else 12]))
            client.signal(signal.SIGCONT)
        elif kind in SIGNALS:
            choose.choice([client for client in self.running if client.language == "python"]).signal(SIGNALS[kind])
        elif kind == "kill":
            client.signal(signal.SIGKILL)
            client.end()
            self.running.remove(client)
            self.start(client.language)
        else:
            self.server.set_clock(f"{choose.choice([-5, -1, 0, 1, 5]):+}")

    def session(self, made):
        while time.monotonic() < self.ends:
            with contextlib.suppress(*EXPECTED), self.server.connect() as db:
                while time.monotonic() < self.ends:
                    made.add(db.execute("SELECT flake_next('twitter')::text FROM generate_series(1, 10)").fetchall())
                    time.sleep(0.02)
            time.sleep(0.02)

    def run(self, sessions):
        """Runs clients, sessions and faults. Restarts are rare, because no lease is granted for a minute after each."""
        for language in self.languages:
            for _ in range(PROCESSES):
                self.start(language)
        self.ends = time.monotonic() + SECONDS
        try:
            restart = time.monotonic() + (100 if IS_LONG else SECONDS * 2 / 3)
            with Background(*[lambda: self.session(sessions)] * PROCESSES, self.trouble, self.trouble):
                while time.monotonic() < self.ends:
                    self.pause(restart - time.monotonic())
                    if time.monotonic() < self.ends:
                        self.server.restart(mode=self.choose.choice(["fast", "immediate"]))
                        restart += 150
        finally:
            for client in self.running:
                client.end()

    def trouble(self):
        while time.monotonic() < self.ends:
            self.event()
            self.pause(0.3)


class Found:
    """The output of one client process."""

    def __init__(self, file):
        self.windows, self.ids, self.none = [], [], collections.Counter()
        # The last line of a killed process may be cut off.
        for line in file.read_text().split("\n")[:-1]:
            kind, *rest = line.split(" ", 1)
            if kind == "window":
                self.windows.append(tuple(map(int, rest[0].split())))
            elif kind == "none":
                self.none[rest[0][:60]] += 1
            else:
                self.ids.append(int(kind))

    def outside(self):
        return [
            made for made in self.ids
            if not any(made >> 12 & 1023 == worker and start <= made >> 22 < end for worker, start, end in self.windows)
        ]  # fmt: skip


@pytest.fixture
def pool(own_servers):
    """A server that started long enough ago to grant leases, and has granted some."""
    server = own_servers(*POOL, "max_connections=100", clock="+0", steady=True)
    for seconds in 0, 65, 3:
        server.let_pass(seconds)
        server.sql("SELECT flake_lease('twitter')")
    return server


def test_no_id_comes_twice(pool, programs, tmp_path):
    languages = [language for language in LANGUAGES if not lacks(language)]
    sessions = Made(["twitter"])
    deployment = Deployment(pool, programs, languages, tmp_path)
    deployment.run(sessions)
    wait_until(lambda: not any(file.stat().st_mtime > time.time() - 0.5 for file in tmp_path.glob("output_*")))
    found = [Found(file) for file in tmp_path.glob("output_*")]
    assert [outside for process in found if (outside := process.outside())] == []
    windows = sorted(window for process in found for window in process.windows)
    assert [(one, next) for one, next in itertools.pairwise(windows) if one[0] == next[0] and one[2] > next[1]] == []
    ids = [made for process in found for made in process.ids]
    assert len(ids) == len(set(ids))
    assert sessions.ids["twitter"].isdisjoint(map(str, ids))
    none = sum((process.none for process in found), collections.Counter())
    print(f"{len(found)} processes, {len(windows)} windows, {len(ids)} IDs, {len(sessions)} of sessions;", deployment.seen, none)
    for language in languages:
        own = [client for client in deployment.clients if client.language == language]
        assert sum(len(Found(client.output).ids) for client in own) > PROCESSES * 10 * SECONDS, language
    assert len(sessions) > 1000
