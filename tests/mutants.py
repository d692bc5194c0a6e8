#!/usr/bin/env python3
"""Takes away one protection after the other, in a library that was built for it, and runs the tests that have to notice.

`mutants.py [NAME…]`: all, or those that are named. It prints which test noticed, and fails if none did, if a test fails with all
protections in place, or if this table and src/core/absence.rs name different ones. `scripts/test mutants` builds what it needs.
`mutants.py --document` writes the table in CONTRIBUTING.md.
"""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# A test of the core is named by its program and a part of its name, one of servers by its file and its name. Those that depend on
# how processes meet are tried as often as ATTEMPTS says, with the FLAKE_STALL that RANDOM says.
ATTEMPTS = 20
KILLED_BY = {
    "ShareNodeNumber": ["shares::configurations_that_leave_nothing"],
    "ShareNode": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareNodeRounded": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareNodesFit": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareSlotNumber": ["shares::configurations_that_leave_nothing"],
    "ShareSlot": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareSlotsFit": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareStep": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareStepsRounded": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareOrder": ["shares::sessions_are_in_order"],
    "ShareBehind": ["shares::sessions_are_in_order"],
    "ShareRest": ["properties::generators_never_repeat"],
    "ShareRolling": ["generators::a_rolling_sequence_rolls_within_the_steps"],
    "ShareRun": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareTurn": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "ShareCarry": ["shares::no_two_slots_of_any_nodes_share_an_id_of_small_layouts"],
    "LayoutKey": ["generators::a_generator_goes_on_for_layouts_of_the_same_bits"],
    "LayoutOverlap": ["properties::no_two_layouts_that_do_not_overlap_make_the_same_id"],
    "GeneratorAbove": ["ledger::nothing_is_made_in_the_tick_of_the_start"],
    "GeneratorLastSeen": ["ledger::a_new_session_waits_for_the_clock_that_earlier_ones_saw"],
    "GeneratorTick": ["generators::trace_of_the_textbook"],
    "GeneratorOverflow": ["generators::a_used_up_share_waits_even_while_the_clock_goes_back"],
    "GeneratorBehind": ["generators::a_clock_that_steps_back_leaves_the_state"],
    "GeneratorWindow": ["ledger::time_is_asked_for_before_it_is_used"],
    "GeneratorEnd": ["generators::time_before_the_epoch_and_after_the_last_tick"],
    "ResumeEra": ["ledger::time_of_a_new_era_is_for_those_who_began_in_it"],
    "ResumeAnew": ["ledger::sessions_go_on_in_a_new_era"],
    "SlotStored": ["ledger::a_session_continues_where_the_last_one_stopped"],
    "SlotEra": ["ledger::progress_of_another_era_is_none"],
    "SlotEraOver": ["ledger::progress_of_another_era_is_none"],
    "SlotFull": ["ledger::more_generators_than_a_slot_has_room_for"],
    "SlotAbandoned": ["ledger::a_session_that_stored_nothing_gives_up_the_time_that_was_granted"],
    "SlotBelowFloor": ["ledger::what_is_below_the_floor_is_not_resumed"],
    "SlotSteppedBack": ["ledger::a_floor_that_the_clock_has_stepped_back_over"],
    "LedgerPresent": ["ledger::nothing_is_made_in_the_tick_of_the_start"],
    "LedgerReopened": ["ledger::a_crash_with_the_clock_behind"],
    "LedgerRaised": ["ledger::a_ledger_that_is_raised_in_a_running_server"],
    "LedgerRaisedEra": ["ledger::a_ledger_that_is_raised_in_a_running_server"],
    "LedgerPassed": ["ledger::a_tick_that_begins_in_skipped_time_is_closed"],
    "LedgerSkippedTick": ["ledger::a_tick_that_reaches_into_skipped_time_is_closed"],
    "LedgerCoveredSkip": ["ledger::a_unit_that_reaches_into_skipped_time_is_not_gone_back_to"],
    "LedgerCovered": ["ledger::what_a_sno_goes_back_to_is_used"],
    "TimelineSkipped": ["ledger::time_that_a_clock_ahead_has_used_is_skipped"],
    "TimelineMerged": ["ledger::used_time_is_never_forgotten"],
    "TimelineAccepted": ["ledger::accepting_the_clock_opens_unused_time_only"],
    "OpeningNode": ["opening::a_server_that_takes_over_leaves_the_old_one_time"],
    "OpeningCount": ["opening::the_file_of_a_node_under_another_number_of_nodes"],
    "OpeningPromoted": ["opening::a_server_that_takes_over_leaves_the_old_one_time"],
    "OpeningOverlap": ["opening::a_server_that_takes_over_leaves_the_old_one_time"],
    "OpeningBoot": ["opening::an_exit_note_counts_while_the_operating_system_runs"],
    "OpeningNote": ["opening::an_exit_note_counts_while_the_operating_system_runs"],
    "OpeningPage": ["opening::what_the_page_says"],
    "OpeningLost": ["opening::what_the_page_says"],
    "MarkCount": ["marks::every_node_has_its_own_mark"],
    "MarkUnlisted": ["marks::what_a_sequence_says_counts_for_nodes_that_are_not_listed"],
    "MarkGoesOn": ["marks::what_a_sequence_says_counts_for_nodes_that_are_not_listed"],
    "MarkLowered": ["marks::every_node_has_its_own_mark"],
    "MarkFull": ["marks::the_lowest_mark_makes_room_and_is_not_forgotten"],
    "RecordWhole": ["record::a_damaged_record_is_none"],
    "RecordNewest": ["record::a_torn_write_loses_nothing"],
    "SnoTickTock": ["sno::generators_never_repeat"],
    "SnoSecondStep": ["sno::generators_never_repeat"],
    "SnoRemembered": ["sno::generators_never_repeat"],
    "SnoFloor": ["ledger::snos_do_not_go_back_below_the_floor"],
    "SnoEnd": ["sno::no_sno_is_made_after_the_last_unit"],
    "SnoPartition": ["shares::no_two_slots_of_any_nodes_share_a_sno"],
    "SnoAutomatic": ["shares::automatic_partitions_are_nobody_elses"],
    "SnoCaller": ["shares::automatic_partitions_are_nobody_elses"],
    "SnoKey": ["ledger::each_partition_of_sno_has_its_own_progress"],
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
RANDOM = {"horizon::threads_lose_nothing": "10", "horizon::of_two_that_meet": "0"}


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
        for _ in range(ATTEMPTS if test in RANDOM else 1):
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
    if sys.argv[1:] == ["--document"]:
        document()
    else:
        main(sys.argv[1:])
