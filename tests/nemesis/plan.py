"""The plan: steps that are drawn from a seed before the run. Each step fits the roles that the servers have by then."""

import random

from . import SERVERS, WITHOUT
from .shape import MOST_CONNECTIONS, SHAPES

# By how many seconds a clock is set; most steps are small.
SMALL = [-0.0002, 0.0002, -0.002, 0.002, -0.02, -0.05, 0.05, -0.3, 0.3, -0.9, 0.9]
LARGE = [-1.5, -2.5, -4, -6, 2, 4, 6, -60, 60, -3600, 3600]
COPIES = 4  # numbers from 4 on


class Plan:
    """A list of steps, each a name and arguments. The plan knows which server is the primary by then."""

    def __init__(self, seed, length):
        self.random = random.Random(seed)
        self.shape = self.random.choice(SHAPES)
        # With fewer servers, more happens on each of them in a second.
        drawn, = self.random.choices(["abcd", "abc", "ab", "ac", "d"], [3, 1, 3, 1, 3])
        self.servers = SERVERS or drawn
        self.primary, self.standbys, self.down = self.servers[0], [name for name in self.servers if name in "bc"], []
        self.copies = 0
        # Which libraries the standbys preload at their first start.
        self.preloading = random.Random(f"{seed} preloading").choices(["", "flake"], k=2)
        # Announced watermarks reserve time too, so some servers of a plan have no consumers.
        groups = {"abcd": ["abc", "d"], "d": ["d"]}.get(self.servers, ["abc"])
        self.tailed = [group for group in groups if self.random.random() < 0.6]
        # If all clients use one database, the guarantee for each database covers all of them.
        self.databases = random.Random(f"{seed} databases").choice([1, 1, 3])
        self.focus, self.steps = None, []
        for _ in range(length):
            self.steps += self.draw()

    def draw(self):
        other = len(self.other)
        kinds = self.weighted({
            self.clock: 8, self.jitter: 5, self.ahead_and_back: 2, self.stand_still: 2, self.accept_clock: 1,
            self.start_above: 1, self.pause: 1, self.pause_one: 3, self.kill_one: 3, self.kill: 2, self.terminate: 2,
            self.restart: 5, self.fill_disk: 0.6, self.slow_disk: 2, self.lose_mark: 1, self.renumber: other, self.count: 0.7,
            self.reload: 1, self.open_up: 1, self.recreate: 0.5, self.copy: 0.4, self.double: 0.7, self.take_back: other,
            self.restore: other, self.leave: 12, self.catch_up: 6, self.fail_over: 6 if self.standbys else 0,
            self.follow: (5 if self.standbys else 20) if self.down else 0,
            self.fail_over_and_restart: 3 if self.standbys else 0, self.in_a_row: 3 if self.standbys else 0,
            self.start_above_and_renumber: 3 * other,
        })  # fmt: skip
        return [*self.work(), *kinds(), ("load", self.random.choice([0.1, 0.2, 0.4, 0.8]))]

    def weighted(self, kinds):
        weights = [0 if kind.__name__ in WITHOUT else weight for kind, weight in kinds.items()]
        return self.random.choices(list(kinds), weights)[0]

    def work(self):
        """Sometimes changes how many clients work on a server."""
        if self.random.random() < 0.6:
            return []
        return [self.at_work(self.running(), [0, 1, 1, 2, 3])]

    def at_work(self, name, clients):
        return "work", name, self.random.choice(clients), self.random.choice([0.05, 0.3, 0.7, 1.5, None])

    def leave(self):
        """Ends all sessions before a fault, and may let a few connect in between."""
        self.focus = name = self.writing()
        steps = [("leave", name)]
        if self.random.random() < 0.6:
            steps.append(("ahead", name, self.random.choice([0.5, 3, 6, 10])))
        if self.random.random() < 0.5:
            steps += [self.at_work(name, [1]), ("load", self.random.choice([0.1, 0.3])), ("leave", name)]
        if self.random.random() < 0.5:
            steps += [self.at_work(name, [1, 2]), ("load", self.random.choice([0, 0.1, 0.3]))]
        kinds = {self.restart: 4, self.kill: 3, self.kill_one: 1, self.lose_mark: 1, self.accept_clock: 1,
                 self.start_above: 1, self.clock: 3, self.ahead_and_back: 1, self.fill_disk: 2, self.slow_disk: 2}
        if name == self.primary and self.standbys:
            kinds[self.fail_over] = 20
        if name == "d":
            kinds[self.take_back] = 2
        steps += self.weighted(kinds)()
        self.focus = None
        return [*steps, self.at_work(name, [1, 2, 3])]

    @property
    def other(self):
        return [name for name in self.servers if name == "d"]

    def running(self):
        return self.focus or self.random.choice([self.primary, self.primary, *self.other, *self.standbys])

    def writing(self):
        return self.focus or self.random.choice([self.primary, self.primary, *self.other])

    def seconds(self):
        return self.random.choice([0.2, 0.7, 1.5, 2.5])

    def clock(self):
        sizes = SMALL if self.random.random() < 0.6 else LARGE
        return [("clock", self.running(), self.random.choice(sizes))]

    def jitter(self):
        return [("jitter", self.running(), self.random.choices(SMALL, k=8))]

    def ahead_and_back(self):
        """Makes IDs ahead of all other clocks, then sets the clock back."""
        name, seconds = self.running(), self.random.choice([1, 2, 4, 6, 60])
        steps = [("clock", name, seconds), ("load", 0.5), ("clock", name, -seconds), ("load", 0.3)]
        if name not in self.standbys and self.random.random() < 0.4:
            steps.append(("accept_clock", name))
        return steps

    def catch_up(self):
        return [("catch_up", self.running())]

    def stand_still(self):
        return [("stand_still", self.running(), self.seconds())]

    def pause(self):
        return [("pause", self.running(), self.seconds())]

    def pause_one(self):
        return [("pause_one", self.running(), self.seconds())]

    def kill_one(self):
        return [("kill_one", self.running())]

    def kill(self):
        return [("kill", self.running(), self.random.choice([0, 0, -0.5, -3, -10, 1]))]

    def terminate(self):
        return [("terminate", self.running())]

    def restart(self):
        settings, name = {}, self.running()
        if name not in self.standbys and self.random.random() < 0.4:
            most = self.shape.connections if name == "d" else MOST_CONNECTIONS
            settings["max_connections"] = self.random.choice([8, 9, 10, most, most])
        if self.random.random() < 0.4:
            settings["shared_preload_libraries"] = self.random.choice(["", "flake"])
        return [("restart", name, self.random.choice(["fast", "immediate"]), self.random.choice([0, 0, -0.5, -3, 1]), settings)]

    def fill_disk(self):
        return [("fill_disk", self.running(), self.seconds() + 2)]

    def slow_disk(self):
        return [("slow_disk", self.writing(), self.random.choice([0.1, 0.3, 1, 4]), self.random.random() < 0.6)]

    def lose_mark(self):
        mode = self.random.choice(["fast", "fast", "immediate"])
        return [("lose_mark", self.writing(), self.random.choice([0, -0.5, -3]), mode)]

    def accept_clock(self):
        return [("accept_clock", self.writing())]

    def start_above(self):
        return [("start_above", self.writing(), self.random.choice([-1, 0.5, 3]))]

    def renumber(self):
        return [("renumber", "d", self.random.choice([2, 3]))]

    def count(self):
        return [("count", self.writing(), self.random.choice([4, 8, 16]))]

    def reload(self):
        """Configures another node's number, which must not take effect before the next start."""
        return [("reload", self.writing(), self.random.choice([0, 1, 2]), self.seconds())]

    def copy(self):
        self.copies += 1
        if self.copies > COPIES:
            return []
        return [("copy", self.writing(), 3 + self.copies, self.seconds())]

    def double(self):
        self.copies += 1
        if self.copies > COPIES:
            return []
        return [("double", self.writing(), self.how_copied(), self.seconds())]

    def how_copied(self):
        return self.random.choice(["paused", "paused", "immediate", "fast"])

    def take_back(self):
        """Puts an earlier copy of the node without standbys in its place. If the node was stopped for good, its files have only
        been moved."""
        how = self.how_copied()
        seconds = self.random.choice([0.5, 1.5] if how == "paused" else [0, 0, 0.5, 1.5])
        return [("take_back", "d", how, seconds, self.random.choice([0, 0, -0.5, -3]))]

    def restore(self):
        """Restores the node without standbys."""
        return [("restore", "d", self.seconds(), self.random.choice([0, 0.5, 1.5, 3]))]

    def open_up(self):
        return [("open_up", self.writing(), self.random.randrange(3))]

    def recreate(self):
        return [("recreate", self.writing())]

    def fail_over(self):
        """Draws how the old primary ends: before the promotion, a while after it, or paused and continued."""
        old = self.primary
        # Standbys with the old primary's number are chosen more often.
        new, = self.random.choices(self.standbys, [1 if "c" in (old, name) else 3 for name in self.standbys])
        way = self.random.choice(["immediate", "fast", "goes on", "goes on", "goes on", "paused", "kill"])
        cut = self.random.choice([None, None, 0.3, 1.0])
        restarted, crawls = self.random.random() < 0.3, self.random.random() < 0.6
        self.primary = new
        # The other standby follows the new primary before the next step.
        others = [name for name in self.standbys if name != new]
        self.standbys, self.down = others, [*self.down, old]
        step = "fail_over", old, new, way, self.random.choice([0.2, 0.7, 1.2, 3, 5]), cut, restarted, crawls
        clocks = [("clock", name, self.random.choice(SMALL + LARGE[:7])) for name in (old, new) if self.random.random() < 0.2]
        if clocks:
            clocks.append(("load", 0.5))
        elif self.random.random() < 0.8:
            clocks.append(("align", old))
        return [*clocks, step, *(("follow", name, new) for name in others)]

    def fail_over_and_restart(self):
        """Restarts the new primary right after its promotion."""
        steps = self.fail_over()
        again = self.random.choice([("restart", self.primary, "fast", 0, {}), ("restart", self.primary, "immediate", 0, {}),
                                    ("kill", self.primary, 0), ("kill_one", self.primary)])  # fmt: skip
        at = next(at for at, step in enumerate(steps) if step[0] == "fail_over")
        return [*steps[: at + 1], again, *steps[at + 1 :]]

    def in_a_row(self):
        """Promotes several servers in a row, each as soon as it can be a standby."""
        steps = []
        for _ in range(self.random.choice([2, 3])):
            if not self.standbys:
                steps += self.follow()
            steps += self.fail_over()
        return steps

    def start_above_and_renumber(self):
        """Checks that flake_start_above binds the server under every number, even if its clock is set back."""
        seconds, back = self.random.choice([1, 3, 4.5]), self.random.choice([0, -0.5, -3])
        return [("start_above", "d", seconds), ("clock", "d", back), *self.renumber(), ("load", 0.5), *self.renumber()]

    def follow(self):
        """Makes a former primary a standby of the current one."""
        name = self.down.pop(0)
        self.standbys.append(name)
        return [("follow", name, self.primary)]
