"""The shapes of deployments: how many nodes divide the IDs, and how many procs the other node has."""

import typing


class Shape(typing.NamedTuple):
    """The numbers of a deployment, and the field widths of small layouts, in which each node has workers."""

    nodes: int
    connections: int
    workers: int
    sequence: int


# In the second shape, the division of snos among procs leaves large remainders.
SHAPES = [Shape(8, 9, 4, 6), Shape(128, 246, 7, 12)]
MOST_CONNECTIONS = 12  # of servers with standbys, where the setting must not decrease
