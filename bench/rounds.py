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


def above(values, base):
    """Medians of the differences to the base within each round."""
    pairs = {name: zip(found, values[base]) for name, found in values.items() if name != base}
    return {name: statistics.median(one - other for one, other in found) for name, found in pairs.items()}


def over(values, base):
    """Medians of the quotients by the base within each round: what is said of things that vary more than they differ."""
    pairs = {name: zip(found, values[base]) for name, found in values.items()}
    return {name: statistics.median(one / other for one, other in found) for name, found in pairs.items()}
