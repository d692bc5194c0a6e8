"""The events of a cluster under load, whichever engine runs it."""

import contextlib
import os
import time

from judge import Event, Judge, table
from member import LIMIT
from service import TABLE, Service
from waiting import wait_until

TIMES = int(os.environ.get("FLAKE_ENGINE_TIMES", "1"))
# By how many seconds the clock of the promoted member is behind: a little, and more than the engine takes for the promotion.
BEHIND, FAR_BEHIND = 5, 30


@contextlib.contextmanager
def told(engine):
    """If a test fails, prints what the agents have logged."""
    try:
        yield
    except BaseException:
        for member in engine.members:
            print(f"--- {member.name}", member.log()[-4000:], sep="\n")
        raise


class Scene:
    """A cluster, its clients, and the events so far."""

    def __init__(self, engine, service):
        self.engine, self.service, self.events = engine, service, []

    def await_cluster(self, is_well):
        """Waits until the cluster is ready and clients are served."""
        wait_until(lambda: (primary := self.service.primary) and is_well(primary) and self.service.first_batch(primary, 0), LIMIT)

    def befall(self, name, happens, comes_back, behind=BEHIND):
        """Ends the primary, waits until another one has taken over, and lets the old one come back."""
        service = self.service
        self.await_cluster(self.engine.is_ready)
        for member in self.engine.members:
            if member is not service.primary:
                member.set_clock(f"-{behind}")
        event = Event(name, service)
        self.events.append(event)
        happens(event.old)
        wait_until(lambda: event.is_promoted(service) and event.is_measured(service), LIMIT)
        assert event.new.value("SELECT node_id FROM flake_stat") == event.new.number
        began = time.monotonic()
        how = comes_back(event)
        event.back = how, time.monotonic() - began
        for member in self.engine.members:
            member.set_clock("+0")

    def killed(self, comes_back, behind=BEHIND):
        self.befall("killed", lambda old: old.kill(), comes_back, behind)

    def stopped(self):
        def stand_still(old):
            old.stand_still()
            # Clients that wait for the old primary would not make IDs elsewhere.
            self.service.renew()

        self.befall("stopped", stand_still, self.goes_on)
        self.engine.mend()

    def switched_over(self):
        self.befall("switchover", self.engine.switch_over, self.rewound_if_need_be)

    def rewound_if_need_be(self, event, comes_back=lambda: None):
        """Waits until the engine has rewound the old primary, if that is needed."""
        before = len(event.old.log())
        comes_back()
        self.await_cluster(self.engine.is_whole)
        return "rewound" if "pg_rewind" in event.old.log()[before:] else "as it was"

    def restarted(self, event):
        """Restarts the old primary's agent."""
        event.old.await_end()
        return self.rewound_if_need_be(event, lambda: self.engine.start(event.old))

    def goes_on(self, event):
        return self.rewound_if_need_be(event, lambda: self.engine.go_on(event.old))

    def copied(self, event):
        """Lets the old primary begin again as a copy of the new one."""
        event.old.await_end()
        self.engine.start_anew(event.old)
        self.await_cluster(self.engine.is_whole)
        return "copied"

    def judge(self, title):
        """Prints the events, and fails if an ID was made twice."""
        primary = self.service.primary
        judge = Judge(self.service, self.events)
        judge.look("ids", primary.sql("SELECT token, id FROM kept"))
        judge.look("snos", primary.sql("SELECT token, sno::bytea FROM kept"))
        judge.look_at_ticks()
        print(table(title, self.events))
        assert [event.name for event in self.events if event.duplicates or event.ticks] == []
        # Nobody has asked for a watermark, so a new primary makes IDs at once, although its clock is behind.
        assert [event.name for event in self.events if "55000" in event.refused] == []
        assert all(event.ids for event in self.events)


def play(engine, title):
    """Plays all events, as often as requested."""
    with told(engine):
        engine.primary().sql(f"CREATE EXTENSION flake; {TABLE}")
        with Service(engine.members) as service:
            scene = Scene(engine, service)
            for _ in range(TIMES):
                scene.killed(scene.restarted)
                scene.switched_over()
                scene.stopped()
                scene.killed(scene.copied, FAR_BEHIND)
        scene.judge(title)
