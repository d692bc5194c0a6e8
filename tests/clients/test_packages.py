"""The packages of the clients when clocks stand still, threads die, modules are loaded again and many wait."""

import pytest

from package_programs import database, node, programs, python

__all__ = ["database", "programs"]


def test_a_thread_that_has_died_is_started_again(programs):
    counters, made = python(programs, """
        class Timeout(BaseException): pass
        threading.excepthook = lambda hook: None
        asked = []
        def batch(self, layout, count):
            asked.append(count)
            if len(asked) == 1:
                raise Timeout()
            return list(range(count))
        Database.batch = batch
        ids = Ids("twitter", patience=60)
        made = ids.next()
        print(json.dumps([ids.counters, made]))
    """)
    assert counters["restarts"] == 1 and counters["failures"] == 1 and made == 0


def test_a_thread_that_cannot_be_started_is_an_error_at_once(programs):
    """The next ID tries again."""
    kinds = python(programs, """
        start, failed = threading.Thread.start, []
        Database.batch = lambda self, layout, count: list(range(count))
        def once(self):
            if not failed:
                failed.append(True)
                raise RuntimeError("can't start new thread")
            start(self)
        threading.Thread.start = once
        ids = Ids("twitter", patience=3600)
        try:
            ids.next()
        except Unavailable as error:
            print(json.dumps([type(error.__cause__).__name__, ids.next()]))
    """)
    assert kinds == ["RuntimeError", 0]


def test_many_who_wait_take_no_processor(programs):
    """One answer has IDs for all of them."""
    used, made, requests = python(programs, """
        allowed = threading.Event()
        def batch(self, layout, count):
            allowed.wait()
            return list(range(count * 10000, count * 10001))
        Database.batch = batch
        ids, made = Ids("twitter", patience=60), []
        threading.stack_size(1 << 17)
        threads = [threading.Thread(target=lambda: made.append(ids.next())) for _ in range(2000)]
        for thread in threads: thread.start()
        while len(ids._process.waiters) < 2000: time.sleep(0.01)
        before = time.process_time()
        time.sleep(3)
        used = time.process_time() - before
        allowed.set()
        for thread in threads: thread.join()
        print(json.dumps([used, len(set(made)), ids.counters["requests"]]))
    """)
    assert used < 0.3 and made == 2000 and requests <= 3


def test_patience_without_an_end(programs):
    """Locks of Python take no such time."""
    made = python(programs, """
        def batch(self, layout, count):
            time.sleep(0.5)
            return list(range(count))
        Database.batch = batch
        made = [Ids("twitter", patience=float("inf")).next()]
        async def main():
            async with AsyncIds("twitter", patience=float("inf")) as ids:
                made.append(await ids.next())
        asyncio.run(main())
        print(json.dumps(made))
    """)
    assert made == [0, 0]


def test_the_loop_of_asyncio_is_never_blocked(programs):
    """Each answer comes when the loop has turned again and again after the request."""
    blocked, kinds, made = python(programs, """
        allowed, numbers, turns, blocked = [], iter(range(10**9)), 0, []
        def batch(self, layout, count):
            before, deadline = turns, time.monotonic() + 30
            while turns < before + 10 and time.monotonic() < deadline: time.sleep(0.05)
            blocked.append(turns < before + 10)
            if not allowed: raise ConnectionError("unreachable")
            return [next(numbers) for _ in range(count)]
        Database.batch = batch
        async def main():
            async def watch():
                global turns
                while True:
                    await asyncio.sleep(0.01)
                    turns += 1
            watching = asyncio.create_task(watch())
            async with AsyncIds("twitter", patience=5) as ids:
                failed = await asyncio.gather(*[ids.next() for _ in range(100)], return_exceptions=True)
                allowed.append(True)
                cancelled = asyncio.create_task(ids.next())
                await asyncio.sleep(0.01)
                cancelled.cancel()
                made = await asyncio.gather(*[ids.next() for _ in range(500)])
            watching.cancel()
            kinds = sorted({f"{type(one).__name__} {type(one.__cause__).__name__}" for one in failed})
            print(json.dumps([blocked, kinds, len(set(made))]))
        asyncio.run(main())
    """)
    assert kinds == ["Unavailable ConnectionError"] and made == 500
    assert len(blocked) > 2 and True not in blocked


def test_a_signal_handler_may_want_an_id(programs):
    """It may interrupt its thread while that has the lock. Then it gets what is in the buffer, or an error after the patience."""
    made, errors = python(programs, """
        import signal
        numbers, made, errors = iter(range(10**9)), [], []
        Database.batch = lambda self, layout, count: [next(numbers) for _ in range(count)]
        ids = Ids("twitter", patience=0.1, most=2)
        def get():
            try:
                made.append(ids.next())
            except Unavailable:
                errors.append(True)
        def handler(*_):
            get()
            signal.setitimer(signal.ITIMER_REAL, 0.0005)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        for _ in range(3000): get()
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        print(json.dumps([[len(made), len(set(made))], len(errors)]))
    """)
    assert made[0] == made[1] and made[0] + errors > 3000


