#!/usr/bin/env python3
"""Takes away one protection after the other, in a library that was built for it, and runs the tests that have to notice.

`mutants.py [NAME…]`: all, or those that are named. It prints which test noticed, and fails if none did, if a test fails with all
protections in place, or if this table and src/core/absence.rs name different ones. `scripts/test mutants` builds what it needs.
"""

import concurrent.futures
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
    "SlotShare": ["test_faults.py::test_many_sessions_in_one_frozen_tick"],
    "SlotOfWorkers": ["test_faults.py::test_parallel_workers"],
    "SlotProgress": ["test_faults.py::test_many_sessions_in_one_frozen_tick"],
    "SlotGivenUp": ["test_exits.py::test_sessions_that_end_while_they_ask_for_time"],
    "ExitNoteOfLast": ["test_exits.py::test_a_crash_after_a_session_has_left[meanwhile]"],
    "ExitNoteWithdrawn": ["test_exits.py::test_a_crash_after_a_session_has_left[before]"],
    "MemoryOfServer": ["test_ledger.py::test_no_memory_for_the_control_block"],
    "MemoryPresent": ["test_versions.py::test_they_make_none_of_each_others_ids"],
    "MemoryFree": ["test_ledger.py::test_no_memory_for_a_slot_when_the_clock_is_set_back"],
    "MemoryFloor": ["test_ledger.py::test_no_memory_for_a_slot_when_the_clock_is_set_back"],
    "ForeignShareRule": ["test_ledger.py::test_a_ledger_of_a_version_that_shares_otherwise"],
    "ForeignVersion": ["test_versions.py::test_they_make_none_of_each_others_ids"],
    "ForeignFloor": ["test_versions.py::test_they_make_none_of_each_others_ids"],
    "ForeignExitNote": ["test_versions.py::test_a_restart_while_they_go_on"],
    "ForeignMark": ["test_versions.py::test_a_clock_that_is_accepted_after_a_restart"],
    "MarkFile": ["test_mark.py::test_a_crash_and_a_database_that_knows_less"],
    "MarkFirst": ["test_durability.py::test_time_that_could_not_be_written_is_not_used"],
    "MarkHalves": ["test_ledger.py::test_a_file_that_cannot_be_read"],
    "MarkFlushed": ["test_durability.py::test_each_record_that_grants_time_is_flushed"],
    "MarkDamaged": ["test_ledger.py::test_a_file_that_cannot_be_read"],
    "MarkWhole": ["test_ledger.py::test_a_file_that_cannot_be_read"],
    "MarkOwner": ["test_failover.py::test_a_standby_with_its_own_number_does_not_wait"],
    "MarkTimeline": ["test_failover.py::test_the_old_primary_goes_on[0-idle]"],
    "PageRaised": ["test_failover.py::test_failover[commit_at_0_after_ids_at_60-3]"],
    "PageFlushed": ["test_durability.py::test_the_mark_of_the_database_is_on_disk_before"],
    "PageFlushedByOthers": ["test_durability.py::test_the_mark_of_the_database_is_on_disk_before"],
    "PageOfResumed": ["test_takeover.py::test_time_that_sessions_of_another_database_were_granted[their slots]"],
    "PageOfNew": ["test_takeover.py::test_time_that_sessions_of_another_database_were_granted[other slots]"],
    "PageCompared": ["test_failover.py::test_a_database_without_ids_makes_the_first_ones"],
    "PagePromoted": ["test_horizon_clock.py::test_failover_to_a_standby_that_makes_ids"],
    "PageMemory": ["test_takeover.py::test_a_second_database[True]"],
    "PageCreated": ["test_mark.py::test_failover_after[extension_recreated]"],
    "PageLastValue": ["test_mark.py::test_failover_after[sequence_altered]"],
    "PageApart": ["test_privileges.py::test_who_may_set_the_sequence_moves_no_mark"],
    "PageSane": ["test_mark.py::test_a_last_value_far_ahead_is_ignored"],
    "PageDamaged": ["test_mark.py::test_a_page_of_something_else"],
    "PageOfOthers": ["test_takeover.py::test_another_node_drops_the_extension_and_creates_it_again"],
    "PageOfTransaction": ["test_takeover.py::test_a_page_that_is_rolled_back[ALTER SEQUENCE flake_mark NO CYCLE]"],
    "NodeConfigured": ["test_node_settings.py::test_preloaded_a_client_is_refused"],
    "NodeShadowed": ["test_node_settings.py::test_the_first_session_after_a_start[another number]"],
    "NodeOfWorkers": ["test_node_settings.py::test_parallel_workers"],
    "NodeApplied": ["test_node_settings.py::test_values_that_are_checked_and_not_applied_do_not_count"],
    "NodeValid": ["test_node_settings.py::test_what_is_no_number_is_said_and_can_be_corrected"],
    "NodeAsked": ["test_node_settings.py::test_the_first_session_after_a_start[another number]"],
    "NodePinned": ["test_errors.py::test_node_settings_are_in_force_until_the_next_start"],
    "StandbyRefused": ["test_errors.py::test_standby"],
    "ClockWait": ["test_clock.py::test_a_small_step_back_is_waited_out"],
    "ClockRestart": ["test_exits.py::test_a_restart_is_waited_for_by_the_impatient"],
    "ClockNoticed": ["test_faults.py::test_the_clock_is_reported_once"],
    "ClockTick": ["test_clock.py::test_every_id_is_of_the_tick_in_which_it_was_made"],
    "StartWaits": ["test_start_above.py::test_the_next_ids_of_all_sessions_are_above"],
    "StartGranted": ["test_start_above.py::test_called_again_after_it_was_cancelled"],
    "StartTick": ["test_start_above.py::test_a_session_that_is_in_a_long_tick"],
    "StartForce": ["test_start_above.py::test_far_ahead_it_takes_force"],
    "StartPage": ["test_start_above.py::test_far_ahead_it_takes_force"],
    "AcceptWarned": ["test_horizon_clock.py::test_accepting_the_clock_goes_below_and_says_so"],
    "LayoutOfBits": ["test_custom.py::test_layouts_that_make_the_same_numbers_share_their_state"],
    "LayoutAdopted": ["test_custom.py::test_another_name_does_not_make_what_a_layout_may_not"],
    "LayoutAltered": ["test_check.py::test_a_layout_whose_definition_was_changed"],
    "LayoutInUse": ["test_uses.py::test_what_names_it[index i]"],
    "LayoutChanged": ["test_custom.py::test_the_next_statement_of_another_session_sees_it"],
    "LayoutOfBatch": ["test_batch.py::test_a_batch_keeps_its_layout"],
    "ShelfKept": ["test_ledger.py::test_more_layouts_than_a_slot_keeps_traces_of"],
    "LockCanceled": ["test_stopped.py::test_a_stopped_writer[flake_next('twitter')]"],
    "RoleSuperuser": ["test_start_above.py::test_who_may"],
    "RoleOwner": ["test_privileges.py::test_the_messages_say_who_may"],
    "HorizonBatch": ["test_horizon.py::test_cursors_and_batches"],
    "HorizonInRecovery": ["test_horizon_clock.py::test_standbys_refuse"],
    "HorizonInWorker": ["test_horizon_statements.py::test_workers_do_not_ask"],
    "HorizonLearned": ["test_horizon_restarts.py::test_a_snapshot_that_is_older_than_what_was_learned"],
    "HorizonLast": ["test_horizon.py::test_it_does_not_go_back_while_a_snapshot_lasts"],
    "HorizonLeft": ["test_horizon_memory.py::test_nor_for_a_snapshot_that_sees_its_transaction_as_running"],
    "HorizonForeign": ["test_versions.py::test_there_is_no_horizon"],
    "CoverInWorker": ["test_horizon_statements.py::test_workers_do_not_cover"],
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
    tests = list(dict.fromkeys(test for name in names for test in KILLED_BY[name]))
    survivors = []
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
    main(sys.argv[1:])
