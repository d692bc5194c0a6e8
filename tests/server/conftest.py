"""Throwaway servers for tests. scripts/cluster makes and removes them; here they get a face in Python."""

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
# The layouts that tests of load make IDs of, and those that are left out because their IDs are made like another layout's.
LAYOUTS = ["twitter", "snowflake", "si", "si_single", "uniqueid", "base64id", "discord", "mastodon", "sonyflake", "tsid"]
LIKE = {"instagram": "si", "sonyflake_v2": "sonyflake", "leaf": "twitter", "seata": "uniqueid", "influxdb": "twitter"}
# How long load tests load.
SECONDS = int(os.environ.get("FLAKE_TEST_SECONDS", "2"))
# How much memory must be free for servers to be made there, in bytes.
ENOUGH = 8 << 30

# The startup process has replayed all that has come.
STARTUP_WAITS = "SELECT FROM pg_stat_activity WHERE backend_type = 'startup' AND wait_event = 'RecoveryWalStream'"


def directory():
    """Where servers are made: in memory, where there is enough, as each of them begins as a copy of some 40 MB."""
    memory = pathlib.Path("/dev/shm")
    is_enough = memory.is_mount() and min(shutil.disk_usage(memory).free, available_memory()) > ENOUGH
    # Libraries are loaded from there.
    is_usable = is_enough and not os.statvfs(memory).f_flag & os.ST_NOEXEC
    return os.environ.get("FLAKE_TEST_DIR") or (memory if is_usable else "/tmp")


def available_memory():
    """Of the machine, in bytes."""
    lines = pathlib.Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def pg_config(option, program=None):
    found = subprocess.run([program or os.environ["PG_CONFIG"], option], check=True, capture_output=True, text=True)
    return pathlib.Path(found.stdout.strip())


def bindir(program=None):
    return pg_config("--bindir", program)


