"""The make targets and scripts that people run."""

import os
import shutil
import subprocess
import tempfile

import pytest

from conftest import ROOT
from next_release import VERSION


def make(*arguments, **environment):
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True
    ).stdout


@pytest.mark.matrix
def test_run_can_be_repeated_and_stopped():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="flake-test-") as base:
        os.chmod(base, 0o755)
        demo = os.path.join(base, "demo")
        for _ in range(2):
            output = make("run", FLAKE_DEMO=demo)
            # The first line says how long it takes.
            assert "minutes the first time" in output.splitlines()[0]
            assert "CREATE EXTENSION flake;" in output
            assert "Index Cond: ((id >= '" in output
            assert f"psql -h {demo} -U postgres" in output
        psql = output.split("Look around with:\n")[1].splitlines()[0].split()
        shown = subprocess.run([*psql, "-Atc", "SELECT count(*) FROM orders"], check=True, capture_output=True, text=True)
        assert shown.stdout == "100003\n"
        make("stop", FLAKE_DEMO=demo)
        assert not os.path.exists(demo)


def test_uninstall_removes_what_install_has_installed(tmp_path):
    make("install", f"DESTDIR={tmp_path}")
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    made = [f"flake--{VERSION}.sql", f"flake_sequences--{VERSION}.sql"]
    scripts = {*made, *(path.name for path in (ROOT / "sql").glob("flake*--*.sql"))}
    assert files == sorted({*scripts, "flake.control", "flake_sequences.control", "flake.so"})
    make("uninstall", f"DESTDIR={tmp_path}")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.matrix
def test_installcheck_runs_on_a_running_server(server):
    named = {key: value for key, value in server.client_environment.items() if key.startswith("PG")}
    output = make("installcheck", **named)
    tests = len(list((ROOT / "tests/regress/sql").glob("*.sql")))
    assert f"All {tests} tests passed." in output, output


@pytest.mark.matrix
def test_new_errors_are_accepted_only_where_that_is_said(server, tmp_path):
    """A forgotten function prints an error, which must not become expected output."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name, text in {
        "sql/meant.sql": "SELECT 1 AS one;\nSELECT 1/0;\n",
        "expected/meant.out": "SELECT 1 AS one;\nSELECT 1/0;\nERROR:  division by zero\n",
        "sql/forgotten.sql": "SELECT flake_forgotten(1);\n",
        "expected/forgotten.out": "",
    }.items():
        (tmp_path / "tests/regress" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tests/regress" / name).write_text(text)
    (tmp_path / "target").mkdir()
    expected = {name: tmp_path / f"tests/regress/expected/{name}.out" for name in ["meant", "forgotten"]}

    def accept(what, *tests):
        environment = server.client_environment | {"FLAKE_ACCEPT": what}
        command = [tmp_path / "scripts/test", "installcheck", *tests]
        return subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)

    refused = accept("output", "meant", "forgotten")
    assert refused.returncode != 0
    assert "scripts/test accept --errors\nforgotten: ERROR:  function flake_forgotten(integer) does not exist\n" in refused.stderr
    assert expected["forgotten"].read_text() == "" and "(1 row)" not in expected["meant"].read_text()
    # Errors that were expected before are accepted.
    assert accept("output", "meant").returncode == 0
    assert "(1 row)" in expected["meant"].read_text() and expected["forgotten"].read_text() == ""
    assert accept("errors", "forgotten").returncode == 0
    assert "ERROR:  function flake_forgotten(integer) does not exist" in expected["forgotten"].read_text()


def test_a_pg_config_that_is_not_there_is_said():
    command = ["make", "install", "PG_CONFIG=/nowhere/pg_config"]
    wrong = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert wrong.returncode != 0
    assert "flake: PG_CONFIG=/nowhere/pg_config is not a program" in wrong.stderr
