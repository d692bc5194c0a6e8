"""The clients of leases: they compute tests/vectors/lease.csv and seal.csv, make an ID quickly, and serve an application. The
file test_lessees.py has the faults of clients and servers."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT
from database import Database
from lease_programs import LANGUAGES, PACKAGES, Programs, leasing_server
from loopback import port_of
from waiting import wait_until

sys.path.insert(0, str(ROOT / "tests/clients/lease"))

import vectors

EXAMPLES = ROOT / "examples/lease"
VECTORS = (ROOT / "tests/vectors/lease.csv").read_text()
SEALED = (ROOT / "tests/vectors/seal.csv").read_text().partition("\n")[2]


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


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "rust"])
def test_a_key_seals_and_opens_the_vectors(programs, language):
    done = subprocess.run([*programs[language], "seal"], input=SEALED, capture_output=True, text=True, check=True)
    assert done.stdout == SEALED


# The first answer is a lease of 0.6 seconds, the second one an error, and the third one says that the token was used.
PSQL = """#!/bin/sh
echo $* >>"${0%/*}/asked"
now=$(($(date +%s%N) / 1000))
case $(wc -l <"${0%/*}/asked") in
2) echo unreachable >&2; exit 1 ;;
3) echo "lost|0|||||||||||$now|" ;;
*) echo "|0|77|7|$((now / 1000))|$((now / 1000 + 600))|22|28672|0|4096|0|1000|$now|$((now + 600000))" ;;
esac
"""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_asks_again_with_its_token_after_an_error(programs, language, tmp_path):
    """The server knows whether it was used."""
    psql, asked = tmp_path / "psql", tmp_path / "asked"
    psql.write_text(PSQL)
    psql.chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OUTPUT": str(tmp_path / "output")}
    options = {"env": environment, "stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL}
    with subprocess.Popen([*programs[language], "load"], **options) as client:
        try:
            wait_until(lambda: asked.exists() and asked.read_text().count("flake_lease") > 3)
        finally:
            client.kill()
    tokens = re.findall(r"flake_lease\('twitter', (?:nullif\()?(\w+)", asked.read_text(), re.I)
    assert ["0" if token.upper() == "NULL" else token for token in tokens[:4]] == ["0", "77", "77", "0"]


def use_go(database, directory):
    """Uses Debian's Go packages, which are not modules."""
    shutil.copytree(PACKAGES / "go", directory / "src/pgflake")
    environment = {"GO111MODULE": "off", "GOPATH": f"{directory}:/usr/share/gocode", "GOCACHE": str(ROOT / "target/clients/go")}
    return database.run("go", "run", str(EXAMPLES / "use_lease.go"), directory=directory, **environment)


def use_java(database, directory, jar):
    path = f"/usr/share/java/postgresql.jar:{jar}:{directory}"
    database.run("javac", "-cp", path, "-d", str(directory), str(EXAMPLES / "UseLease.java"), directory=EXAMPLES)
    with port_of(database.server) as port:
        url = f"jdbc:postgresql://127.0.0.1:{port}/{database.name}?user=postgres"
        return database.run("java", "-cp", path, "UseLease", directory=directory, JDBC_URL=url)


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_application_inserts_a_row_with_its_id(pool, programs, tmp_path, language):
    database = Database(pool, tmp_path)
    database.sql("CREATE TABLE orders (id bigint PRIMARY KEY DEFAULT flake_next('twitter'), item text)")
    if language == "rust":
        printed = database.rust("use_lease")
    elif "FLAKE_DEBIAN_CLIENTS" not in os.environ:
        pytest.skip("FLAKE_DEBIAN_CLIENTS is not set")
    elif language == "java":
        printed = use_java(database, tmp_path, programs.java_path)
    else:
        printed = use_go(database, tmp_path)
    made = int(printed)
    assert database.sql("SELECT id, item FROM orders") == [(made, "tea")]
    (worker, at), = database.sql("SELECT worker, now() - flake_timestamp(%s) < '1 minute' FROM flake_decode(%s)", made, made)
    assert 640 <= worker < 768 and at
