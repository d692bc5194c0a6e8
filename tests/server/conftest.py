"""Throwaway servers for tests. scripts/cluster makes and removes them, and this file makes them usable from Python."""

import collections
import contextlib
import copy
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import typing

import psycopg
import pytest

import clock_lock
from waiting import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The layouts that load tests use. A layout is left out if its IDs are made like another layout's.
LAYOUTS = ["twitter", "snowflake", "si", "si_single", "uniqueid", "base64id", "discord", "mastodon", "sonyflake", "tsid"]
LIKE = {
    "instagram": "si", "sonyflake_v2": "sonyflake", "leaf": "twitter", "seata": "uniqueid", "influxdb": "twitter",
    "pgactive": "discord",
}  # fmt: skip
# How long load tests load.
SECONDS = int(os.environ.get("FLAKE_TEST_SECONDS", "2"))
# How much memory must be free for servers to be made there, in bytes.
ENOUGH = 8 << 30

# The startup process has replayed everything that it has received.
STARTUP_WAITS = "SELECT FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'RecoveryWalStream'"


def directory():
    """Returns where servers are made: in memory if enough is free, because each of them starts as a copy of about 40 MB."""
    memory = pathlib.Path("/dev/shm")
    is_enough = memory.is_mount() and min(shutil.disk_usage(memory).free, available_memory()) > ENOUGH
    # Servers load libraries from there.
    is_usable = is_enough and not os.statvfs(memory).f_flag & os.ST_NOEXEC
    return os.environ.get("FLAKE_TEST_DIR") or (memory if is_usable else "/tmp")


