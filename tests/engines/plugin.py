"""The servers of tests/server, for the tests of this directory: scripts/test loads it as a plugin of pytest."""

from conftest import own_servers, server, servers

__all__ = ["own_servers", "server", "servers"]
