"""How many nodes divide the IDs, and how many connections the other node has: its slots are many or few."""

import typing


class Shape(typing.NamedTuple):
    """The numbers of a deployment, and the bits of layouts of few IDs, of which each slot of each node has one at least."""

    nodes: int
    connections: int
    workers: int
    sequence: int


# The second is what a division by all slots of all nodes, each with its own number of connections, rounds by much.
SHAPES = [Shape(8, 9, 4, 6), Shape(128, 246, 7, 12)]
MOST_CONNECTIONS = 12  # of servers that have standbys, whose number never decreases
