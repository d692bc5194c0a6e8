"""The programs of tests/clients/lease, which use the packages of the clients as they are published, and the files of clients/go
and clients/rust. A server that leases to them."""

import os
import shutil
import subprocess

import pytest

from conftest import ROOT

PACKAGES, PROGRAMS = ROOT / "clients", ROOT / "tests/clients/lease"
# The most nanoseconds for an ID. The best of many runs counts, because test machines are busy.
LANGUAGES = {"java": 150, "go": 60, "rust": 200}


def lacks(language):
    """Returns the reason why a language cannot be used here, if there is one."""
    needed = {"java": "javac", "go": "go", "rust": "rustc"}[language]
    return None if shutil.which(needed) else f"{needed} is not there"


def package(language, pattern, directory):
    """Builds a package, and returns its archive."""
    environment = os.environ | {"FLAKE_CLIENTS_DIST": str(directory)}
    subprocess.run([ROOT / "scripts/clients", language], check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    (archive,) = directory.glob(pattern)
    return archive


class Programs:
    """Builds the program of each language once, with the package in a place of its own."""

    def __init__(self, directory):
        self.directory, self.commands = directory, {}

    def __getitem__(self, language):
        if reason := lacks(language):
            pytest.skip(reason)
        if language not in self.commands:
            self.commands[language] = list(map(str, getattr(self, language)()))
        return self.commands[language]

    def build(self, *command, cwd=ROOT):
        environment = os.environ | {"GOCACHE": str(ROOT / "target/clients/go"), "GOFLAGS": "-mod=mod"}
        subprocess.run(list(map(str, command)), check=True, cwd=cwd, env=environment)

    def copied(self, name, *files):
        """Copies files into a directory of their own."""
        for file, place in files:
            target = self.directory / name / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        return self.directory / name

    @property
    def java_path(self):
        if not hasattr(self, "jar"):
            archive = package("java", "pgflake-*[0-9].jar", self.directory / "dist")
            self.jar = shutil.copy(archive, self.copied("java", (archive, "pgflake.jar")) / "pgflake.jar")
        return f"{self.jar}:{self.directory / 'java'}"

    def java(self):
        path = self.java_path
        self.build("javac", "-Xlint:all", "-Werror", "-cp", path, "-d", self.directory / "java", PROGRAMS / "Main.java")
        return "java", "-Xmx64m", "-cp", path, "pgflake.Main"

    def go(self):
        files = [(file, f"pgflake/{file.name}") for file in (PACKAGES / "go").iterdir()]
        at = self.copied("go", *files, (PROGRAMS / "main.go", "main.go"))
        (at / "go.mod").write_text("module lease\n\ngo 1.18\n")
        self.build("go", "vet", "./pgflake", cwd=at)
        self.build("go", "build", "-o", "program", ".", cwd=at)
        return (at / "program",)

    def rust(self):
        program = self.directory / "rust"
        self.build("rustc", "--edition", "2024", "-O", "-D", "warnings", "-o", program, PROGRAMS / "main.rs")
        return (program,)


def leasing_server(make, *settings, nodes=1):
    """A server that started long enough ago to grant leases, and has granted some."""
    server = make(f"flake.node_count={nodes}", "max_connections=100", *settings, clock="+0", steady=True)
    for seconds in 0, 65, 3:
        server.let_pass(seconds)
        server.sql("SELECT flake_lease('twitter')")
    return server
