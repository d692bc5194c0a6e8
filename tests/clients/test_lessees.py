"""Clients of leases in all languages never make an ID twice or outside of a lease, whatever happens to them and to their
servers. FLAKE_LEASE_SECONDS is how long the test runs. By default it is short: a minute of the servers' time passes at once
after each start."""

import collections
import os
import random
import signal
import threading
import time

from clients import EXPECTED, Made
from conftest import signalled
from lease_programs import LANGUAGES, Programs, lacks, leasing_server
from lessees import Lessee, Printed, general, overlapping
from test_restored import recover_beside
from waiting import Background, wait_until

SECONDS = int(os.environ.get("FLAKE_LEASE_SECONDS", "40"))
IS_LONG = SECONDS > 300
# How many clients of each language, and how many sessions.
PROCESSES = 8 if IS_LONG else 2
# After how many seconds at most a server grants leases again after a start, and after a promotion.
START, PROMOTED = 80, 5
# By how many seconds a standby lags behind an old primary.
LAG = 10 if IS_LONG else 4


class Deployment:
    """Clients of all languages, sessions, the primary that they ask, and the events."""

    def __init__(self, make, programs, languages, directory):
        self.make, self.programs, self.languages, self.directory = make, programs, languages, directory
        self.server = leasing_server(make, nodes=4)
        self.choose, self.lessees, self.running, self.seen = random.Random(57), [], [], collections.Counter()
        self.clocks, self.offset = threading.Lock(), 0
        self.refused = collections.Counter()
        # The clients find a server in one of two places, so that some ask an old primary while others ask a new one.
        self.places = [directory / name for name in "ab"]
        self.point(self.server)

    def point(self, server, *places):
        for place in places or self.places:
            new = place.with_suffix(".new")
            new.symlink_to(server.dir)
            new.replace(place)

    def start(self, language):
        number = len(self.lessees)
        environment = self.server.client_environment | {"PGHOST": str(self.places[number % 2])}
        self.lessees.append(Lessee(language, self.programs[language], environment, self.directory / f"output_{number}"))
        self.running.append(self.lessees[-1])

    # Events of clients.

    def trouble(self):
        while not self.load.ends.is_set():
            self.event()
            self.load.ends.wait(0.3)

    def event(self):
        choose, lessee = self.choose, self.choose.choice(self.running)
        kind = choose.choice(["stop", "stop", "kill", "server's clock"])
        self.seen[kind] += 1
        if kind == "stop":
            lessee.signal(signal.SIGSTOP)
            self.load.ends.wait(choose.choice([0.1, 3, 12, 70 if IS_LONG else 12]))
            lessee.signal(signal.SIGCONT)
        elif kind == "kill":
            lessee.signal(signal.SIGKILL)
            lessee.end()
            self.running.remove(lessee)
            self.start(lessee.language)
        else:
            with self.clocks:
                self.server.set_clock(f"{self.offset + choose.choice([-5, -1, 0, 1, 5]):+}")

    def session(self, made):
        since = None
        while not self.load.ends.is_set():
            server = self.server
            try:
                with server.connect() as db:
                    while not self.load.ends.is_set() and server is self.server:
                        made.add(db.execute("SELECT flake_next('twitter')::text FROM generate_series(1, 10)").fetchall())
                        since = None
                        time.sleep(0.02)
            except EXPECTED as error:
                cause = f"a session: {general(str(error).splitlines()[0])}"
                since = since if since and since[0] == cause else (cause, time.monotonic())
                self.refused[cause] = max(self.refused[cause], time.monotonic() - since[1])
            time.sleep(0.02)

    # Events of servers.

    def kill(self, server):
        signalled(server.freeze(), signal.SIGKILL)
        (server.dir / "data" / "postmaster.pid").unlink()

    def made(self, **options):
        return self.make(**options, clock=f"{self.offset:+}", steady=True)

    def goes_on(self, server, start=START):
        """Another server continues with the data. It grants leases again after `start` seconds."""
        with self.clocks:
            self.server = server
        if IS_LONG:
            self.point(server)
            self.load.ends.wait(start)
            return
        for seconds in 0, start, 3:
            with self.clocks:
                self.offset += seconds
                server.set_clock(f"{self.offset:+}")
            server.let_pass(seconds)
            server.sql("SELECT flake_lease('twitter')")
        self.point(server)

    def restart(self):
        self.server.restart(mode=self.choose.choice(["fast", "immediate"]))
        self.goes_on(self.server)

    def fails_over(self):
        """The standby lacks the last leases, and its clock is behind."""
        old, standby = self.server, self.made(standby_of=self.server)
        standby.stop_receiving()
        time.sleep(LAG)
        self.kill(old)
        with self.clocks:
            self.offset -= 5
            standby.set_clock(f"{self.offset:+}")
        standby.promote()
        self.goes_on(standby, PROMOTED)

    def both_lease(self):
        """The old primary grants leases for some seconds more, and some clients ask it."""
        old, standby = self.server, self.made(standby_of=self.server)
        standby.stop_receiving()
        time.sleep(LAG)
        standby.promote()
        self.point(standby, self.places[1])
        time.sleep(LAG)
        standby.sql("SELECT flake_lease('twitter')")
        time.sleep(LAG)
        self.kill(old)
        self.goes_on(standby, PROMOTED)

    def is_restored(self):
        """The primary is restored to a point in time, under another number, because its turn may be the first one again."""
        old, restored = self.server, self.made(copy_of=self.server)
        old.sql("SELECT pg_create_restore_point('here')")
        old.sql("SELECT pg_switch_wal()")
        time.sleep(LAG)
        self.kill(old)
        recover_beside(restored, old, "recovery_target_name=here", "flake.node_id=1")
        self.goes_on(restored, PROMOTED)

    def snapshot_beside(self):
        """A snapshot of the files starts beside the primary, which grants leases for a second more. It needs another number."""
        old = self.server
        stopped = old.freeze()
        copied = self.made(snapshot_of=old)
        signalled(stopped, signal.SIGCONT)
        time.sleep(LAG)
        with Background(lambda: copied.launch("flake.node_id=2")):
            time.sleep(1)
            self.kill(old)
        self.goes_on(copied)

    def run(self, made):
        for language in self.languages:
            for _ in range(PROCESSES):
                self.start(language)
        self.load = Background(*[lambda: self.session(made)] * PROCESSES, self.trouble, self.trouble)
        events = [self.restart, self.fails_over, self.both_lease, self.is_restored, self.snapshot_beside]
        try:
            with self.load:
                for event in events:
                    next_one = time.monotonic() + SECONDS / len(events)
                    time.sleep(3 if not IS_LONG else 15)
                    event()
                    self.seen[event.__name__] += 1
                    time.sleep(max(0, next_one - time.monotonic()))
        finally:
            for lessee in self.running:
                lessee.end()


