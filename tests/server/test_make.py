"""The commands that people type."""

import os
import subprocess
import tempfile

from conftest import ROOT
from next_release import VERSION


def make(*arguments, **environment):
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True
    ).stdout


def test_run_again_and_stop():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="flake-test-") as base:
        os.chmod(base, 0o755)
        demo = os.path.join(base, "demo")
        for _ in range(2):
            output = make("run", FLAKE_DEMO=demo)
            assert "CREATE EXTENSION flake;" in output
            assert "Index Cond: ((id >= '" in output
            assert f"psql -h {demo} -U postgres" in output
        psql = output.split("Look around with:\n")[1].splitlines()[0].split()
        shown = subprocess.run([*psql, "-Atc", "SELECT count(*) FROM orders"], check=True, capture_output=True, text=True)
        assert shown.stdout == "100003\n"
        make("stop", FLAKE_DEMO=demo)
        assert not os.path.exists(demo)


def test_install_and_uninstall(tmp_path):
    make("install", f"DESTDIR={tmp_path}")
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == [f"flake--{VERSION}.sql", "flake.control", "flake.so"]
    make("uninstall", f"DESTDIR={tmp_path}")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_installcheck_on_a_running_server(server):
    named = {key: value for key, value in server.client_environment.items() if key.startswith("PG")}
    output = make("installcheck", **named)
    tests = len(list((ROOT / "tests/regress/sql").glob("*.sql")))
    assert f"All {tests} tests passed." in output, output


def test_a_pg_config_that_is_not_there_is_said():
    command = ["make", "install", "PG_CONFIG=/nowhere/pg_config"]
    wrong = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert wrong.returncode != 0
    assert "flake: PG_CONFIG=/nowhere/pg_config is not a program" in wrong.stderr
