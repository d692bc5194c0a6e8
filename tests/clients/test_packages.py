"""The packages of the clients when servers do not answer, threads die and many wait."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading

from conftest import ROOT
from database import CLIENTS
from lease_programs import PACKAGES, package
from package_programs import database, needs, node, programs, python

__all__ = ["database", "programs"]


def test_a_clock_is_set_while_a_renewal_is_on_its_way(programs):
    """The new window would begin where the one that was given up ends."""
    asked = python(programs, """
        ahead, wall, asked = 0, lessee.wall, []
        lessee.wall = lambda: wall() + ahead
        def lease(self, layout, token):
            global ahead
            if token:
                ahead += 3600 * SECOND
                time.sleep(0.5)  # next() notices meanwhile
            asked.append(token)
            return granted(len(asked), 1)
        Database.lease = lease
        ids, deadline = Ids("twitter", patience=3), time.monotonic() + 60
        while 1 not in asked or len(asked) < 3:
            ids.next()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        print(json.dumps(asked[:3]))
    """)
    assert asked == [None, 1, None]


def test_a_thread_that_has_died_or_cannot_be_started_is_started_again(programs):
    counters, failed = python(programs, """
        class Timeout(BaseException): pass
        threading.excepthook = lambda hook: None
        asked, start, failed = [], threading.Thread.start, []
        def lease(self, layout, token):
            asked.append(token)
            if len(asked) == 1:
                raise Timeout()
            return granted(len(asked))
        Database.lease = lease
        def once(self):
            if not failed:
                failed.append(True)
                raise RuntimeError("can't start new thread")
            start(self)
        threading.Thread.start = once
        ids = Ids("twitter")
        ids.next()
        print(json.dumps([ids.counters, failed]))
    """)
    assert failed == [True] and counters["restarts"] >= 1 and counters["leases"] == 1


def test_many_who_wait_take_no_processor(programs):
    used, made = python(programs, """
        allowed = threading.Event()
        def lease(self, layout, token):
            allowed.wait()
            return granted()
        Database.lease = lease
        ids, made = Ids("twitter", patience=60), []
        threading.stack_size(1 << 17)
        threads = [threading.Thread(target=lambda: made.append(ids.next())) for _ in range(2000)]
        for thread in threads: thread.start()
        before = time.process_time()
        time.sleep(3)
        used = time.process_time() - before
        allowed.set()
        for thread in threads: thread.join()
        print(json.dumps([used, len(set(made))]))
    """)
    assert used < 0.3 and made == 2000


def test_patience_without_an_end_in_python(programs):
    """Locks of Python take no such time."""
    made = python(programs, """
        def lease(self, layout, token):
            time.sleep(0.5)
            return granted()
        Database.lease = lease
        made = [Ids("twitter", patience=float("inf")).next()]
        async def main():
            async with AsyncIds("twitter", patience=float("inf")) as ids:
                made.append(await ids.next())
        asyncio.run(main())
        print(json.dumps(made))
    """)
    assert len(made) == 2


def test_patience_without_an_end_in_node(programs, database):
    """Node fires a timer of such a time at once, and again and again."""
    longest = node(programs, database, """
        const timer = globalThis.setTimeout;
        let longest = 0;
        globalThis.setTimeout = (act, pause, ...rest) => (longest = Math.max(longest, pause), timer(act, pause, ...rest));
        const ids = new Ids("twitter", { connect: () => new pg.Client({ host: "/nowhere" }), patience: Infinity });
        await ids.next(AbortSignal.timeout(1000)).catch(() => undefined);
        console.log(JSON.stringify(longest));
    """)  # fmt: skip
    assert 500 < longest < 2**31


def test_the_loop_of_asyncio_is_never_blocked(programs):
    longest, kinds, made = python(programs, """
        allowed = []
        def lease(self, layout, token):
            time.sleep(1)
            if not allowed: raise ConnectionError("unreachable")
            return granted()
        Database.lease = lease
        async def main():
            longest, ends = 0, False
            async def watch():
                nonlocal longest
                while not ends:
                    began = time.monotonic()
                    await asyncio.sleep(0.01)
                    longest = max(longest, time.monotonic() - began)
            watching = asyncio.create_task(watch())
            async with AsyncIds("twitter", patience=4) as ids:
                failed = await asyncio.gather(*[ids.next() for _ in range(100)], return_exceptions=True)
                allowed.append(True)
                cancelled = asyncio.create_task(ids.next())
                await asyncio.sleep(0.01)
                cancelled.cancel()
                await asyncio.sleep(3)
                made = await asyncio.gather(*[ids.next() for _ in range(500)])
            ends = True
            await watching
            kinds = sorted({f"{type(one).__name__} {type(one.__cause__).__name__}" for one in failed})
            print(json.dumps([longest, kinds, len(set(made))]))
        asyncio.run(main())
    """)
    assert kinds == ["NoLease ConnectionError"] and made == 500
    # A wait for the database, or for the patience, would take seconds on an idle machine too.
    assert longest < 2


def test_a_lease_is_released(programs, database):
    leases = python(programs, """
        def workers():
            with psycopg.connect("") as db:
                return [worker for worker, in db.execute("SELECT worker FROM flake_leases WHERE until > now() ORDER BY 1")]
        before = workers()
        with Ids("twitter", "") as ids:
            ids.ready()
            ids.next()
            during = workers()
        try:
            ids.next()
        except Closed:
            print(json.dumps([len(during) - len(before), len(workers()) - len(before)]))
    """, database.environment)
    assert leases == [1, 0]


def test_errors_have_their_kind_and_cause(programs, database):
    errors = python(programs, """
        def error(layout, connect="", **options):
            began, ids = time.monotonic(), Ids(layout, connect, patience=1, log=lambda *_: None, **options)
            try:
                ids.next()
            except pgflake.FlakeError as error:
                return [type(error).__name__, getattr(error.__cause__, "sqlstate", None)]
        print(json.dumps([
            error("mastodon"), error("none"), error("twitter", lease="no_function"),
            error("twitter", "host=/nowhere"),
        ]))
    """, database.environment)
    assert errors == [["Refused", "0A000"], ["Refused", "22023"], ["Refused", "42883"], ["NoLease", None]]


class Silent:
    """Leads to a server. Connections of the first four seconds answer nothing any more then, and are not closed."""

    def __init__(self, server):
        self.there, self.generation, self.begins = str(server.dir / ".s.PGSQL.5432"), 0, True
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            if self.begins:
                self.begins = False
                threading.Timer(4, lambda: setattr(self, "generation", 1)).start()
            there = socket.socket(socket.AF_UNIX)
            there.connect(self.there)
            for one, other in (client, there), (there, client):
                threading.Thread(target=self.copy, args=(one, other, self.generation), daemon=True).start()

    def copy(self, one, other, generation):
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if generation == self.generation:
                    other.sendall(data)
            other.close()


def test_a_connection_that_is_silent_is_given_up_in_python(programs, database):
    proxy = Silent(database.server)
    environment = database.environment | {"PGHOST": "127.0.0.1", "PGPORT": str(proxy.port)}
    longest, counters = python(programs, """
        ids = Ids("twitter", "", patience=20)
        ids.ready()
        longest, end = 0, time.monotonic() + 25
        while time.monotonic() < end:
            began = time.monotonic()
            ids.next()
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.01)
        print(json.dumps([longest, ids.counters]))
    """, environment)
    assert counters["failures"] >= 1 and counters["leases"] >= 3 and longest < 3


def test_a_connection_that_is_silent_is_given_up_in_node(programs, database):
    proxy = Silent(database.server)
    longest, counters = node(programs, database, """
        const ids = new Ids("twitter", { connect, patience: 20 });
        await ids.ready();
        let longest = 0;
        for (const end = Date.now() + 25000; Date.now() < end; await sleep(10)) {
          const began = Date.now();
          await ids.next();
          longest = Math.max(longest, Date.now() - began);
        }
        await ids.close();
        console.log(JSON.stringify([longest, ids.counters]));
    """, PGHOST="127.0.0.1", PGPORT=str(proxy.port))  # fmt: skip
    assert counters["failures"] >= 1 and counters["leases"] >= 3 and longest < 3000


def test_errors_signals_and_the_end_in_node(programs, database):
    errors = node(programs, database, """
        const kind = async (ids, signal) => {
          try { await ids.next(signal); return ["none"]; } catch (error) { return [error.name, error.cause?.code ?? null]; }
        };
        const closed = new Ids("twitter", { connect });
        await closed.next();
        await closed.close();
        const never = { connect: () => new pg.Client({ host: "/nowhere" }), patience: 1 };
        console.log(JSON.stringify([
          await kind(new Ids("mastodon", { connect })), await kind(new Ids("twitter", { connect, lease: "no_function" })),
          await kind(closed),
          await kind(new Ids("twitter", never), AbortSignal.timeout(100)), await kind(new Ids("twitter", never)),
        ]));
    """)  # fmt: skip
    assert errors == [["Refused", "0A000"], ["Refused", "42883"], ["Closed", None], ["TimeoutError", None], ["NoLease", "ENOENT"]]


def test_a_bridge_spans_the_time_without_a_lease(programs, database):
    counters, made, layouts = python(programs, """
        ask, refused = Database.lease, []
        def lease(self, layout, token):
            if len(refused) < 3:
                refused.append(token)
                return Row("starting", 2 * SECOND, *[0] * 10, lessee.wall(), 0)
            return ask(self, layout, token)
        Database.lease = lease
        ids, made, began = Ids("twitter", "", patience=3, bridge=50), [], time.monotonic()
        while time.monotonic() < began + 8 or not ids.counters["leases"]:
            made.append(ids.next())
            time.sleep(0.005)
        print(json.dumps([ids.counters, [len(made), len(set(made))], sorted({one >> 12 & 1023 for one in made})]))
    """, database.environment)
    assert made[0] == made[1] and counters["bridged"] >= 50 and counters["leases"] >= 1 and len(layouts) > 1


def test_types_are_strict(programs):
    needs("python")
    environment = os.environ | {"PYTHONPATH": str(CLIENTS / "python")}
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(programs.directory / "mypy"), PACKAGES / "python/src"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_archives_are_the_same_again_and_have_the_version_of_the_extension(programs, tmp_path):
    needs("python")
    one, other = (package("python", "*.whl", tmp_path / name) for name in ("one", "other"))
    assert one.read_bytes() == other.read_bytes()
    version = re.search('^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.M)[1]
    assert one.name == f"pgflake-{version}-py3-none-any.whl"
