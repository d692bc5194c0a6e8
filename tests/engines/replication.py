"""Servers with logical replication, by the settings and commands of docs/how-to/logical-replication.md."""

import functools
import os
import re

import pages
from conftest import ROOT, bindir

PAGE = ROOT / "docs" / "how-to" / "logical-replication.md"
recipe = functools.partial(pages.recipe, PAGE)
HEADINGS = ["Upgrade without a stop", "A standby becomes the new server", "Many writers", "Many writers with pglogical"]
ON, = recipe("Logical replication", "bash")


def settings(heading, number=0, **own):
    """Returns the settings of a block. Some of them are for another server."""
    block = dict(re.findall(r"^(\S+) = '?(.*?)'?$", recipe(heading, "conf")[number], re.M))
    assert own.keys() <= {name.replace(".", "_") for name in block}
    return [f"{name}={own.get(name.replace('.', '_'), value)}" for name, value in block.items()]


def connected(server):
    return f"host={server.dir} user=postgres dbname=postgres"


def execute(server, *commands, **variables):
    """Runs commands of the page with the programs of a server's version."""
    path = f"{bindir(server.pg_config)}:{os.environ['PATH']}"
    for command in commands:
        pages.run(server, ON + command, PATH=path, **variables)