FROZEN = """
    from freezegun import freeze_time
    kind = {kind!r}
    ignored = ["flake_ids"] if kind == "ignore" else None
    frozen = freeze_time() if kind == "today" else freeze_time("2026-03-01 09:00", tick=kind == "tick", ignore=ignored)
    made = []
    def use(count):
        if {is_async}:
            async def main():
                ids = AsyncIds("twitter", "", patience=20)
                made.extend([await ids.next() for _ in range(count)])
                try:
                    await AsyncIds("twitter", "host=/nowhere", patience=0.5, log=lambda *_: None).next()
                except Unavailable:
                    made.append(-1)
            asyncio.run(main())
        else:
            made.extend([ids.next() for _ in range(count)])
            try:
                Ids("twitter", "host=/nowhere", patience=0.5, log=lambda *_: None).next()
            except Unavailable:
                made.append(-1)
    if kind != "inside":
        ids = Ids("twitter", "", patience=20)
        ids.next()
    with frozen:
        if kind == "inside":
            for name in [name for name in sys.modules if name.startswith("flake_ids")]: del sys.modules[name]
            from flake_ids import AsyncIds, Ids, Unavailable
            ids = Ids("twitter", "", patience=20)
        use(5000)
        clock = time.monotonic(), ids._current().buffer.span
    use(5000)
    print(json.dumps([len(made), len(set(made)), made.count(-1)]))
"""


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", ["before", "inside", "today", "tick", "ignore"])
def test_ids_come_under_a_frozen_clock_and_after_it(programs, database, kind, is_async):
    """A test freezes the clock of a program, or the module is loaded under a frozen clock. Patience ends all the same."""
    assert python(programs, FROZEN.format(kind=kind, is_async=is_async), database.environment) == [10002, 10001, 2]


def test_a_module_that_is_loaded_again_leaves_nothing(programs, database):
    """The old module's object has no thread and no connection after ten seconds."""
    made, threads, sessions = python(programs, """
        made = []
        for _ in range(80):
            for name in [name for name in sys.modules if name.startswith("flake_ids")]: del sys.modules[name]
            from flake_ids import Ids
            ids = Ids("twitter", "", patience=60)
            made.append(ids.next())
        def sessions():
            with psycopg.connect("") as db:
                return db.execute("SELECT count(*) - 1 FROM pg_stat_activity WHERE datname = current_database()").fetchone()[0]
        deadline = time.monotonic() + 60
        while (threading.active_count() > 1 or sessions()) and time.monotonic() < deadline: time.sleep(0.1)
        print(json.dumps([len(set(made)), threading.active_count(), sessions()]))
    """, database.environment)
    assert (made, threads, sessions) == (80, 1, 0)


def test_a_pool_of_psycopg(programs, database):
    """A request gives its connection back, takes no part in a transaction, and ends a connection that has failed."""
    made, counters, states, failed = python(programs, """
        from psycopg_pool import ConnectionPool
        with ConnectionPool("", min_size=1, max_size=1, open=True) as pool:
            ids = Ids("twitter", pool, patience=60)
            made = ids.take(100)
            with pool.connection() as db:
                db.execute("CREATE TEMP TABLE mine (id bigint)")
                state = [db.info.transaction_status.name]
                made += [ids.try_next() for _ in range(10)]
                db.rollback()
                pid = db.info.backend_pid
            made += ids.take(100)
            with pool.connection() as db:
                state.append(db.info.transaction_status.name)
                db.execute("SELECT 1")
            with psycopg.connect("", autocommit=True) as db:
                db.execute("SELECT pg_terminate_backend(%s)", [pid])
            made += ids.take(100)
            ids.close()
            try:
                Ids("none", pool, log=lambda *_: None).next()
            except Refused as error:
                failed = error.__cause__.sqlstate
            with pool.connection() as db: db.execute("SELECT 1")
            made = [one for one in made if one is not None]
            print(json.dumps([[len(made), len(set(made))], ids.counters, state, failed]))
    """, database.environment)
    assert made[0] == made[1] >= 300
    assert counters["failures"] == 1 and states == ["INTRANS", "IDLE"] and failed == "22023"


def test_a_program_knows_what_has_happened(programs, database):
    counters, lines = python(programs, """
        lines = []
        ids = Ids("twitter", "", patience=60, log=lambda level, message, problem: lines.append([level, message]))
        ids.take(10)
        with psycopg.connect("", autocommit=True) as db:
            sessions = "FROM pg_stat_activity WHERE application_name LIKE 'flake-ids %'"
            db.execute(f"SELECT pg_terminate_backend(pid) {sessions}")
            while db.execute(f"SELECT pid {sessions}").fetchone(): time.sleep(0.01)
        time.sleep(1)  # what was fetched ahead is too old by now
        ids.take(10)
        print(json.dumps([ids.counters, lines]))
    """, database.environment)
    assert counters["failures"] == 1 and counters["requests"] >= 3 and counters["ids"] >= 20
    assert lines == [[30, "twitter: IDs could not be fetched"]]


