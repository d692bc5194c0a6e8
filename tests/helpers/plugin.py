"""The servers of these tests, for tests in other directories. scripts/test loads this file as a pytest plugin."""

from conftest import own_servers, pytest_configure, pytest_runtest_protocol, server, servers

__all__ = ["own_servers", "pytest_configure", "pytest_runtest_protocol", "server", "servers"]