def available_memory():
    """The free memory of the machine in bytes."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def pg_config(option, program=None):
    found = subprocess.run([program or os.environ["PG_CONFIG"], option], check=True, capture_output=True, text=True)
    return pathlib.Path(found.stdout.strip())


def bindir(program=None):
    return pg_config("--bindir", program)


def as_server(*command):
    """Returns a command that runs as the user of servers."""
    return ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command] if os.getuid() == 0 else list(command)


def signalled(processes, number):
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)
    return processes


class Server:
    """A PostgreSQL server that has the extension, and a clock that can be set if `clock` is given.

    It is a new server, a standby of a running one, or one that `launch` starts: from a base backup of a running server, from
    the files of a stopped or frozen one, or by an upgrade of a stopped one of an older version.
    """

    # The role and database of sessions, unless a test names others.
    client: typing.ClassVar = {"user": "postgres", "dbname": "postgres"}

    def __init__(
        self, *settings, clock=None, pg_config=None,
        standby_of=None, copy_of=None, snapshot_of=None, upgrade_of=None, mode="copy",
    ):  # fmt: skip
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="flake-test-", dir=directory()))
        self.base.chmod(0o755)
        self.pg_config = pg_config or os.environ["PG_CONFIG"]
        self.scripts = []
        self.dir = self.base / "pg"
        self.environment = os.environ | {"PG_CONFIG": str(self.pg_config)}
        if clock is not None:
            self.set_clock(clock)
            self.environment["SERVER_ENV"] = " ".join([
                f"LD_PRELOAD={os.environ['FAKETIME_LIBRARY']}", f"FAKETIME_TIMESTAMP_FILE={self.base / 'clock'}",
                "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1",
            ])  # fmt: skip
        if standby_of is not None:
            self._cluster("standby", standby_of.dir, *settings)
        elif copy_of is not None:
            self._cluster("copy", copy_of.dir, *settings)
        elif snapshot_of is not None:
            self._cluster("snapshot", snapshot_of.dir, *settings)
        elif upgrade_of is not None:
            self._cluster("upgrade", upgrade_of.dir, bindir(upgrade_of.pg_config), *settings, MODE=mode)
        else:
            self._cluster("start", *settings)

    def _cluster(self, command, *arguments, **environment):
        subprocess.run(
            [ROOT / "scripts" / "cluster", command, self.dir, *arguments],
            check=True, env=self.environment | environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    def set_clock(self, clock):
        """Sets the clock: `+0` to the time of day, `-10` to ten seconds before it, `@2030-01-01 00:00:00` to an instant from
        which it runs, and `2030-01-01 00:00:00` to an instant at which it stands still."""
        new = self.base / "clock.new"
        new.write_text(clock + "\n")
        new.replace(self.base / "clock")

    def stop(self, mode="fast"):
        if (self.dir / "data" / "postmaster.pid").exists():
            self._cluster("stop", MODE=mode)

    def launch(self, *settings):
        self._cluster("launch", *settings)

    def restart(self, *settings, mode="fast", while_stopped=lambda: None):
        self.stop(mode)
        while_stopped()
        self.launch(*settings)

    def reload(self, *settings):
        self._cluster("reload", *settings)

    def promote(self):
        self._cluster("promote")

    def stop_receiving(self):
        """Keeps this standby from receiving anything that its primary writes from now on."""
        self.sql("ALTER SYSTEM SET primary_conninfo = ''")
        self.reload()
        wait_until(lambda: not self.value("SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'"))

    def rewind(self, primary):
        self._cluster("rewind", primary.dir)
        # This server must replay the WAL of pg_rewind's own queries, which a primary whose clock stands still does not flush.
        primary.sql("CREATE TABLE rewound (); DROP TABLE rewound")

    def write(self, name, text=""):
        """Writes a file in the data directory."""
        file = self.dir / "data" / name
        file.write_text(text)
        owner = file.parent.stat()
        os.chown(file, owner.st_uid, owner.st_gid)

    def wait_for_replay(self, primary):
        """Waits until this standby has replayed what is on its primary's disk by now."""
        inserted, flushed = primary.sql("SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()")[0]
        deadline = time.monotonic() + 60
        while not self.value("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", flushed):
            # The standby may have received only a part of the last record, which it cannot replay.
            if inserted != flushed and self.value("SELECT pg_last_wal_receive_lsn() >= %s::pg_lsn", flushed):
                time.sleep(1)
                wait_until(lambda: self.sql(STARTUP_WAITS))
                return
            assert time.monotonic() < deadline, "the standby does not follow"
            time.sleep(0.02)

    def processes(self):
        """The postmaster and its children."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            postmaster = int((self.dir / "data" / "postmaster.pid").read_text().splitlines()[0])
            children = pathlib.Path(f"/proc/{postmaster}/task/{postmaster}/children")
            return [postmaster, *map(int, children.read_text().split())]
        return []

    def freeze(self):
        """Stops all processes, beginning with the postmaster, so that it starts no more. Returns them."""
        signalled(self.processes()[:1], signal.SIGSTOP)
        return signalled(self.processes(), signal.SIGSTOP)

    def add_script(self, name, text):
        """Makes the server find another script of the extension until its end. The directory may be shared by all servers."""
        known = pg_config("--sharedir", self.pg_config) / "extension"
        own = self.dir / "stage" / known.relative_to("/")
        self.scripts.append((own if own.exists() else known) / f"flake--{name}.sql")
        self.scripts[-1].write_text(text)
        self.scripts[-1].chmod(0o644)

    def remove(self):
        for script in self.scripts:
            script.unlink(missing_ok=True)
        try:
            self._cluster("remove")
        finally:
            shutil.rmtree(self.base)

    @property
    def client_environment(self):
        named = {"PGHOST": str(self.dir), "PGPORT": "5432", "PGUSER": self.client["user"], "PGDATABASE": self.client["dbname"]}
        named["PGOPTIONS"] = self.client.get("options", os.environ.get("PGOPTIONS", ""))
        return os.environ | named | {"PATH": f"{bindir(self.pg_config)}:{os.environ['PATH']}"}

    def of_client(self, user, dbname, options):
        """Returns the same server with other settings of its clients."""
        other = copy.copy(self)
        other.client = {"user": user, "dbname": dbname, "options": options}
        return other

    @staticmethod
    def named(code, language="sql"):
        """Returns the code with the names that the tables have for the clients."""
        return code

    def connect(self, **options):
        options = {"host": str(self.dir), "autocommit": True} | self.client | options
        deadline = time.monotonic() + 60
        while True:
            try:
                return psycopg.connect(**options)
            except psycopg.OperationalError as error:
                # The processes of sessions that have ended may still have their procs.
                if "too many clients already" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @contextlib.contextmanager
    def session(self, **options):
        """A connection whose server process has ended after the block. By then its proc is free."""
        with self.connect(**options) as db:
            process = pathlib.Path(f"/proc/{db.info.backend_pid}")
            yield db
        wait_until(lambda: not process.exists())

    def sql(self, query, *parameters):
        """Runs a query in a session of its own, and returns all rows."""
        with self.connect() as db:
            cursor = db.execute(query, parameters or None)
            # A row may have no column.
            return cursor.fetchall() if cursor.pgresult.status == psycopg.pq.ExecStatus.TUPLES_OK else None

    def value(self, query, *parameters):
        return self.sql(query, *parameters)[0][0]

    def run(self, program, *arguments, **options):
        """Runs a program of PostgreSQL as a client of this server."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        command = [bindir() / program, *map(str, arguments)]
        return subprocess.run(command, check=True, env=self.client_environment, text=True, **options)

    def compile(self, name, source):
        """Compiles a C library for this server."""
        written, library = self.base / f"{name}.c", self.base / f"{name}.so"
        written.write_text(source)
        include = pg_config("--includedir-server", self.pg_config)
        subprocess.run(["cc", "-shared", "-fPIC", f"-I{include}", written, "-o", library], check=True)
        library.chmod(0o755)
        return library

    def pgbench(self, script, *arguments):
        path = self.base / "script.sql"
        path.write_text(script)
        try:
            output = self.run("pgbench", "-n", "-f", path, *arguments).stdout
        except subprocess.CalledProcessError as failed:
            pytest.fail(f"pgbench: {failed.stderr}")
        assert "number of failed transactions: 0 " in output, output
        return output


