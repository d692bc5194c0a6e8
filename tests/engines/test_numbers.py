"""Servers that get their numbers in the ways that docs/how-to/high-availability.md shows, with the configuration of the page."""

import contextlib
import functools
import os
import subprocess

import pytest

from clients import wait_for_server
from conftest import bindir
from engine import PAGE
from pages import recipe
from programs import user

numbered = functools.partial(recipe, PAGE, "A number for each server")


def read(yaml_text):
    return pytest.importorskip("yaml").safe_load(yaml_text)


def node_of(server):
    """Returns the number in force, and the number in an ID."""
    worker = server.value("SELECT (flake_decode(flake_next('twitter'))).worker")
    number, count = server.sql("SELECT node_id, node_count FROM flake_stat")[0]
    return number, count, worker * count // 1024


@contextlib.contextmanager
def started_by(server, *command, **environment):
    """Starts a stopped server by a command."""
    server.stop()
    environment |= {"PGDATA": server.dir / "data", "PATH": f"{server.base}:{bindir()}:{os.environ['PATH']}"}
    with subprocess.Popen(command, env=environment, cwd="/", stderr=subprocess.DEVNULL, **user()):
        try:
            wait_for_server(server)
            yield
        finally:
            server.stop()


def test_a_number_can_come_from_the_name_of_the_host(own_servers):
    server = own_servers()
    command, = numbered("bash")
    with started_by(server, "sh", "-c", f"exec {command}", HOSTNAME="orders-3"):
        assert node_of(server) == (3, 32, 3)


def test_a_number_can_come_from_a_stateful_set(own_servers):
    server = own_servers()
    manifest = read(*numbered("yaml"))
    container, = manifest["spec"]["template"]["spec"]["containers"]
    # The last command of the image's own program.
    entrypoint = server.base / "docker-entrypoint.sh"
    entrypoint.write_text('#!/bin/sh\nexec "$@"\n')
    entrypoint.chmod(0o755)
    with started_by(server, *container["command"], HOSTNAME=f"{manifest['metadata']['name']}-2"):
        assert node_of(server) == (2, 32, 2)


def test_all_instances_of_a_cluster_can_have_one_number(own_servers):
    manifest = read(*recipe(PAGE, "Kubernetes with CloudNativePG", "yaml"))
    parameters = manifest["spec"]["postgresql"]["parameters"]
    # The operator accepts texts only.
    assert all(isinstance(value, str) for value in parameters.values())
    settings = [f"{name}={value}" for name, value in parameters.items()]
    primary = own_servers(*settings)
    standby = own_servers(standby_of=primary)
    assert node_of(primary) == (3, 32, 3)
    standby.wait_for_replay(primary)
    primary.stop()
    standby.promote()
    assert node_of(standby) == (3, 32, 3)


def test_a_number_can_come_from_a_file_that_some_servers_have(own_servers):
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
