"""The servers of a plan: a primary a, its standbys b and c, where c has a node number of its own, and another node d. A plan
may leave out some of them."""

import contextlib
import itertools
import os
import signal
import threading
import time

from conftest import pg_config, signalled
from test_faults import EXIT

from . import LONG, WITHOUT, layouts
from .layouts import TAILED
from .oracle import Branch, Maker
from .shape import MOST_CONNECTIONS

DATABASES = ["postgres", "other", "hostile"]
SETTINGS = [
    "superuser_reserved_connections=0", "max_worker_processes=3", "max_wal_senders=4", "max_prepared_transactions=200",
    "autovacuum=off", "wal_keep_size=256MB", "wal_sender_timeout=0", "wal_receiver_timeout=0",
    "wal_retrieve_retry_interval=100ms", "wal_log_hints=on", "log_line_prefix=%m [%p] %e ",
]  # fmt: skip
# Each row has the token of the statement that inserted it.
TABLES = "CREATE TABLE kept (token integer, kind text, id text);"
TABLES += "".join(f"CREATE TABLE tailed_{kind} (id {key} PRIMARY KEY, token integer);" for kind, (key, *_) in TAILED.items())


# The pg_config of another PostgreSQL for node d.
OTHER = os.environ.get("FLAKE_NEMESIS_OTHER") or None


def of_version(program=None):
    """Limits the server processes that make no IDs, which would get procs of their own."""
    return ["autovacuum_worker_slots=2"] if pg_config("--version", program).name.startswith("PostgreSQL 18") else []


class Clock:
    """The time that a server's clock shows."""

    def __init__(self):
        self.offset, self.still = 0.0, None
        self.left = []  # pairs: when the clock was set, and what it showed until then

    def now(self):
        still = self.still
        return time.time() + self.offset if still is None else still

    def highest_since(self, began):
        return max(self.now(), *(shown for when, shown in self.left if when >= began), 0)


class Node:
    """A server and its state: which WAL it writes, under which number, and what was done to it."""

    def __init__(self, name, number, branch, count):
        self.name, self.clock = name, Clock()
        self.server, self.past, self.up = None, [], False
        self.maker = Maker(name, object(), branch, number, count, False, 1)
        self.stopped, self.broken_disk = threading.Event(), 0.0
        self.parting, self.promoting, self.accepted, self.published, self.consumers = False, False, 0, 0, {}
        self.killed, self.exited, self.disturbed = set(), set(), time.monotonic()
        self.clients = 1  # clients that work at this time
        self.above_in = None  # after a failover, the only database whose page has the instant below
        self.given, self.above = None, (None, None)  # the argument of flake_start_above; what it returned, and to which server

    def now_is(self, **what):
        self.maker = self.maker._replace(**what)

    @property
    def is_primary(self):
        return self.up and not self.maker.recovers

    @property
    def log(self):
        """The log of this server and of the servers that it replaced."""
        return "".join((server.dir / "server.log").read_text(errors="replace") for server in [*self.past, self.server])