def test_no_id_comes_twice_or_from_outside_of_a_lease(own_servers, tmp_path):
    languages = [language for language in LANGUAGES if not lacks(language)]
    made, deployment = Made(["twitter"]), Deployment(own_servers, Programs(tmp_path / "programs"), languages, tmp_path)
    deployment.run(made)
    wait_until(lambda: not any(file.stat().st_mtime > time.time() - 0.5 for file in tmp_path.glob("output_*")))
    printed = {file: Printed(file) for file in tmp_path.glob("output_*")}
    windows = [window for process in printed.values() for window in process.windows]
    ids = [one for process in printed.values() for one in process.ids]
    print(f"{len(printed)} processes, {len(windows)} leases, {len(ids)} IDs, {len(made)} of sessions")
    print("events:", dict(deployment.seen))
    none = sum((process.none for process in printed.values()), collections.Counter())
    for cause, count in none.most_common():
        longest = max(process.longest[cause] for process in printed.values())
        print(f"{count} times, at most {longest:.0f} s: {cause}")
    for cause, longest in deployment.refused.items():
        print(f"at most {longest:.0f} s, {cause}")
    assert [outside for process in printed.values() if (outside := process.outside())] == []
    assert overlapping(windows) == []
    assert len(ids) == len(set(ids))
    assert made.ids["twitter"].isdisjoint(map(str, ids))
    for language in languages:
        own = sum(len(printed[lessee.output].ids) for lessee in deployment.lessees if lessee.language == language)
        print(f"{language}: {own} IDs")
        assert own > PROCESSES * 10 * SECONDS, language
    assert len(made) > 1000