def pytest_configure(config):
    config.addinivalue_line("markers", "matrix: left out by `make test`, run by `make test-matrix` and where it is named")
    config.addinivalue_line("markers", "long: takes minutes, so that its file begins before the others")


def pytest_collection_modifyitems(items):
    """Lets files with a test of minutes begin first, and then those that make most servers. A worker takes whole files, and a
    long one that begins late runs on alone."""
    servers = collections.Counter(item.path for item in items if "own_servers" in item.fixturenames)
    long = {item.path for item in items if item.get_closest_marker("long")}
    items.sort(key=lambda item: (item.path not in long, -servers[item.path]))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """Ends the worker of a test that hangs, so that the test fails by its name. Without workers, and in a soak, a test may be
    meant to take hours."""
    limit = threading.Timer(1210, os._exit, [1])
    limit.daemon = True
    if "PYTEST_XDIST_WORKER" in os.environ and "FLAKE_SOAK" not in os.environ:
        limit.start()
    yield
    limit.cancel()


@contextlib.contextmanager
def made_servers():
    """Makes servers that end with the block. `extension` says whether they have it, or which version of it."""
    made = []

    def make(*settings, extension=True, **options):
        made.append(Server(*settings, **options))
        if extension and options.keys().isdisjoint(["standby_of", "copy_of", "snapshot_of", "upgrade_of"]):
            made[-1].sql("CREATE EXTENSION flake" if extension is True else f"CREATE EXTENSION flake VERSION '{extension}'")
        return made[-1]

    with clock_lock.guarded(made):
        try:
            yield make
        finally:
            # All servers are ended, even if the log of one has failed assertions.
            with contextlib.ExitStack() as ends:
                for server in made:
                    ends.callback(server.remove)


@pytest.fixture(scope="module")
def servers():
    """Makes servers that end with the module."""
    with made_servers() as make:
        yield make


@pytest.fixture
def own_servers():
    """Makes servers that end with the test."""
    with made_servers() as make:
        yield make


@pytest.fixture(scope="module")
def server(servers):
    """A server with default settings and the extension."""
    return servers()


@pytest.fixture
def writer(server):
    """A session in which a test may leave a transaction open; it is rolled back before the next test."""
    with server.session() as db:
        yield db


@pytest.fixture
def tailer(server):
    with server.session() as db:
        yield db
