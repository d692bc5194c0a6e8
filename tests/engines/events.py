"""The events that befall a cluster under load, whichever engine runs it."""

import contextlib
import os
import time

from judge import Event, Judge, table
from member import LIMIT
from service import Service, TABLE
from waiting import wait_until

TIMES = int(os.environ.get("FLAKE_ENGINE_TIMES", "1"))
# How far the clock of whoever is promoted is behind, in seconds.
BEHIND = 5


@contextlib.contextmanager
def told(engine):
    """Says what the agents have seen where a test fails."""
    try:
        yield
    except BaseException:
        for member in engine.members:
            print(f"--- {member.name}", member.log()[-4000:], sep="\n")
        raise


class Scene:
    """A cluster, its clients, and what has befallen it."""

    def __init__(self, engine, service, one_number):
        self.engine, self.service, self.one_number = engine, service, one_number
        self.events = []

    def befall(self, name, happens, comes_back):
        """Something ends the primary; another one goes on; the old one comes back."""
        service = self.service
        wait_until(lambda: self.engine.is_whole(service.primary) and service.first_batch(service.primary, 0), LIMIT)
        for member in self.engine.members:
            if member is not service.primary:
                member.set_clock(f"-{BEHIND}")
        event = Event(name, service)
        self.events.append(event)
        happens(event.old)
        wait_until(lambda: event.is_promoted(service), LIMIT)
        wait_until(lambda: event.is_measured(service), LIMIT)
        assert event.new.value("SELECT node_id FROM flake_stats") == event.new.number
        began = time.monotonic()
        how = comes_back(event)
        wait_until(lambda: self.engine.is_whole(event.new), LIMIT)
        event.over = time.monotonic()
        event.back = f"{how} {event.over - began:.1f} s"
        for member in self.engine.members:
            member.set_clock("+0")

    def killed(self, comes_back):
        self.befall("killed", lambda old: old.kill(), comes_back)

    def stopped(self):
        def stand_still(old):
            old.stand_still()
            # Those that wait for it do not make IDs elsewhere.
            self.service.renew()

        self.befall("stopped", stand_still, self.goes_on)

    def switched_over(self):
        self.befall("switchover", self.engine.switch_over, lambda event: "by itself")

    def rewound(self, event):
        """Its agent is started again."""
        event.old.await_end()
        lines = len(event.old.log())
        self.engine.start(event.old)
        wait_until(lambda: self.engine.is_whole(event.new), LIMIT)
        return "rewound" if "pg_rewind" in event.old.log()[lines:] else "as it was"

    def copied(self, event):
        """It begins anew, from the new primary."""
        event.old.await_end()
        self.engine.start_anew(event.old)
        return "copied"

    def goes_on(self, event):
        event.resumed = time.monotonic()
        lines = len(event.old.log())
        event.old.go_on()
        wait_until(lambda: self.engine.is_whole(event.new), LIMIT)
        return "rewound" if "pg_rewind" in event.old.log()[lines:] else "as it was"

    def judge(self, title):
        """Prints what has happened, and says whether an ID was made twice."""
        primary = self.service.primary
        judge = Judge(self.service, self.events, self.one_number)
        judge.look("ids", primary.sql("SELECT token, id FROM kept"))
        judge.look("snos", primary.sql("SELECT token, sno::bytea FROM kept"))
        print(table(title, self.events))
        assert [event.name for event in self.events if event.duplicates] == []
        assert all(event.ids for event in self.events)


def play(engine, title, one_number):
    """All events, as often as is asked for."""
    with told(engine):
        engine.primary().sql(f"CREATE EXTENSION flake; {TABLE}")
        with Service(engine.members) as service:
            scene = Scene(engine, service, one_number)
            for _ in range(TIMES):
                scene.killed(scene.rewound)
                scene.switched_over()
                scene.stopped()
                scene.killed(scene.copied)
        scene.judge(title)
