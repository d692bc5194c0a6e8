"""The sessions that recipes are pasted into: one like the pages', and several of an ordinary role that owns its database. These
have other time zones, another DateStyle, another search_path, and names that need quotes."""

import dataclasses
import itertools
import re

import pytest

OWNER, SCHEMA = "Shop owner", "My Shop"
databases = itertools.count()
# The tables of the pages that get another name in such sessions.
TABLES = re.compile(r'(?<![\w"])(orders|events|outbox|customers|readings)(?![\w"])')


@dataclasses.dataclass(frozen=True)
class Session:
    timezone: str | None = None

    def __str__(self):
        return self.timezone or "as it is written"

    @property
    def is_plain(self):
        return self.timezone is None

    def of(self, server, extension=False):
        """Returns the server as a client of such a session sees it. Unless the session is like the pages', it has a database of
        its own."""
        if self.is_plain:
            return server
        database = f"Tea & Co {next(databases)}"
        if not server.sql("SELECT FROM pg_roles WHERE rolname = %s", OWNER):
            # Owning a database does not give the right to logical replication slots.
            server.sql(f'CREATE ROLE "{OWNER}" LOGIN REPLICATION')
        server.sql(f'CREATE DATABASE "{database}" OWNER "{OWNER}"')
        options = {"timezone": self.timezone, "datestyle": "SQL,DMY", "search_path": f'"{SCHEMA}"'.replace(" ", r"\ ")}
        client = server.of_client(OWNER, database, " ".join(f"-c {name}={value}" for name, value in options.items()))
        client.named = self.named
        client.sql(f'CREATE SCHEMA "{SCHEMA}"')
        if extension:
            client.sql("CREATE EXTENSION flake")
        return client

    def named(self, code, language="sql"):
        """Returns the code with the names that its tables have in such a session."""
        if self.is_plain:
            return code
        # Inside the quotes of Python or of a shell.
        inside = re.compile(r".*" if language == "python" else r"^\\!.*", re.M)
        code = TABLES.sub(lambda found: f'"{found[1].capitalize()}"', code)
        return inside.sub(lambda line: re.sub(r'"(Orders|Events|Outbox|Customers|Readings)"', r'\\"\1\\"', line[0]), code)


def without_names(output):
    """Returns the part of an output that is the same in all these sessions."""
    by_day = r"\d\d[/-]\d\d[/-]\d{4}( \d\d:\d\d:\d\d(\.\d+)?( [A-Z]+| [+-]\d\d(:?\d\d)?)?)?"
    output = re.sub(by_day, "2026-01-01 00:00:00+00", output)
    output = re.sub(r"\b\d{4}-\d\d-\d\d\b(?!.\d\d:)", "2026-01-01 00:00:00+00", output)
    output = re.sub(r"\d{4}-\d\d-\d\d(T| )\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d(:\d\d)?)", "2026-01-01 00:00:00+00", output)
    return re.sub(r"\b(my shop|public)\.", "", output.replace('"', "").lower())


# The other sessions run the same code in a harder place.
PLAIN = pytest.param(Session(), marks=pytest.mark.matrix)
OTHERS = [Session("America/New_York"), pytest.param(Session("Australia/Lord_Howe"), marks=pytest.mark.matrix)]
every_session = pytest.mark.parametrize("session", [PLAIN, *OTHERS], ids=str)
other_sessions = pytest.mark.parametrize("session", OTHERS, ids=str)
