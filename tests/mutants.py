#!/usr/bin/env python3
"""Takes away one protection after the other, in a library that was built for it, and runs the tests that have to notice.

`mutants.py [NAME…]`: all, or those that are named. It prints which test noticed, and fails if none did, if a test fails with all
protections in place, or if this table and src/core/absence.rs name different ones. `scripts/test mutants` builds what it needs.
`mutants.py --document` writes the table in CONTRIBUTING.md.
"""

import concurrent.futures
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

from killers import KILLED_BY, RANDOM

ROOT = pathlib.Path(__file__).resolve().parents[1]
ATTEMPTS = 20
# On a busy machine, a server can be too slow for the danger to arise.
ATTEMPTS_IN_SERVERS = 3


def of_core(test):
    return not test.startswith("test_")


@functools.cache
def programs():
    """The test programs of the core, built once."""
    what = ["--locked", "--profile", os.environ["FLAKE_PROFILE"], "-p", "flake-core", "--features", "mutants", "--tests"]
    command = ["cargo", "test", "--quiet", "--no-run", "--message-format=json", *what]
    built = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    messages = map(json.loads, built.splitlines())
    return {message["target"]["name"]: message["executable"] for message in messages if message.get("executable")}


def passes(test, absent):
    environment = os.environ | {"FLAKE_ABSENT": absent, "FLAKE_STALL": RANDOM.get(test, "0")}
    # That a test of many cases fails is enough: the smallest of them is not looked for.
    environment |= {"PROPTEST_MAX_SHRINK_ITERS": "0", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1"}
    if of_core(test):
        program, name = test.split("::")
        command = [programs()[program], name]
    else:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-x", ROOT / "tests" / "server" / test]
    done = subprocess.run(command, check=False, env=environment, cwd=ROOT, capture_output=True, text=True)
    if of_core(test) and re.search(r"running 0 tests", done.stdout) and not re.search(r"running [1-9]", done.stdout):
        sys.exit(f"there is no test {test}")
    if not of_core(test) and done.returncode not in [0, 1]:
        sys.exit(f"{test} did not run:\n{done.stdout}{done.stderr}")
    return done.returncode == 0


def killer(name):
    """The first test that notices."""
    for test in KILLED_BY[name]:
        for _ in range(ATTEMPTS if test in RANDOM else 1 if of_core(test) else ATTEMPTS_IN_SERVERS):
            if not passes(test, name):
                return test
    return None


def protections():
    """What src/core/absence.rs lists, and what each does."""
    return dict(re.findall(r'^        (\w+): "(.*)",$', (ROOT / "src" / "core" / "absence.rs").read_text(), flags=re.M))


def table():
    """The table in CONTRIBUTING.md."""
    rows = [(f"`{name}`", what, ", ".join(f"`{test}`" for test in KILLED_BY[name])) for name, what in protections().items()]
    rows = [("protection", "what it does", "noticed by"), ("---", "---", "---"), *rows]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def document():
    """Writes it there."""
    page = ROOT / "CONTRIBUTING.md"
    before, old, after = re.split(r"(^\| protection \|.*?\n)(?=\n)", page.read_text(), maxsplit=1, flags=re.M | re.S)
    if old != table():
        page.write_text(before + table() + after)


def main(names):
    known = protections()
    if known.keys() != KILLED_BY.keys():
        sys.exit(f"protections without a test, or tests without a protection: {sorted(known.keys() ^ KILLED_BY.keys())}")
    names = names or list(KILLED_BY)
    tests = list(dict.fromkeys(test for name in names for test in KILLED_BY[name]))
    survivors = []
    programs()
    # Tests of servers wait most of the time.
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("FLAKE_TEST_WORKERS", "4"))) as pool:
        for test, is_passed in zip(tests, pool.map(lambda test: passes(test, ""), tests), strict=True):
            if not is_passed:
                pool.shutdown(cancel_futures=True)
                sys.exit(f"{test} fails although no protection is absent")
        for name, test in zip(names, pool.map(killer, names), strict=True):
            print(f"{name:24} {test or 'SURVIVES':60} {known[name]}", flush=True)
            if test is None:
                survivors.append(name)
    if survivors:
        sys.exit(f"no test notices that these are absent: {', '.join(survivors)}")
    print(f"{len(names)} protections taken away, each noticed")


if __name__ == "__main__":
    if sys.argv[1:] == ["--document"]:
        document()
    else:
        main(sys.argv[1:])
