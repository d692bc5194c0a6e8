"""Servers that share the rows of tables, with the configuration and the SQL of docs/how-to/shard.md."""

import re

import pytest

import pages
from conftest import ROOT, pg_config

PAGE = ROOT / "docs" / "how-to" / "shard.md"


def need(extension):
    """Skips a test if PostgreSQL does not have an extension that it needs."""
    if not (pg_config("--sharedir") / "extension" / f"{extension}.control").exists():
        pytest.skip(f"no {extension} for {pg_config('--version')}; PG_CONFIG names another PostgreSQL")


def configured(*headings):
    """Returns the settings that the page shows below these headings."""
    blocks = [block for heading in headings for block in pages.recipe(PAGE, heading, "conf")]
    return dict(re.findall(r"^(\S+) = '?(.*?)'?$", "\n".join(blocks), re.M))


def numbered(make, numbers, *headings, **settings):
    """Starts a server for each number, configured as the page shows."""
    common = configured("Shard tables", *headings) | settings
    each = [common | {"flake.node_id": number} for number in numbers]
    return [make(*(f"{name}={value}" for name, value in one.items()), extension=False) for one in each]


class Section(pages.Section):
    """A section of the page. Its hosts are the socket directories of servers."""

    def __init__(self, heading, hosts):
        super().__init__(PAGE, heading)
        self.hosts = hosts

    def next(self, language):
        return re.sub(r"\borders-(\d)\b", lambda name: str(self.hosts[int(name[1])].dir), super().next(language))

    def sql_on_each(self, servers):
        blocks = self.blocks
        for server in servers:
            self.blocks = blocks[:]
            self.sql(server)