@pytest.mark.parametrize("wrong", ["max_age=0", "max_age=float('nan')", "most=0", "most=2**31", "patience=-1"])
def test_options_that_make_no_sense_are_refused(programs, wrong):
    assert python(programs, f"""
        try:
            Ids("twitter", {wrong})
        except ValueError as error:
            print(json.dumps(str(error)))
    """).startswith(wrong.partition("=")[0])


def test_patience_without_an_end_in_node(programs, database):
    """Node fires a timer of such a time at once, and again and again."""
    longest = node(programs, database, """
        const timer = globalThis.setTimeout;
        let longest = 0;
        globalThis.setTimeout = (act, pause, ...rest) => (longest = Math.max(longest, pause), timer(act, pause, ...rest));
        cpSync("node_modules/flake-ids", "node_modules/patient", { recursive: true });
        const again = await import("./node_modules/patient/dist/index.js");
        const never = () => ({ connect: () => new Promise(() => undefined), end: async () => undefined, on: () => undefined });
        await new again.Ids("twitter", never, { patience: Infinity }).next(AbortSignal.timeout(500)).catch(() => undefined);
        console.log(JSON.stringify(longest));
        process.exit(0);
    """)  # fmt: skip
    assert 500 < longest < 2**31


FAKED = """
    import FakeTimers from "@sinonjs/fake-timers";
    const made = [];
    const kind = "{kind}";
    const options = kind === "date" ? {{ now: 1772355600000, toFake: ["Date"] }} : {{ now: 1772355600000 }};
    const use = async () => {{
      for (let n = 0; n < 5000; n++) made.push(String(await ids.next()));
      const nowhere = new Ids("twitter", () => new pg.Client({{ host: "/nowhere" }}), {{ patience: 0.5 }});
      made.push(await nowhere.next().catch((problem) => problem.name));
    }};
    let ids = new Ids("twitter", connect, {{ patience: 20 }});
    if (kind !== "inside") await ids.next();
    const clock = FakeTimers.install(options);
    if (kind === "inside") ids = new Ids("twitter", connect, {{ patience: 20 }});
    await use();
    clock.uninstall();
    await use();
    await ids.close();
    console.log(JSON.stringify([made.length, new Set(made).size, made.filter((one) => one === "Unavailable").length]));
"""


@pytest.mark.parametrize("kind", ["before", "inside", "date"])
def test_ids_come_under_faked_timers_and_after_them(programs, database, kind):
    """A test of a program fakes all timers, or the dates only. Patience ends all the same."""
    assert node(programs, database, FAKED.format(kind=kind)) == [10002, 10001, 2]


def test_a_module_that_node_loads_again_leaves_nothing(programs, database):
    """The old module's objects have no connection after ten seconds."""
    made, before, after = node(programs, database, """
        const made = new Set();
        for (let n = 0; n < 80; n++) {
          cpSync("node_modules/flake-ids", `node_modules/again_${n}`, { recursive: true });
          const { Ids } = await import(`./node_modules/again_${n}/dist/index.js`);
          made.add(await new Ids("twitter", connect, { patience: 60 }).next());
        }
        const client = new pg.Client();
        await client.connect();
        const count = "SELECT count(*)::int - 1 AS n FROM pg_stat_activity WHERE datname = current_database()";
        const sessions = async () => (await client.query(count)).rows[0].n;
        const before = await sessions();
        for (const end = Date.now() + 60000; (await sessions()) > 0 && Date.now() < end; ) await sleep(100);
        console.log(JSON.stringify([made.size, before, await sessions()]));
        await client.end();
    """)  # fmt: skip
    assert (made, after) == (80, 0) and before > 0


def test_signals_iteration_and_the_end_in_node(programs, database):
    """A process with nothing else to do ends, although its Ids was not closed."""
    kinds = node(programs, database, """
        const kind = async (ids, signal) => {
          try { await ids.next(signal); return ["none"]; } catch (error) { return [error.name, error.cause?.code ?? null]; }
        };
        const lines = [];
        const never = () => new pg.Client({ host: "/nowhere" });
        const options = { patience: 3, log: (level, line, problem) => lines.push([level, line, problem.code]) };
        const kinds = [await kind(new Ids("twitter", never, options), AbortSignal.timeout(100)),
          await kind(new Ids("twitter", never, options)), lines.length > 1, lines[0]];
        const ids = new Ids("twitter", connect);
        let made = 0;
        for await (const id of ids) if (typeof id !== "bigint" || ++made === 100) break;
        const wrong = [{ maxAge: 0 }, { maxAge: NaN }, { most: 0 }, { most: 2 ** 31 }, { patience: -1 }].filter((options) => {
          try { return new Ids("twitter", connect, options); } catch (problem) { return !(problem instanceof RangeError); }
        });
        console.log(JSON.stringify([...kinds, made, wrong]));
    """)  # fmt: skip
    line = ["warn", "twitter: IDs could not be fetched", "ENOENT"]
    assert kinds == [["TimeoutError", None], ["Unavailable", "ENOENT"], True, line, 100, []]