def as_server(*command):
    """A command as the user that servers run as."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else list(command)


def signalled(processes, number):
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, number)
    return processes


class Server:
    """A PostgreSQL server with the extension at hand, and a clock that can be set where `clock` is given.

    It is new, or a standby of a running server, or one that `launch` starts: a base backup of a running server, the files of one
    that is stopped or stands still, or what a stopped one of an older version becomes."""

    # Whose sessions these are, unless a test says otherwise.
    client: typing.ClassVar = {"user": "postgres", "dbname": "postgres"}

    def __init__(
        self, *settings, clock=None, steady=False, pg_config=None,
        standby_of=None, copy_of=None, snapshot_of=None, upgrade_of=None, mode="copy",
    ):  # fmt: skip
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="flake-test-", dir=directory()))
        self.base.chmod(0o755)
        self.pg_config = pg_config or os.environ["PG_CONFIG"]
        self.scripts = []
        self.dir = self.base / "pg"
        self.environment = os.environ | {"PG_CONFIG": str(self.pg_config)}
        preloaded = []
        if steady:
            preloaded.append(self.base / "steady_clock.so")
            source = ROOT / "tests" / "helpers" / "steady_clock.c"
            subprocess.run(["cc", "-shared", "-fPIC", "-o", preloaded[-1], source, "-ldl"], check=True)
        if clock is not None:
            self.set_clock(clock)
            preloaded.append(os.environ["FAKETIME_LIBRARY"])
        if preloaded:
            self.environment["SERVER_ENV"] = " ".join([
                f"LD_PRELOAD={':'.join(map(str, preloaded))}", f"FAKETIME_TIMESTAMP_FILE={self.base / 'clock'}",
                "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1", f"STEADY_CLOCK={self.base / 'steady'}",
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
        """`+0` is the time of day, `-10` ten seconds before it, `@2030-01-01 00:00:00` an instant to run from,
        `2030-01-01 00:00:00` one to stand still at."""
        new = self.base / "clock.new"
        new.write_text(clock + "\n")
        new.replace(self.base / "clock")

    def let_pass(self, seconds):
        """So much time passes by the clock that nobody sets, where the server was made with `steady`."""
        file = self.base / "steady"
        passed = int(file.read_text()) if file.exists() else 0
        new = self.base / "steady.new"
        new.write_text(f"{passed + seconds}\n")
        new.replace(file)

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
        """This standby gets nothing that its primary writes from here on."""
        self.sql("ALTER SYSTEM SET primary_conninfo = ''")
        self.reload()
        wait_until(lambda: not self.value("SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'"))

    def rewind(self, primary):
        self._cluster("rewind", primary.dir)
        # This server has to replay the WAL of pg_rewind's own queries, which a primary whose clock stands still does not flush.
        primary.sql("CREATE TABLE rewound (); DROP TABLE rewound")

    def write(self, name, text=""):
        """A file in the data directory."""
        file = self.dir / "data" / name
        file.write_text(text)
        owner = file.parent.stat()
        os.chown(file, owner.st_uid, owner.st_gid)

    def wait_for_replay(self, primary):
        """Waits until this standby has replayed what is on its primary's disk by now."""
        inserted, flushed = primary.sql("SELECT pg_current_wal_insert_lsn(), pg_current_wal_flush_lsn()")[0]
        deadline = time.monotonic() + 60
        while not self.value("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", flushed):
            # Of the last record only a part may be there, which is received and not replayed.
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
        """Stops all processes, the postmaster first, which makes no more then; returns them."""
        signalled(self.processes()[:1], signal.SIGSTOP)
        return signalled(self.processes(), signal.SIGSTOP)

    def add_script(self, name, text):
        """Gives this server a script of the extension until its end, in a place that all servers may share."""
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
        """The same server, to which clients connect like this."""
        other = copy.copy(self)
        other.client = {"user": user, "dbname": dbname, "options": options}
        return other

    @staticmethod
    def named(code, language="sql"):
        """The code with the names that the tables have for its clients."""
        return code

    def connect(self, **options):
        options = {"host": str(self.dir), "autocommit": True} | self.client | options
        deadline = time.monotonic() + 60
        while True:
            try:
                return psycopg.connect(**options)
            except psycopg.OperationalError as error:
                # Processes of sessions that have ended may not have.
                if "too many clients already" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    @contextlib.contextmanager
    def session(self, **options):
        """A connection whose server process has ended after the block: it has left its progress, and its slot is free."""
        with self.connect(**options) as db:
            process = pathlib.Path(f"/proc/{db.info.backend_pid}")
            yield db
        wait_until(lambda: not process.exists())

    def sql(self, query, *parameters):
        """All rows of a query in a session of its own."""
        with self.connect() as db:
            cursor = db.execute(query, parameters or None)
            # Rows can be without columns.
            return cursor.fetchall() if cursor.pgresult.status == psycopg.pq.ExecStatus.TUPLES_OK else None

    def value(self, query, *parameters):
        return self.sql(query, *parameters)[0][0]

    def run(self, program, *arguments, **options):
        """A program of PostgreSQL as a client of this server."""
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        command = [bindir() / program, *map(str, arguments)]
        return subprocess.run(command, check=True, env=self.client_environment, text=True, **options)

    def compile(self, name, source):
        """A library of C for this server."""
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


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    """A test that hangs fails by its name: the worker that runs it ends. Without workers, tests may be meant to take hours."""
    limit = threading.Timer(1210, os._exit, [1])
    limit.daemon = True
    if "PYTEST_XDIST_WORKER" in os.environ:
        limit.start()
    yield
    limit.cancel()


@contextlib.contextmanager
def made_servers():
    """Makes servers that end with the block. `extension` is whether they have it, or in which version."""
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
            # Each, also where the log of one has failed assertions.
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
    """A transaction that a test leaves open in it is over when the next test begins."""
    with server.session() as db:
        yield db


@pytest.fixture
def tailer(server):
    with server.session() as db:
        yield db
