"""The lease clients in examples/lease: they compute tests/vectors/lease.csv, make an ID quickly, and serve an application. The
file test_lessees.py has the faults of clients and servers."""

import os
import re
import shutil
import subprocess
import sys
import time

import pytest

from conftest import ROOT
from database import Database
from lease_programs import EXAMPLES, LANGUAGES, Programs, leasing_server
from loopback import port_of
from waiting import wait_until

sys.path.insert(0, str(ROOT / "tests/clients/lease"))

import vectors

VECTORS = (ROOT / "tests/vectors/lease.csv").read_text()


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return Programs(tmp_path_factory.mktemp("lease"))


@pytest.fixture
def pool(own_servers):
    return leasing_server(own_servers)


def test_the_vectors_follow_from_the_definitions():
    assert VECTORS.splitlines() == list(vectors.lines())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_computes_the_vectors(programs, language):
    done = subprocess.run([*programs[language], "vectors"], input=VECTORS, capture_output=True, text=True, check=True)
    assert done.stdout == VECTORS


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_id_takes_no_longer_than_its_limit(programs, language):
    done = subprocess.run([*programs[language], "time"], capture_output=True, text=True, check=True)
    print(language, done.stdout)
    # Right after a compiler has started, or on another processor, an ID may take several times as long.
    assert 0 < int(done.stdout) < 10 * LANGUAGES[language]


def test_a_clock_is_set_while_a_renewal_is_on_its_way(monkeypatch):
    """The new window would begin where the one that was given up ends."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import lease

    wall, ahead, asked = lease.wall, 0, []
    monkeypatch.setattr(lease, "wall", lambda: wall() + ahead)

    def of_server(layout, worker, until):
        nonlocal ahead
        now = wall()
        start = until or now
        if worker:
            ahead = 3600 * lease.SECOND
            time.sleep(0.5)  # next() notices meanwhile
        asked.append(worker)
        return lease.Row(len(asked), start // 1000, start // 1000 + 60_000, 22, 0, 4096, 0, 1000, now, start + 60_000_000, 0)

    ids, deadline = lease.Ids("twitter", of_server, patience=3), time.monotonic() + 60
    while 1 not in asked or len(asked) < 3:
        ids.next()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert asked[:3] == [None, 1, None]


# The first answer is a lease of 0.6 seconds, the second one an error.
PSQL = """#!/bin/sh
echo $* >>"${0%/*}/asked"
if [ "$(wc -l <"${0%/*}/asked")" = 2 ]; then echo lost >&2; exit 1; fi
now=$(($(date +%s%N) / 1000))
echo "7|$((now / 1000))|$((now / 1000 + 600))|22|28672|4096|0|1000|$now|$((now + 600000))|0"
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_asks_for_a_new_lease_after_an_error(programs, language, tmp_path):
    """The renewal that it asked for may have been granted, and is granted once."""
    psql, asked = tmp_path / "psql", tmp_path / "asked"
    psql.write_text(PSQL)
    psql.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OUTPUT": str(tmp_path / "output")}
    options = {"env": environment, "stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    with subprocess.Popen([*programs[language], "load"], **options) as client:
        try:
            wait_until(lambda: asked.exists() and asked.read_text().count("flake_lease") > 2)
        finally:
            client.kill()
    arguments = re.findall(r"flake_lease\('twitter', (\w+), (\w+)\)", asked.read_text(), re.I)
    assert [worker.upper() for worker, _ in arguments[:3]] == ["NULL", "7", "NULL"]


def use_go(database, directory):
    """Uses Debian's Go packages, which are not modules."""
    source = directory / "src/lease"
    source.mkdir(parents=True)
    shutil.copy(EXAMPLES / "lease.go", source)
    environment = {"GO111MODULE": "off", "GOPATH": f"{directory}:/usr/share/gocode", "GOCACHE": str(ROOT / "target/clients/go")}
    return database.run("go", "run", str(EXAMPLES / "use_lease.go"), directory=directory, **environment)


def use_java(database, directory):
    path = f"/usr/share/java/postgresql.jar:{directory}"
    database.run("javac", "-cp", path, "-d", str(directory), *map(str, EXAMPLES.glob("*.java")), directory=EXAMPLES)
    with port_of(database.server) as port:
        url = f"jdbc:postgresql://127.0.0.1:{port}/{database.name}?user=postgres"
        return database.run("java", "-cp", path, "UseLease", directory=directory, JDBC_URL=url)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_application_inserts_a_row_with_its_id(pool, programs, tmp_path, language):
    database = Database(pool, tmp_path)
    database.sql("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)")
    if language == "python":
        printed = database.python("lease", "use_lease.py")
    elif language == "rust":
        printed = database.rust("use_lease")
    elif language == "typescript":
        printed = database.run(*programs[language][:-1], str(programs.directory / "typescript/use_lease.js"), directory=tmp_path)
    elif "FLAKE_DEBIAN_CLIENTS" not in os.environ:
        pytest.skip("FLAKE_DEBIAN_CLIENTS is not set")
    else:
        printed = {"go": use_go, "java": use_java}[language](database, tmp_path)
    made = int(printed)
    assert database.sql("SELECT id, item FROM orders") == [(made, "tea")]
    (worker, at), = database.sql("SELECT worker, now() - flake_timestamp(%s) < '1 minute' FROM flake_decode(%s)", made, made)
    assert 640 <= worker < 768 and at
