"""`make` on other machines: with any environment, in any directory, and while apt is in use."""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
import time

import pytest

from conftest import ROOT
from test_make import make

# They take long. `.ci/run` runs them on the oldest PostgreSQL.
pytestmark = pytest.mark.matrix  # all of make in other environments

HOSTILE = {
    "clients": {
        "PGPORT": "1", "PGHOST": "/nonexistent", "PGUSER": "nobody", "PGDATABASE": "nothing", "PGSERVICE": "none",
        "PGOPTIONS": "-c no.such=1 -c nonsense", "PGDATA": "/nonexistent", "PGTZ": "nowhere", "PGSSLMODE": "nonsense",
    },
    "language": {"LANG": "de_DE.UTF-8", "LC_ALL": "tr_TR.ISO-8859-9", "LANGUAGE": "de", "TZ": "Antarctica/Troll"},
    "backtraces": {"RUST_BACKTRACE": "full"},
    "cargo": {"CARGO_TARGET_DIR": "/nonexistent", "CARGO_BUILD_TARGET": "nonsense", "CDPATH": "/:/usr"},
    "no home": {"HOME": ""},
    "a home that is not there": {"HOME": "/nonexistent/home"},
    "the root as home": {"HOME": "/"},
}  # fmt: skip


@contextlib.contextmanager
def demo(cwd=ROOT, umask=-1, **environment):
    """Runs `make run`. Yields its output and where its server is; the server ends with the block."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="flake-test-") as base:
        os.chmod(base, 0o755)
        environment = os.environ | environment | {"FLAKE_DEMO": f"{base}/demo"}
        command = ["make", "--no-print-directory"]
        options = {"cwd": cwd, "env": environment, "stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        ran = subprocess.run([*command, "run"], check=False, umask=umask, **options)
        try:
            assert ran.returncode == 0, ran.stdout + ran.stderr
            yield ran.stdout, f"{base}/demo"
        finally:
            subprocess.run([*command, "stop"], check=False, **options)


@pytest.mark.parametrize("environment", HOSTILE.values(), ids=HOSTILE)
def test_make_runs_in_any_environment(environment):
    with demo(**environment) as (output, server):
        assert "Index Cond: ((id >= '" in output
        query = subprocess.run(
            ["psql", "-XAt", "-h", server, "-p", "5432", "-U", "postgres", "-d", "postgres", "-v", "VERBOSITY=verbose"],
            input="SELECT flake_timestamp(-1);", check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert "ERROR:  22003: ID -1 is not possible" in query.stderr and "backtrace" not in query.stderr.lower()


def test_make_runs_with_a_private_umask():
    with demo(umask=0o077) as (output, _):
        assert "Index Cond: ((id >= '" in output


@pytest.mark.skipif(os.environ.get("FLAKE_BUILT") == "yes", reason="the matrix builds nothing; .ci/run builds such a checkout")
def test_a_checkout_may_lie_in_a_path_with_a_space():
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="flake test ") as base:
        os.chmod(base, 0o755)
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
        for name in map(os.fsdecode, filter(None, files)):
            target = os.path.join(base, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(ROOT / name, target)
        # Other crates are compiled once and used again; flake itself is compiled again.
        profile = os.environ["FLAKE_PROFILE"]
        skip = shutil.ignore_patterns("incremental", "libflake*")
        shutil.copytree(ROOT / "target" / profile, f"{base}/target/{profile}", symlinks=True, ignore=skip)
        # The test is about where it is built, so optimization is off.
        plain = "".join(f"profile.{profile}.package.{name}.opt-level = 0\n" for name in ("flake", "flake-core"))
        with open(f"{base}/.cargo/config.toml", "a") as config:
            config.write(plain)
        with demo(cwd=base) as (output, _):
            assert "Index Cond: ((id >= '" in output
        assert os.path.exists(f"{base}/target/{profile}/libflake.so")
        # These read files of the checkout.
        sql = subprocess.run(["scripts/test", "regress", "sno", "vectors"], check=False, cwd=base, capture_output=True, text=True)
        assert "All 2 tests passed." in sql.stdout, sql.stdout


@pytest.mark.skipif(os.getuid() != 0 or not shutil.which("apt-get"), reason="installing takes root and apt-get")
@pytest.mark.parametrize("lock", ["/var/lib/dpkg/lock-frontend", "/var/lib/apt/lists/lock"])
def test_setup_waits_for_another_apt(lock):
    """The test installs a package that exists already, which takes the same locks."""
    sourced = f'. "{ROOT}/scripts/lib.sh"; . "{ROOT}/scripts/packages.sh"'
    script = f"{sourced}; lacks_package util-linux; install_packages; echo installed"
    with open(lock, "a") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        with subprocess.Popen(["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as setup:
            time.sleep(3)
            assert setup.poll() is None, setup.communicate()
            fcntl.lockf(held, fcntl.LOCK_UN)
            output, errors = setup.communicate(timeout=300)
    assert setup.returncode == 0 and output.endswith("installed\n"), output + errors


def without(*names, directory):
    """Returns a PATH with all programs except these."""
    for folder in reversed(os.environ["PATH"].split(":")):
        if os.path.isdir(folder):
            for name in os.listdir(folder):
                link = os.path.join(directory, name)
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(link)
                if name not in names:
                    os.symlink(os.path.join(folder, name), link)
    return str(directory)


def failing_make(target, tmp_path, *missing, **environment):
    environment = os.environ | {"PATH": without(*missing, directory=tmp_path)} | environment
    # The variable would find the PostgreSQL of the tests without the PATH.
    environment.pop("PG_CONFIG")
    ran = subprocess.run(["make", target], cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert ran.returncode != 0, ran.stdout
    return ran.stderr


def test_make_says_what_is_missing_and_installs_nothing(tmp_path):
    said = failing_make("all", tmp_path, "pg_config", "apt-get")
    assert "flake: missing: postgresql libpq-dev; install them with 'make setup'" in said
    assert "or: apt-get install postgresql libpq-dev" in said


def test_without_rust_the_command_is_said(tmp_path):
    said = failing_make("run", tmp_path, "cargo", "rustup", CARGO_HOME="/nonexistent")
    assert "flake: no Rust here; this command installs it: curl " in said


def test_the_toolchain_comes_by_itself(tmp_path):
    """rustup is installed, and the toolchain is not."""
    (tmp_path / "bin").mkdir()
    path = without("cargo", "rustup", directory=tmp_path / "bin")
    (tmp_path / "bin" / "cargo").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin" / "rustup").write_text(f'#!/bin/sh\necho "$@" >"{tmp_path}/asked"\n')
    for program in "cargo", "rustup":
        (tmp_path / "bin" / program).chmod(0o755)
    subprocess.run(["scripts/setup"], cwd=ROOT, env=os.environ | {"PATH": path}, check=True, capture_output=True)
    toolchain = next(line.split('"')[1] for line in (ROOT / "rust-toolchain.toml").open() if line.startswith("channel"))
    assert (tmp_path / "asked").read_text().startswith(f"toolchain install {toolchain} --profile minimal")


@pytest.fixture
def said_by_setup(tmp_path):
    """The output of scripts/setup with the pg_config of libpq-dev, and without these programs."""

    def said_by_setup(configure, *missing):
        (tmp_path / "bin").mkdir()
        path = without("pg_config", "apt-get", "sudo", *missing, directory=tmp_path / "bin")
        (tmp_path / "bin" / "apt-get").write_text("#!/bin/sh\n")
        answers = f'case $1 in --version) echo PostgreSQL 15.1 ;; --configure) echo "{configure}" ;; *) echo "{tmp_path}" ;; esac'
        (tmp_path / "bin" / "pg_config").write_text(f"#!/bin/sh\n{answers}\n")
        for program in "apt-get", "pg_config":
            (tmp_path / "bin" / program).chmod(0o755)
        environment = os.environ | {"PATH": path}
        environment.pop("PG_CONFIG")
        ran = subprocess.run(["scripts/setup"], cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
        return ran.stdout + ran.stderr

    return said_by_setup


def test_a_pg_config_without_a_server_gets_one(said_by_setup):
    """libpq-dev has only pg_config. A server is installed together with everything else that is missing."""
    assert "postgresql-server-dev-15 postgresql-15" in said_by_setup("'--with-openssl'")


@pytest.mark.parametrize("configure", ["'--with-icu' '--with-openssl'", "'--without-icu'"])
def test_a_postgresql_with_icu_gets_its_headers(said_by_setup, configure):
    """Its headers include ICU's, which no compiler finds here."""
    assert ("libicu-dev" in said_by_setup(configure, "cc")) is ("--with-icu" in configure)


