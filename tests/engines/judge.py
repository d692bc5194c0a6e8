"""What events do to a cluster's clients: who was made to wait how long, and whether an ID was made twice."""

import time


class Event:
    """Something that befalls a cluster under load."""

    def __init__(self, name, service):
        self.name, self.old, self.began = name, service.primary, time.monotonic()
        self.new, self.promoted, self.behind = None, None, 0.0
        self.resumed = None  # when an old primary that had stood still went on
        self.over = float("inf")
        self.without_primary, self.refused, self.waited, self.back = 0.0, {}, 0.0, ""
        self.ids = self.duplicates = self.exempt = 0

    def is_promoted(self, service):
        """Another member is the primary."""
        promoted = service.promoted.copy()
        new = service.primary
        if new is None or new is self.old or promoted.get(new.name, 0) <= self.began:
            return False
        self.new, self.promoted, self.behind = new, promoted[new.name], -new.clock()
        return True

    def is_measured(self, service):
        """The new primary's clients have had an ID."""
        first = service.first_batch(self.new, self.promoted)
        if first is None:
            return False
        last = service.last_batch(self.old, self.promoted)
        refusals = [one for one in list(service.refusals) if one.member is self.new and self.promoted <= one.ended < first.ended]
        self.without_primary = self.promoted - max(self.began, last.ended if last else 0)
        self.refused = {one.state: one.ended - self.promoted for one in refusals}
        self.waited = first.ended - max([self.promoted, *(one.ended for one in refusals)])
        return True

    def excuses(self, batch):
        """Not covered: a primary that stood still goes on for a while, under the number of the new one."""
        if self.resumed is None or batch.member is not self.old:
            return False
        return max(self.resumed, self.promoted + 2) < batch.ended and batch.began < self.over


class Judge:
    """Looks for IDs that were made twice among all that were returned and all rows."""

    def __init__(self, service, events, one_number):
        self.batches, self.events, self.one_number = service.batches, events, one_number
        for batch in self.batches.values():
            self.latest(batch.ended).ids += len(batch.ids) + len(batch.snos)

    def latest(self, instant):
        return max((event for event in self.events if event.began <= instant), key=lambda event: event.began, default=self.events[0])

    def look(self, kind, rows):
        """At the IDs of a kind: a field of batches."""
        made, stored = {}, set()
        for token, batch in self.batches.items():
            for value in getattr(batch, kind):
                other = made.setdefault(value, token) if value not in made else made[value]
                if other != token:
                    self.twice(other, token)
            if len(set(getattr(batch, kind))) < len(getattr(batch, kind)):
                self.twice(token, token)
        for token, value in rows:
            other = made.setdefault(value, token)
            if other != token or value in stored:
                self.twice(other, token)
            stored.add(value)

    def twice(self, *tokens):
        batches = [self.batches[token] for token in tokens]
        event = self.latest(max(batch.ended for batch in batches))
        if self.one_number and any(event.excuses(batch) for event in self.events for batch in batches):
            event.exempt += 1
        else:
            event.duplicates += 1


HEAD = ["event", "new primary's clock", "IDs", "twice", "exempt", "without primary", "refused", "waited", "back"]


def table(title, events):
    """What the events did, a line each."""
    lines = [HEAD]
    for event in events:
        refused = ", ".join(f"{state} {seconds:.1f} s" for state, seconds in event.refused.items()) or "-"
        lines.append([
            event.name, f"{-event.behind:+.0f} s", str(event.ids), str(event.duplicates), str(event.exempt),
            f"{event.without_primary:.1f} s", refused, f"{event.waited:.1f} s", event.back,
        ])  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join([title, *rows])
