#!/usr/bin/env python3
"""Takes away one protection after the other, in a library that was built for it, and runs the tests that have to notice.

`mutants.py [NAME…]`: all, or those that are named. It prints which test noticed, and fails if none did, if a test fails with all
protections in place, or if this table and src/core/absence.rs name different ones. `scripts/test mutants` builds what it needs.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# A test of the core is named by its program and a part of its name, one of servers by its file and its name. Those that depend on
# how processes meet are tried as often as ATTEMPTS says.
ATTEMPTS = 20
KILLED_BY = {
    "HorizonPublishedFirst": ["horizon::threads_lose_nothing"],
    "HorizonFence": ["horizon::of_two_that_meet"],
    "HorizonAnnounced": ["horizon::nothing_is_admitted_below", "test_horizon_clock.py::test_the_clock_is_set_back"],
    "HorizonReading": ["test_horizon.py::test_each_transaction_holds_it_however_soon_it_follows"],
    "HorizonEnded": ["horizon::a_slot_never_holds_too_little", "test_horizon.py::test_what_ended_after_the_snapshot_holds_it"],
    "HorizonKeptFirst": ["horizon::threads_lose_nothing"],
    "HorizonMerged": ["horizon::a_slot_never_holds_too_little"],
    "HorizonStamp": ["test_horizon_statements.py::test_one_horizon_in_a_statement"],
    "HorizonWorkers": ["test_horizon_statements.py::test_ids_of_workers_are_held_until_the_leader_ends"],
    "HorizonPrepared": ["test_horizon_prepared.py::test_it_is_held_until_the_end"],
    "HorizonRebuilt": ["test_horizon_prepared.py::test_restarts"],
    "HorizonUnpublished": ["test_horizon_memory.py::test_no_horizon_while_a_session_has_no_memory"],
    "HorizonDurable": ["test_horizon_clock.py::test_a_restart_with_the_clock_behind"],
    "HorizonNoted": ["test_horizon_clock.py::test_a_restart_with_the_clock_behind"],
    "HorizonPage": ["test_horizon_clock.py::test_failover"],
    "CoverFloor": ["test_horizon_restarts.py::test_ids_from_before_are_not_covered"],
    "HorizonBinding": ["test_horizon_clock.py::test_failover"],
}
RANDOM = {"horizon::threads_lose_nothing"}


def of_core(test):
    return not test.startswith("test_")


def passes(test, absent):
    environment = os.environ | {"FLAKE_ABSENT": absent, "FLAKE_STALL": "10" if test in RANDOM else "0"}
    if of_core(test):
        program, name = test.split("::")
        profile = ["--profile", os.environ["FLAKE_PROFILE"]]
        what = ["-p", "flake-core", "--features", "mutants", "--test", program, name]
        command = ["cargo", "test", "--locked", *profile, "--quiet", *what]
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
        for _ in range(ATTEMPTS if test in RANDOM else 1):
            if not passes(test, name):
                return test
    return None


def main(names):
    known = dict(re.findall(r'^        (\w+): "(.*)",$', (ROOT / "src" / "core" / "absence.rs").read_text(), flags=re.M))
    if known.keys() != KILLED_BY.keys():
        sys.exit(f"protections without a test, or tests without a protection: {sorted(known.keys() ^ KILLED_BY.keys())}")
    names = names or list(KILLED_BY)
    for test in dict.fromkeys(test for name in names for test in KILLED_BY[name]):
        if not passes(test, ""):
            sys.exit(f"{test} fails although no protection is absent")
    survivors = []
    for name in names:
        test = killer(name)
        print(f"{name:24} {test or 'SURVIVES':60} {known[name]}", flush=True)
        if test is None:
            survivors.append(name)
    if survivors:
        sys.exit(f"no test notices that these are absent: {', '.join(survivors)}")
    print(f"{len(names)} protections taken away, each noticed")


if __name__ == "__main__":
    main(sys.argv[1:])
