#!/usr/bin/env python3
"""Puts one slip after another into a copy of the tree, and runs the tests that must notice it.

`mutants.py [NAME…]` runs all slips of tests/mutants/*.toml, or the slips and files that are named. It prints which
test noticed a slip and how long that took. It fails if a named test does not notice, if a slip does not compile, or
if a test fails without a slip. `scripts/test mutants` says where PostgreSQL is. `mutants.py --check` builds nothing,
and checks that each slip's text and tests exist.
"""

import contextlib
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
COPY = ROOT / "target" / "mutants" / "tree"
# On a busy machine, a server can be too slow for the danger to arise.
ATTEMPTS_IN_SERVERS = 3
# Seconds after which a test counts as hanging.
PATIENCE = 300
# It suffices that a test with many cases fails, so its smallest failing case is not looked for. The simulator's budget is
# fixed.
OF_CORE = {
    "PROPTEST_MAX_SHRINK_ITERS": "0",
    "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1",
    "FLAKE_MODEL_CASES": "20000",
    "FLAKE_MODEL_SEED": "0",
    "FLAKE_MODEL_SHRINK": "0",
}


class DoesNotCompileError(Exception):
    """The end of the compiler's output."""


@functools.cache
def tables():
    """The text of each file of slips, by its path."""
    return {str(file.relative_to(ROOT)): file.read_text() for file in sorted((ROOT / "tests" / "mutants").glob("*.toml"))}


def tests_of(slip):
    return [slip["test"]] if isinstance(slip["test"], str) else slip["test"]


@functools.cache
def rows():
    """Returns all slips, in the order of the files. A file has a table for each file of the tree, with a row for each slip in
    it."""
    return [
        {"name": name, "listed_in": path, "file": file, "text": slip["from"], "replacement": slip["to"],
         "noticed_by": tests_of(slip), "postgres": slip.get("postgres")}
        for path, text in tables().items()
        for file, slips in tomllib.loads(text).items()
        for name, slip in slips.items()
    ]


def faults():
    """Finds faults of the tables without building anything."""
    names = [row["name"] for row in rows()]
    yield from (f"{name}: there are several of this name" for name in sorted({name for name in names if names.count(name) > 1}))
    described = re.findall(r"(?m)^# .*\n(\w+)(?:\.from)? = ", "\n".join(tables().values()))
    for row in rows():
        name = row["name"]
        if name not in described:
            yield f"{name}: no comment above it says what it protects"
        path = ROOT / row["file"]
        count = path.read_text().count(row["text"]) if path.exists() else 0
        if count != 1:
            yield f"{name}: {row['file']} has this text {count} times: {row['text']}"
        if row["text"] == row["replacement"] or not row["noticed_by"]:
            yield f"{name}: nothing is replaced, or nothing notices"
        yield from (f"{name}: there is no test {test}" for test in row["noticed_by"] if not exists(test))


def is_of_core(test):
    return ".py::" not in test


def path_of(test):
    """Returns the file of a test. A test of the core is named by its program; a test of servers by its file, below tests/server
    by default."""
    file = test.split("::")[0]
    if is_of_core(test):
        return pathlib.Path("src/core/tests") / file
    return pathlib.Path("tests") / file if "/" in file else pathlib.Path("tests/server") / file


def exists(test):
    name = test.partition("[")[0].rsplit("::", 1)[1]
    path = ROOT / path_of(test)
    files = [path.with_suffix(".rs"), *path.glob("*.rs")] if is_of_core(test) else [path]
    return any(re.search(rf"\b(def|fn) {name}\(", file.read_text()) for file in files if file.exists())