def test_a_build_that_fails_installs_nothing(tmp_path):
    """An earlier library does not come beside the scripts of this version."""
    (tmp_path / "cargo").write_text(f'#!/bin/sh\n[ "$1" != build ] || exit 101\nexec "{shutil.which("cargo")}" "$@"\n')
    (tmp_path / "cargo").chmod(0o755)
    changed = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "FLAKE_STAGE": str(tmp_path / "stage"), "FLAKE_BUILT": ""}
    ran = subprocess.run(["scripts/build"], cwd=ROOT, env=os.environ | changed, check=False, capture_output=True, text=True)
    assert ran.returncode != 0 and "flake: the build failed" in ran.stderr
    assert not (tmp_path / "stage").exists()


def soak(tmp_path, *names, cargo):
    """Runs the soak where nothing can be installed or built, and returns what it has printed of the parts, with the program."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "scripts/setup").write_text("#!/bin/sh\n")
    (tmp_path / "cargo").write_text(f"#!/bin/sh\nexit {cargo}\n")
    (tmp_path / "cargo").chmod(0o755)
    changed = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "FLAKE_BUILT": ""}
    command = [tmp_path / "scripts/test", "soak", *names]
    ran = subprocess.run(command, env=os.environ | changed, check=False, capture_output=True, text=True)
    return re.findall("^==> Soak: (.*?)(?: after [0-9]+ s)?$", ran.stdout, re.M), ran


def test_the_soak_continues_after_a_part_that_fails_and_fails_at_the_end(tmp_path):
    parts, ran = soak(tmp_path, cargo=101)
    names = parts[::2]
    assert parts[1::2] == [f"{name}: FAILED" for name in names], ran.stdout
    assert names[0] == "simulator" and names[-1] == "engines"
    assert ran.returncode != 0 and ran.stderr.endswith(f"flake: failed: {', '.join(names)}\n"), ran.stderr


def test_the_soak_runs_the_parts_that_are_named(tmp_path):
    parts, ran = soak(tmp_path / "named", "nodes", "fuzz", cargo=0)
    assert parts == ["nodes", "nodes: passed", "fuzz", "fuzz: passed"] and ran.returncode == 0, ran.stderr
    parts, ran = soak(tmp_path / "unknown", "nodes", "nothing", cargo=0)
    assert ran.returncode != 0 and "not all of these are parts of the soak: nodes nothing" in ran.stderr


def test_a_step_that_takes_long_says_every_ten_seconds_that_it_continues(tmp_path):
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    (tmp_path / "scripts/setup").write_text("#!/bin/sh\nsleep 12\n")
    (tmp_path / "scripts/build").write_text("#!/bin/sh\nexit 1\n")
    ran = subprocess.run([tmp_path / "scripts/run"], check=False, capture_output=True, text=True)
    assert ran.returncode != 0
    assert re.fullmatch("==> Installing continues, after 1[0-2] seconds\n", ran.stdout.split("\n", 1)[1])


def test_help_names_every_target():
    targets = {line.split()[1] for line in make("help").splitlines()}
    assert targets >= {"all", "setup", "install", "run", "test", "test-matrix", "bench", "lint"}
    phony = next(line for line in (ROOT / "Makefile").open() if line.startswith(".PHONY:"))
    assert targets == set(phony.split()[1:])
