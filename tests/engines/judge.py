"""The effects of events on a cluster's clients: how long they had to wait, and whether an ID was made twice."""

import time

# The bits of a twitter ID below the number of its part, as one of 32 nodes with eight parts: 2 of the worker, and the sequence.
PART = 14


class Event:
    """An event of a cluster under load."""

    def __init__(self, name, service):
        self.name, self.old, self.began = name, service.primary, time.monotonic()
        self.new, self.promoted, self.behind = None, None, 0.0
        self.without_primary, self.refused, self.waited, self.back = 0.0, {}, 0.0, ("", 0.0)
        self.meanwhile = 0  # IDs that the old primary returned after the promotion
        self.ids = self.duplicates = self.ticks = 0

    def is_promoted(self, service):
        """Records that another member is the primary."""
        promoted = service.promoted.copy()
        new = service.primary
        if new is None or new is self.old or promoted.get(new.name, 0) <= self.began:
            return False
        self.new, self.promoted, self.behind = new, promoted[new.name], -new.clock()
        return True

    def is_measured(self, service):
        """Returns whether the new primary's clients have received an ID."""
        first = service.first_batch(self.new, self.promoted)
        if first is None:
            return False
        last = service.last_batch(self.old, self.promoted)
        refusals = [one for one in list(service.refusals) if one.member is self.new and self.promoted <= one.ended < first.ended]
        self.without_primary = self.promoted - max(self.began, last.ended if last else 0)
        self.refused = {one.state: one.ended - self.promoted for one in refusals}
        self.waited = first.ended - max([self.promoted, *(one.ended for one in refusals)])
        return True


def has_parted(batch, events):
    """Returns whether a primary made these IDs after another one was promoted in its place."""
    return any(batch.member is event.old and batch.reign < event.promoted < batch.ended for event in events)


class Judge:
    """Looks for duplicates among all returned IDs and all rows."""

    def __init__(self, service, events):
        self.batches, self.events = service.batches, events
        for batch in self.batches.values():
            event = self.latest(batch.ended)
            event.ids += len(batch.ids) + len(batch.snos)
            event.meanwhile += has_parted(batch, [event]) * len(batch.ids)

    def latest(self, instant):
        return next((event for event in reversed(self.events) if event.began <= instant), self.events[0])

    def look(self, kind, rows):
        """Checks the IDs of one kind, which is a field of batches, and the rows that the last primary has."""
        made, stored = {}, set()
        for token, batch in self.batches.items():
            for value in getattr(batch, kind):
                if value in made:
                    self.twice("duplicates", made[value], token)
                made[value] = token
        for token, value in rows:
            other = made.setdefault(value, token)
            if other != token or value in stored:
                self.twice("duplicates", other, token)
            stored.add(value)

    def look_at_ticks(self):
        """Checks the parts of ticks. If two primaries make IDs of the same part in the same tick, they make the same IDs as
        soon as sessions take them from the same lane."""
        used = {}
        for token, batch in self.batches.items():
            for part in {id >> PART for id in batch.ids}:
                other = used.setdefault(part, token)
                if self.batches[other].reign != batch.reign:
                    self.twice("ticks", other, token)

    def twice(self, what, *tokens):
        one, other = (self.batches[token] for token in tokens)
        event = self.latest(max(one.ended, other.ended))
        setattr(event, what, getattr(event, what) + 1)


HEAD = [
    "event", "its clock", "IDs", "IDs twice", "ticks twice", "by the old one", "no primary", "refused", "waited",
    "old primary back",
]  # fmt: skip


def table(title, events):
    """Prints the effects of each event, and of all events of a kind together."""
    kinds = {}
    for event in events:
        kinds.setdefault((event.name, event.behind, event.back[0]), []).append(event)
    lines = [HEAD, *(line(f"{number}. {event.name}", [event]) for number, event in enumerate(events, start=1))]
    if len(kinds) < len(events):
        lines += (line(f"{len(same)} × {same[0].name}", same) for same in kinds.values())
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ("  ".join(text.ljust(width) for text, width in zip(one, widths, strict=True)).rstrip() for one in lines)
    return "\n".join([title, *rows])


def line(name, events):
    """Returns sums, and the shortest and the longest of all times."""
    states = sorted({state for event in events for state in event.refused})
    refused = ", ".join(f"{state} {span(event.refused.get(state, 0) for event in events)}" for state in states)
    sums = (str(sum(getattr(event, what) for event in events)) for what in ["ids", "duplicates", "ticks"])
    without_primary, waited = (span(getattr(event, what) for event in events) for what in ["without_primary", "waited"])
    back = f"{events[0].back[0]} {span(event.back[1] for event in events)}"
    meanwhile = str(sum(event.meanwhile for event in events))
    clock = f"{-events[0].behind:+.0f} s"
    return [name, clock, *sums, meanwhile, without_primary, refused or "-", waited, back]


def span(seconds):
    seconds = [f"{one:.1f}" for one in sorted(seconds)]
    return f"{' to '.join(dict.fromkeys([seconds[0], seconds[-1]]))} s"
