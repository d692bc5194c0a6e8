"""The programs of tests/clients/buffer, which use the packages of the clients as they are published, and the files of clients/go
and clients/rust."""

import fcntl
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import zipfile
from urllib.parse import quote

import pytest

import loopback
from conftest import ROOT
from database import CLIENTS
from database import EXAMPLES as ALL_EXAMPLES

PACKAGES, PROGRAMS = ROOT / "clients", ROOT / "tests/clients/buffer"
RUST = ROOT / "target/clients/debug"  # scripts/test has built it
GO = pathlib.Path("/usr/share/gocode/src")  # Debian's packages are not modules
JDBC = pathlib.Path("/usr/share/java/postgresql.jar")
EXAMPLES = ALL_EXAMPLES / "ids"
# The most nanoseconds for an ID. The best of many runs counts, because test machines are busy.
LANGUAGES = {"python": 1000, "asyncio": 1000, "typescript": 300, "rust": 60, "go": 60, "java": 60}


def lacks(language):
    """Returns the reason why a language cannot be used here, if there is one."""
    typescript, python = CLIENTS / "node_modules/typescript/bin/tsc", CLIENTS / "python/flit_core"
    needed = {
        "python": python, "asyncio": python, "typescript": typescript, "rust": RUST / "buffer",
        "go": GO / "github.com/jackc/pgx/v4", "java": JDBC,
    }[language]  # fmt: skip
    # Debian has the driver without a compiler.
    found = needed.exists() and (language != "java" or shutil.which("javac"))
    return None if found else f"{needed} or its compiler is not there"