def update_copy():
    """Copies changed files only, so that cargo rebuilds only what has changed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True,
    ).stdout  # fmt: skip
    files = {name for name in listed.split("\0") if name and (ROOT / name).is_file()}
    for name in files:
        old, new = COPY / name, ROOT / name
        if not old.exists() or old.read_bytes() != new.read_bytes():
            old.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(new, old)
    for old in [path for path in COPY.rglob("*") if path.is_file()]:
        name = old.relative_to(COPY)
        if name.parts[0] != "target" and str(name) not in files:
            old.unlink()


@contextlib.contextmanager
def slip(row):
    """Replaces the slip's text in the copy."""
    file = COPY / row["file"]
    right = file.read_text()
    if right.count(row["text"]) != 1:
        sys.exit(f"{row['name']}: {row['file']} has this text {right.count(row['text'])} times: {row['text']}")
    file.write_text(right.replace(row["text"], row["replacement"]))
    try:
        yield
    finally:
        file.write_text(right)


def compiled(command, **environment):
    """Runs a command of the compiler in the copy, and returns its output."""
    done = subprocess.run(
        command, check=False, cwd=COPY, env=os.environ | environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise DoesNotCompileError("\n".join(done.stderr.splitlines()[-30:]))
    return done.stdout


@contextlib.contextmanager
def on_postgres(version):
    """Builds and tests on another PostgreSQL than the one of PG_CONFIG, if a version is given."""
    given = os.environ["PG_CONFIG"]
    if version:
        os.environ["PG_CONFIG"] = compiled(["scripts/postgres", version]).strip()
    try:
        yield
    finally:
        os.environ["PG_CONFIG"] = given


def build(tests):
    """Builds what the tests need. Returns the core's test programs by name."""
    profile = os.environ.get("FLAKE_PROFILE", "quick")
    programs = {}
    of_core = dict.fromkeys(test.split("::")[0] for test in tests if is_of_core(test))
    for name in of_core:
        # The loom tests need another build of the core.
        flags = {"RUSTFLAGS": "--cfg loom", "CARGO_TARGET_DIR": "target/loom"} if name == "loom" else {}
        what = ["--locked", "--profile", profile, "-p", "flake-core", f"--test={name}"]
        quietly = ["--quiet", "--no-run", "--message-format=json-render-diagnostics"]
        messages = compiled(["cargo", "test", *quietly, *what], **flags).splitlines()
        artifacts = [json.loads(message) for message in messages if message.startswith("{")]
        programs |= {artifact["target"]["name"]: artifact["executable"] for artifact in artifacts if artifact.get("executable")}
    if len(of_core) < len({test.split("::")[0] for test in tests}):
        compiled(["scripts/build"], FLAKE_PROFILE=profile, FLAKE_STAGE="", FLAKE_BUILT="")
    if any(test.startswith("libraries/") for test in tests):
        build_libraries(profile, tests)
    if any(test.startswith("clients/") and "rust" in test for test in tests):
        what = ["--quiet", "--locked", "--workspace", "--manifest-path", "tests/clients/rust/Cargo.toml"]
        compiled(["cargo", "build", *what], CARGO_TARGET_DIR="target/clients")
    if any(test.startswith("engines/") for test in tests):
        newest = compiled(["scripts/postgres", "18"]).strip()
        compiled(["scripts/build"], FLAKE_PROFILE=profile, FLAKE_STAGE="", FLAKE_BUILT="", PG_CONFIG=newest)
    return programs


def build_libraries(profile, tests):
    """Builds the libraries that these tests install, as far as the slips need them."""
    if any(test.startswith("libraries/test_injection_points.py") for test in tests):
        build_library("injection_points", profile, "injection_points")
    if any(test.startswith("libraries/test_replaced.py") for test in tests):
        constant = "LATER: u32 = "
        with slip({"name": constant, "file": "src/core/layout/builtin.rs", "text": constant, "replacement": f"{constant}9"}):
            build_library("later_layouts", profile)


def build_library(name, profile, features=""):
    stage = COPY / "target" / name
    compiled(["scripts/build"], FLAKE_PROFILE=profile, FLAKE_FEATURES=features, FLAKE_STAGE=str(stage), FLAKE_BUILT="")
    library, = stage.rglob("flake.so")
    (COPY / "target" / "libraries").mkdir(exist_ok=True)
    shutil.copy(library, COPY / "target" / "libraries" / f"{name}.so")


def failure(test, programs):
    """Runs a test. Returns the end of its output if it fails. If it does not run at all, this program ends."""
    if is_of_core(test):
        program, name = test.split("::", 1)
        command, environment = [programs[program], "--exact", name], OF_CORE
    else:
        plugins = ["-p", "no:cacheprovider", *(["-p", "plugin"] if "/" in test.split("::")[0] else [])]
        named = f"{path_of(test)}::{test.split('::', 1)[1]}"
        command = [sys.executable, "-m", "pytest", *plugins, "-q", "-rs", "-x", named]
        environment = {
            "PYTHONPATH": os.pathsep.join(str(COPY / "tests" / part) for part in ("helpers", "server")),
            # Python would use what it has compiled before if a slip has the size and the second of what it replaces.
            "PYTHONPYCACHEPREFIX": "/dev/null",
            "FLAKE_LIBRARIES": str(COPY / "target" / "libraries"),
            "FLAKE_STAGE": "",
        }
    try:
        done = subprocess.run(
            command, check=False, env=os.environ | environment, cwd=COPY, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return f"It has not ended after {PATIENCE} s."
    if done.returncode == 0 and not re.search(r"\b[1-9]\d* passed\b", done.stdout):
        sys.exit(f"{test} did not run:\n{done.stdout}{done.stderr}")
    if not is_of_core(test) and done.returncode not in [0, 1]:
        sys.exit(f"{test} did not run:\n{done.stdout}{done.stderr}")
    return "\n".join(f"{done.stdout}{done.stderr}".splitlines()[-40:]) if done.returncode != 0 else None


def notices(test, programs):
    attempts = 1 if is_of_core(test) else ATTEMPTS_IN_SERVERS
    return any(failure(test, programs) for _ in range(attempts))


def check_right_code(tests):
    """Checks that every test passes without a slip."""
    programs = build(tests)
    for test in tests:
        if printed := failure(test, programs):
            sys.exit(f"{test} fails without a slip:\n{printed}")


def try_out(row):
    """Prints which tests notice this slip. Returns the fault of its row, if there is one."""
    name, began = row["name"], time.monotonic()
    try:
        with slip(row), on_postgres(row["postgres"]):
            programs = build(row["noticed_by"])
            missed = [test for test in row["noticed_by"] if not notices(test, programs)]
    except DoesNotCompileError as error:
        print(f"{name}: DOES NOT COMPILE\n{error}", flush=True)
        return f"{name} does not compile"
    seconds = time.monotonic() - began
    noticed = [test for test in row["noticed_by"] if test not in missed]
    print(f"{name:24} {', '.join(noticed) or 'SURVIVES':70} {seconds:4.0f} s", flush=True)
    return f"{name} is not noticed by {', '.join(missed)}" if missed else None


def main(names):
    if wrong := list(faults()):
        sys.exit("\n".join(wrong))
    if unknown := set(names) - {row["name"] for row in rows()} - tables().keys():
        sys.exit(f"tests/mutants has no {', '.join(unknown)}")
    # In this order, most builds are of the core alone.
    chosen = [row for row in rows() if not names or row["name"] in names or row["listed_in"] in names]
    chosen.sort(key=lambda row: not all(map(is_of_core, row["noticed_by"])))
    update_copy()
    for version in dict.fromkeys(row["postgres"] for row in chosen):
        with on_postgres(version):
            check_right_code(list(dict.fromkeys(
                test for row in chosen if row["postgres"] == version for test in row["noticed_by"])))
    if wrong := [fault for row in chosen if (fault := try_out(row))]:
        sys.exit("\n".join(wrong))
    print(f"{len(chosen)} slips, each noticed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit("\n".join(faults()) or None)
    main(sys.argv[1:])
