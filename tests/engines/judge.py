"""What events do to a cluster's clients: who was made to wait how long, and whether an ID was made twice."""

import time

# The bits below the timestamp of a twitter ID.
TICK = 22


class Event:
    """Something that befalls a cluster under load."""

    def __init__(self, name, service):
        self.name, self.old, self.began = name, service.primary, time.monotonic()
        self.new, self.promoted, self.behind = None, None, 0.0
        self.without_primary, self.refused, self.waited, self.back = 0.0, {}, 0.0, ""
        self.ids = self.duplicates = self.ticks = self.exempt_duplicates = self.exempt_ticks = 0

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


def an_old_primary_for_too_long(one, other):
    """Not covered: a primary that goes on two seconds after another one of its number was promoted, as one that stood still."""
    old, new = sorted([one, other], key=lambda batch: batch.reign)
    return old.member is not new.member and old.member.number == new.member.number and old.ended > new.reign + 2


class Judge:
    """Looks for IDs that were made twice among all that were returned and all rows."""

    def __init__(self, service, events):
        self.batches, self.events = service.batches, events
        for batch in self.batches.values():
            self.latest(batch.ended).ids += len(batch.ids) + len(batch.snos)

    def latest(self, instant):
        return next((event for event in reversed(self.events) if event.began <= instant), self.events[0])

    def look(self, kind, rows):
        """At the IDs of a kind: a field of batches."""
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
        """Where two primaries of one number use the same tick, they make the same IDs as soon as they come to the same slot."""
        used = {}
        for token, batch in self.batches.items():
            for tick in {id >> TICK for id in batch.ids}:
                other = used.setdefault((batch.member.number, tick), token)
                if self.batches[other].reign != batch.reign:
                    self.twice("ticks", other, token)

    def twice(self, what, *tokens):
        one, other = (self.batches[token] for token in tokens)
        event = self.latest(max(one.ended, other.ended))
        what = f"exempt_{what}" if an_old_primary_for_too_long(one, other) else what
        setattr(event, what, getattr(event, what) + 1)


HEAD = ["event", "its clock", "IDs", "IDs twice", "ticks twice", "exempt", "no primary", "refused", "waited", "old primary back"]


def table(title, events):
    """What the events did, a line each."""
    lines = [HEAD]
    for event in events:
        refused = ", ".join(f"{state} {seconds:.1f} s" for state, seconds in event.refused.items()) or "-"
        lines.append([
            event.name, f"{-event.behind:+.0f} s", str(event.ids), str(event.duplicates), str(event.ticks),
            f"{event.exempt_duplicates} and {event.exempt_ticks}",
            f"{event.without_primary:.1f} s", refused, f"{event.waited:.1f} s", event.back,
        ])  # fmt: skip
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rows = ("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines)
    return "\n".join([title, *rows])