def package(language, pattern, directory):
    """Builds a package, and returns its archive."""
    environment = os.environ | {"FLAKE_CLIENTS_DIST": str(directory)}
    subprocess.run([ROOT / "scripts/clients", language], check=True, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    (archive,) = directory.glob(pattern)
    return archive


class Programs:
    """Builds the program of each language once, with the package in a place of its own, for all workers that run the tests."""

    def __init__(self, factory):
        base = factory.getbasetemp()
        self.directory = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "programs"
        self.directory.mkdir(exist_ok=True)

    def __getitem__(self, language):
        if reason := lacks(language):
            pytest.skip(reason)
        return self.once(language, lambda: list(map(str, getattr(self, language)())))

    def once(self, name, build):
        """Returns what `build` has returned to whichever worker came first."""
        built = self.directory / f"{name}.json"
        with (self.directory / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not built.exists():
                built.write_text(json.dumps(build()))
        return json.loads(built.read_text())

    def build(self, *command, cwd=ROOT, **environment):
        subprocess.run(list(map(str, command)), check=True, cwd=cwd, env=os.environ | environment)

    def copied(self, name, *files):
        """Copies files into a directory of their own."""
        for file, place in files:
            target = self.directory / name / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
        return self.directory / name

    @property
    def python_path(self):
        return self.once("python_package", self.python_package)

    def python_package(self):
        at = self.directory / "python"
        zipfile.ZipFile(package("python", "*.whl", self.directory / "dist")).extractall(at)
        return f"{at}:{CLIENTS / 'python'}"

    def python(self):
        return "env", f"PYTHONPATH={self.python_path}", "PYTHONDONTWRITEBYTECODE=1", sys.executable, PROGRAMS / "main.py"

    def asyncio(self):
        return "env", "AIO=yes", *self.python()

    @property
    def node_directory(self):
        """Returns a directory whose programs find the package and the other clients."""
        return pathlib.Path(self.once("typescript_package", self.typescript_package))

    def typescript_package(self):
        at = self.directory / "typescript"
        modules = at / "node_modules"
        modules.mkdir(parents=True)
        for module in (CLIENTS / "node_modules").iterdir():
            (modules / module.name).symlink_to(module)
        with tarfile.open(package("typescript", "*.tgz", self.directory / "dist")) as archive:
            archive.extractall(at)
        (at / "package").rename(modules / "flake-ids")
        (at / "package.json").write_text('{"type": "module"}')
        return str(at)

    def typescript(self):
        at = self.node_directory
        for file in PROGRAMS / "main.ts", EXAMPLES / "use_ids.ts":
            (at / "src").mkdir(exist_ok=True)
            shutil.copy(file, at / "src")
        options = ("--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "--target", "es2022", "--module", "nodenext")
        self.build("node", "node_modules/typescript/bin/tsc", *options, "src/main.ts", "src/use_ids.ts", cwd=at)
        return "node", at / "src/main.js"

    def rust(self):
        return (RUST / "buffer",)

    def go(self):
        files = [(file, f"src/flakeids/{file.name}") for file in (PACKAGES / "go").iterdir()]
        at = self.copied("go", *files, (PROGRAMS / "main.go", "main.go"), (EXAMPLES / "use_ids.go", "use_ids.go"))
        places = {"GO111MODULE": "off", "GOPATH": f"{at}:{GO.parent}", "GOCACHE": str(ROOT / "target/clients/go")}
        self.build("go", "vet", "flakeids", cwd=at, **places)
        for name in "main", "use_ids":
            self.build("go", "build", "-o", name, f"{name}.go", cwd=at, **places)
        return (at / "main",)

    def java(self):
        archive = package("java", "flake-ids-*[0-9].jar", self.directory / "dist")
        at = self.copied("java", (archive, "flake-ids.jar"))
        path = f"{at / 'flake-ids.jar'}:{JDBC}:{at}"
        self.build("javac", "-Xlint:all", "-Werror", "-cp", path, "-d", at, PROGRAMS / "Main.java", EXAMPLES / "UseIds.java")
        return "java", "-Xmx256m", "-cp", path, "flakeids.Main"

    def application(self, language, database, directory):
        """Runs the program of examples/ids, and returns its output."""
        return getattr(self, f"{language}_application")(self[language], database, directory)

    def python_application(self, command, database, directory):
        return database.run(*command[:4], str(EXAMPLES / "use_ids.py"), directory=directory)

    def go_application(self, command, database, directory):
        return database.run(command[0].replace("main", "use_ids"), directory=directory)

    def java_application(self, command, database, directory):
        with loopback.port_of(database.server) as port:
            url = f"jdbc:postgresql://127.0.0.1:{port}/{database.name}?user=postgres"
            return database.run(*command[:-1], "UseIds", directory=directory, JDBC_URL=url)

    def rust_application(self, command, database, directory):
        return database.rust("use_ids")

    def typescript_application(self, command, database, directory):
        return database.run("node", command[1].replace("main.js", "use_ids.js"), directory=directory)


class Talk:
    """A program that does what it is told, and prints what came of it."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(
            [*command, "talk"], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def tell(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def hear(self):
        """Returns the lines until it has done what it was told. An ID is a number, with the time before it was asked for if there
        is one."""
        lines = []
        while (line := self.process.stdout.readline()) != "done\n":
            assert line, f"the program has ended after {lines}"
            words = line.split()
            values = words if words[0] == "error" else [int(word) if word.lstrip("-").isdigit() else word for word in words]
            lines.append(values[0] if len(values) == 1 else tuple(values))
        return lines

    def __call__(self, *words):
        self.tell(*words)
        return self.hear()

    def next(self, count=1, pause=0):
        """Returns IDs without their times, and errors."""
        return [line[0] if isinstance(line[0], int) else line for line in self("next", count, pause)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class Talking:
    """Starts programs that talk to a server, a wire or a pool, and ends them with a test."""

    def __init__(self, programs, language, ends):
        self.programs, self.language, self.ends = programs, language, ends

    def environment(self, database, **changed):
        """libpq's variables, and URLs for drivers that do not read them. JDBC has no Unix sockets."""
        # A program may take seconds to start on a busy machine.
        environment = database.environment | {"PGGSSENCMODE": "disable", "PGSSLMODE": "disable", "PATIENCE": "60"} | changed
        host, port, user, name = (environment[f"PG{one}"] for one in ("HOST", "PORT", "USER", "DATABASE"))
        environment["DATABASE_URL"] = f"postgres://{user}@{quote(host, safe='')}:{port}/{name}"
        if self.language == "java" and host != "127.0.0.1":
            listener = self.ends.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=loopback.accept, args=(listener, f"{host}/.s.PGSQL.{port}"), daemon=True).start()
            port = listener.getsockname()[1]
        environment["JDBC_URL"] = f"jdbc:postgresql://127.0.0.1:{port}/{name}?user={user}"
        return environment

    def to(self, database, **changed):
        return self.ends.enter_context(Talk(self.programs[self.language], self.environment(database, **changed)))

    def run(self, database, command):
        """Runs a program to its end, and returns its output."""
        command = [*self.programs[self.language], command]
        return subprocess.run(command, env=self.environment(database), stdout=subprocess.PIPE, text=True, check=True).stdout
