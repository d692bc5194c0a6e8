"""Rounds: everything is measured in turn, in an order that changes, as the speed of machines drifts."""

import random
import statistics


def interleaved(rounds, jobs):
    """The values of each job, after one round that does not count."""
    order, chance = list(jobs), random.Random(1)
    values = {name: [] for name in jobs}
    for number in range(rounds + 1):
        chance.shuffle(order)
        for name in order:
            value = jobs[name]()
            if number > 0:
                values[name].append(value)
    return values


def medians(values):
    return {name: statistics.median(found) for name, found in values.items()}


def compared(values, base, how):
    """Medians of comparisons with the base within each round: differences or quotients."""
    return {name: statistics.median(map(how, found, values[base])) for name, found in values.items()}
