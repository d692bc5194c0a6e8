"""Clients that use a cluster while its packages are upgraded, and the errors that they may get."""

import collections
import contextlib
import dataclasses
import itertools
import re
import time

import psycopg

from waiting import Background, wait_until
from writers import PAUSE, Writers

# Messages that clients see, as the documentation says: where another library is in use, and where a server is restarted. If an
# error and the end of the session reach a client together, libpq shows both, with a prefix.
OTHER_LIBRARY = re.compile(
    r"(consuming input failed: )?another version of the flake library is in use\nDETAIL: .*\nHINT:  Restart the server"
)
ENDED = "terminating connection due to administrator command"
RESTART = re.compile(rf"([a-z ]+ failed: )?((FATAL:  )?{ENDED}|server closed the connection unexpectedly)")
# The prefixes that libpq adds for each server that it tries.
REASONS = re.compile(
    r"No such file or directory|Connection refused|server closed the connection unexpectedly|session is read-only|"
    r"server is not in hot standby mode|"
    rf"FATAL:  (the database system is (starting up|shutting down|not (yet )?accepting connections)|{ENDED})"
)


def is_of_restart(text):
    reasons = re.findall(r"connection to server .*? failed: (.*)", text)
    return all(REASONS.match(reason) for reason in reasons) if reasons else bool(RESTART.match(text))


def is_of_other_library(text):
    return bool(OTHER_LIBRARY.match(text))


def returns(client):
    """Half of the clients keep their session, and the others begin one for each statement."""
    return client % 2 == 1


class Readers(Background):
    """Clients that read a database by the time in its IDs."""

    def __init__(self, database, query, count=2):
        super().__init__()
        self.database, self.query, self.errors, self.answers, self.returns = database, query, [], collections.Counter(), returns
        for client in range(count):
            self.add(self.read, client)

    def read(self, client):
        while not self.ends.is_set():
            try:
                with self.database.connect(user="app") as db:
                    while not self.ends.wait(PAUSE):
                        db.execute(self.query).fetchall()
                        self.answers[client] += 1
                        if self.returns(client):
                            break
            except psycopg.Error as error:
                self.errors.append((client, str(error)))
                self.ends.wait(PAUSE)

    def wait_for_all(self, count=20):
        before = self.answers.copy()
        wait_until(lambda: all(self.answers[client] >= before[client] + count for client in range(len(self.threads))))


@dataclasses.dataclass
class Phase:
    name: str
    began: float
    ended: float = 0
    errors: collections.Counter = dataclasses.field(default_factory=collections.Counter)


class Everybody:
    """All clients: `writers` for each database, and readers of a standby."""

    def __init__(self, databases, readers):
        self.readers = readers
        self.writers = {database: Writers(*[[database]] * 4, returns=returns) for database in databases}
        self.phases = []
        # How many errors of each client have been checked.
        self.seen = [0] * len(self.all())

    def __enter__(self):
        with contextlib.ExitStack() as entered:
            for each in self.all():
                entered.enter_context(each)
            self.ends = entered.pop_all()
        return self

    def __exit__(self, *what):
        return self.ends.__exit__(*what)

    def all(self):
        return [*self.writers.values(), self.readers]

    def go_on(self, but=lambda client: False):
        """Waits until each client, except for the given ones, has used the cluster again."""
        for database, writers in self.writers.items():
            writers.wait_for_all(database, 10, but)
        self.readers.wait_for_all()

    def errors_of(self, which):
        return [text for writers in self.writers.values() for client, text in writers.errors if which(client)]

    @contextlib.contextmanager
    def phase(self, name, *documented, of=lambda client: True):
        """Checks the errors since the last phase: only these clients may have got these errors."""
        phase = Phase(name, time.monotonic())
        yield phase
        phase.ended = time.monotonic()
        self.phases.append(phase)
        for number, each in enumerate(self.all()):
            new = each.errors[self.seen[number] :]
            self.seen[number] += len(new)
            for client, text in new:
                phase.errors[text] += 1
                assert of(client) and any(is_one(text) for is_one in documented), f"{name}, {each} {client}: {text}"

    def batches(self):
        return [batch for writers in self.writers.values() for batch in writers.batches.values()]

    def assert_above(self, phase):
        """Checks that IDs made after a phase are above all earlier ones, in each database."""
        for kind, writers in itertools.product(["ids", "snos"], self.writers.values()):
            batches = list(writers.batches.values())
            before = [id for batch in batches if batch.ended < phase.began for id in getattr(batch, kind)]
            after = [id for batch in batches if batch.began > phase.ended for id in getattr(batch, kind)]
            assert before and after and max(before) < min(after), f"{kind} after: {phase.name}"

    def assert_unique(self):
        """Checks that no ID was made twice, across all databases."""
        for kind in ["ids", "snos"]:
            made = [id for batch in self.batches() for id in getattr(batch, kind)]
            assert len(made) == len(set(made)), f"{len(made) - len(set(made))} {kind} twice"

    def pause(self, phase):
        """Returns for how many seconds no client could write."""
        ends = sorted(batch.ended for batch in self.batches() if phase.began < batch.ended < phase.ended)
        moments = [phase.began, *ends, phase.ended]
        return max(later - earlier for earlier, later in itertools.pairwise(moments))

    def report(self):
        made = sum(len(batch.ids) + len(batch.snos) for batch in self.batches())
        print(f"{made} IDs in {len(self.batches())} statements, {sum(self.readers.answers.values())} answers of the standby")
        for phase in self.phases:
            print(f"{phase.name}: {phase.ended - phase.began:.1f} s, nothing written for {self.pause(phase):.1f} s")
            for text, count in phase.errors.items():
                print(f"    {count} × {text.splitlines()[0]}")