def is_alive(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return stat.read().rsplit(")")[1].split()[0] != "Z"
    return False


class Cluster:
    """All servers, the highest instant that any clock has shown, and timers of faults that end by themselves."""

    def __init__(self, make, oracle, plan):
        self.make, self.oracle, self.shape, self.nodes, self.timers, self.consumers = make, oracle, plan.shape, {}, [], []
        self.databases = DATABASES[: plan.databases]
        self.exit_libraries, self.layouts, self.has_watermark = {}, {}, False
        self.highest, self.numbers = 0.0, itertools.count(2)
        settings = [*SETTINGS, f"flake.node_count={self.shape.nodes}"]
        of_b, of_c = (f"shared_preload_libraries={name}" for name in plan.preloading)
        trunk = Branch("a1")

        def of_a():
            return make(*settings, *of_version(), "flake.node_id=0", f"max_connections={MOST_CONNECTIONS}", clock="+0")

        def of_d():
            own = "flake.node_id=2", f"max_connections={self.shape.connections}"
            return make(*settings, *of_version(OTHER), *own, clock="+0", pg_config=OTHER)

        def standby(*own):
            return lambda: make(*own, standby_of=self.nodes["a"].server, clock="+0")

        for name in plan.servers:
            match name:
                case "a":
                    self.set_up(self.add("a", 0, trunk, of_a).server)
                case "b":
                    self.add("b", 0, trunk, standby(of_b), recovers=True)
                case "c":
                    own = standby(of_c, "flake.node_id=1")
                    self.add("c", 1, trunk, own, recovers=True)
                case "d":
                    self.set_up(self.add("d", 2, Branch("d1"), of_d).server)

    def add(self, name, number, branch, start, **what):
        node = self.nodes[name] = Node(name, number, branch, self.shape.nodes)
        node.server = start()
        node.now_is(**what)
        node.up = True
        return node

    def set_up(self, server):
        self.exit_libraries[server.pg_config] = server.compile("exit", EXIT)
        layouts.create(server, self.shape)
        server.sql(TABLES)
        server.sql("CREATE ROLE hostile SUPERUSER LOGIN")
        for database in DATABASES[1:]:
            server.sql(f"CREATE DATABASE {database} TEMPLATE postgres")
        if "hostile" not in WITHOUT:
            server.sql("ALTER ROLE hostile SET flake.node_id = 3; ALTER DATABASE hostile SET flake.node_id = 1")
        self.layouts = layouts.of_server(server)
        self.has_watermark = server.value("SELECT count(*) FROM pg_proc WHERE proname = 'flake_watermark'") > 0

    def note_clocks(self):
        """Raises the highest instant to what the clocks show. It is called before and after a clock is set."""
        self.highest = max(self.highest, *(node.clock.now() for node in self.nodes.values()))
        return self.highest

    def set_clock(self, node, offset=None, still=None):
        """Sets the clock to an offset from the time of day, or stops it at an instant."""
        self.note_clocks()
        clock = node.clock
        showed = clock.now()
        clock.left.append((time.monotonic(), showed))
        if still is None:
            clock.offset, clock.still = offset, None
            shows = f"{offset:+f}"
        else:
            clock.still = still
            shows = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(still)) + f"{still % 1:.6f}"[1:]
        if clock.now() < showed:
            self.oracle.set_back(node)
        node.server.set_clock(shows)
        self.note_clocks()

    def later(self, seconds, action):
        """Runs an action after some seconds; `settle` waits for it."""
        timer = threading.Timer(seconds, action)
        timer.start()
        self.timers.append(timer)

    def settle(self):
        for timer in self.timers:
            timer.join()
        self.timers.clear()

    def stop_processes(self, node, processes, seconds):
        def resume():
            signalled(processes, signal.SIGCONT)
            node.disturbed = time.monotonic()
            node.stopped.clear()

        node.stopped.set()
        signalled(processes, signal.SIGSTOP)
        self.later(seconds, resume)

    def part(self, node):
        """Keeps consumers off this primary from now on, because a failover may lose what it writes."""
        node.parting = True
        for consumer in self.consumers:
            with consumer.turn:
                pass

    def await_end(self, node, processes):
        """Waits until the processes notice that their postmaster was killed. The postmaster is a zombie by then, and as long as
        its lock files exist, no other postmaster starts."""
        deadline = time.monotonic() + LONG
        while any(is_alive(pid) for pid in processes):
            if time.monotonic() > deadline:
                self.oracle.fail(f"processes of {node.name} outlive their postmaster")
                signalled(processes, signal.SIGKILL)
                break
            time.sleep(0.05)
        for lock in ["data/postmaster.pid", ".s.PGSQL.5432.lock"]:
            (node.server.dir / lock).unlink(missing_ok=True)

    def alike(self, node):
        """The running servers that share a primary with this one, now or earlier."""
        group = "abc" if node.name in "abc" else [node.name]
        return [self.nodes[name] for name in group if name in self.nodes and self.nodes[name].up]

    def primaries(self):
        return [node for node in self.nodes.values() if node.is_primary]
