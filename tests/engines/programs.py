"""Runs engines' programs as the user of servers, and PostgreSQL's programs with the extension and a clock of their own."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys

from conftest import ROOT, bindir, pg_config

REAPER = pathlib.Path(__file__).with_name("reaper.py")
# Servers get the library, addresses that only this machine can reach, and a clock of their own. The clock is right at the start
# of a server, because Patroni compares it with its own then.
POSTGRES = """#!/bin/sh
set_clock() {{ echo +0 >"$FLAKE_CLOCK.new" && mv "$FLAKE_CLOCK.new" "$FLAKE_CLOCK"; }}
stage="-c extension_destdir={stage} -c dynamic_library_path={stage}{libraries}:{libraries}"
export LD_PRELOAD={faketime} FAKETIME_TIMESTAMP_FILE="$FLAKE_CLOCK" FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1
case $1 in
--single) shift && exec {postgres} --single $stage "$@" ;;
-D) set_clock && exec {postgres} $stage "$@" -c listen_addresses=127.0.0.1 -c unix_socket_directories="$FLAKE_SOCKETS" ;;
*) exec {postgres} "$@" ;;
esac
"""


def user():
    """The user that servers run as: the current user, or postgres."""
    return {"user": "postgres", "group": "postgres", "extra_groups": []} if os.getuid() == 0 else {}


def give(path):
    """Changes the owner of a file to that user."""
    if os.getuid() == 0:
        shutil.chown(path, "postgres", "postgres")


def install(directory):
    """Installs PostgreSQL's programs where servers find the extension."""
    stage, programs = directory / "stage", directory / "bin"
    quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    subprocess.run([ROOT / "scripts" / "install"], check=True, env=os.environ | {"DESTDIR": str(stage)}, **quiet)
    programs.mkdir()
    for program in bindir().iterdir():
        if program.is_file() and program.name not in ("postgres", "postmaster"):
            shutil.copy(program, programs)
    postgres = programs / "postgres"
    faketime, libraries = os.environ["FAKETIME_LIBRARY"], pg_config("--pkglibdir")
    postgres.write_text(POSTGRES.format(stage=stage, libraries=libraries, faketime=faketime, postgres=bindir() / "postgres"))
    postgres.chmod(0o755)
    return programs


def free_ports(count):
    """Returns ports below the range that the system gives to clients."""
    with contextlib.ExitStack() as taken:
        ports = []
        while len(ports) < count:
            one = taken.enter_context(socket.socket())
            with contextlib.suppress(OSError):
                one.bind(("127.0.0.1", random.randrange(10000, 32000)))
                ports.append(one.getsockname()[1])
        return ports


class Failed(Exception):
    """A program has failed; its output is the message."""


class Program:
    """A program that runs in the background, and all that it starts."""

    def __init__(self, log, *command, environment):
        self.log = log
        command = [sys.executable, REAPER, *map(str, command)]
        with log.open("a") as output:
            self.reaper = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=output, env=environment, cwd="/", text=True,
                start_new_session=True, **user(),
            )  # fmt: skip
        self.pid = int(self.reaper.stdout.readline())

    def processes(self):
        """Returns all living processes of the program, parents first."""
        found = [self.reaper.pid]
        for pid in found:
            found += children(pid)
        return found[1:]

    def end(self):
        """Kills the program and everything that it has started."""
        while processes := self.processes():
            send(processes, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.reaper.wait(0.05)
        self.reaper.wait()
        self.reaper.stdout.close()


def children(pid):
    with contextlib.suppress(OSError):
        threads = pathlib.Path(f"/proc/{pid}/task").iterdir()
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    return []


def send(processes, number):
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def run(*command, environment):
    """Runs a program until it ends."""
    output = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run([*map(str, command)], check=False, env=environment, cwd="/", **output, **user())
    if done.returncode:
        raise Failed(f"{command}: {done.stdout}")
    return done.stdout
