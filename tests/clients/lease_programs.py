"""The programs of tests/clients/lease, which use examples/lease, and a server that leases to them."""

import os
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from database import CLIENTS

EXAMPLES, PROGRAMS = ROOT / "examples/lease", ROOT / "tests/clients/lease"
# The most nanoseconds for an ID. The best of many runs counts, because test machines are busy.
LANGUAGES = {"python": 1000, "typescript": 1000, "java": 150, "go": 60, "rust": 60}


def lacks(language):
    """Returns the reason why a language cannot be used here, if there is one."""
    programs = {"typescript": CLIENTS / "node_modules/typescript/bin/tsc", "java": "javac", "go": "go", "rust": "rustc"}
    return None if shutil.which(programs.get(language, sys.executable)) else f"{language} is not there"


class Programs:
    """Builds the program of each language once."""

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

    def python(self):
        return "env", f"PYTHONPATH={EXAMPLES}", "PYTHONDONTWRITEBYTECODE=1", sys.executable, PROGRAMS / "main.py"

    def typescript(self):
        files = EXAMPLES / "lease.ts", EXAMPLES / "use_lease.ts", PROGRAMS / "main.ts"
        at = self.copied("typescript", *((file, file.name) for file in files))
        (at / "package.json").write_text('{"type": "module"}')
        (at / "node_modules").symlink_to(CLIENTS / "node_modules")
        options = ("--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext")
        self.build("node", "node_modules/typescript/bin/tsc", *options, "main.ts", "use_lease.ts", cwd=at)
        return "node", at / "main.js"

    def java(self):
        at = self.directory / "java"
        self.build("javac", "-Xlint:all", "-Werror", "-d", at, EXAMPLES / "Lease.java", PROGRAMS / "Main.java")
        return "java", "-Xmx64m", "-cp", at, "Main"

    def go(self):
        at = self.copied("go", (EXAMPLES / "lease.go", "lease/lease.go"), (PROGRAMS / "main.go", "main.go"))
        (at / "go.mod").write_text("module lease\n\ngo 1.18\n")
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
