"""Servers that take their numbers from where docs/high-availability.md says, by the configuration that is written there."""

import functools
import os
import subprocess

from clients import wait_for_server
from conftest import ROOT, bindir
from pages import recipe

numbered = functools.partial(recipe, ROOT / "docs" / "high-availability.md", "A number for each server")


def node_of(server):
    """The numbers in force, and that of an ID."""
    worker = server.value("SELECT (flake_decode(flake_next('twitter'))).worker")
    number, count = server.sql("SELECT node_id, node_count FROM flake_stats")[0]
    return number, count, worker * count // 1024


def as_server(*command):
    """As the user that servers run as."""
    return ["runuser", "-u", "postgres", "--", *command] if os.getuid() == 0 else list(command)


def test_from_the_name_of_the_host(own_servers):
    server = own_servers()
    server.stop()
    command, = numbered("bash")
    environment = {"HOSTNAME": "orders-3", "PGDATA": server.dir / "data", "PATH": f"{bindir()}:{os.environ['PATH']}"}
    with subprocess.Popen(as_server("sh", "-c", f"exec {command}"), env=environment, cwd="/", stderr=subprocess.DEVNULL):
        try:
            wait_for_server(server)
            assert node_of(server) == (3, 32, 3)
        finally:
            server.stop()


def test_from_a_file_that_some_servers_have(own_servers):
    setting, = numbered("conf")
    server = own_servers()
    place = server.base / "flake.conf"
    configuration = server.dir / "data" / "postgresql.conf"
    configuration.write_text(configuration.read_text() + setting.replace("/etc/postgresql/flake.conf", str(place)))
    server.restart()
    assert node_of(server) == (0, 32, 0)
    place.write_text("flake.node_id = 7\n")
    place.chmod(0o644)
    server.restart()
    assert node_of(server) == (7, 32, 7)
