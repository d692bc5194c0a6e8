//! Stories of lost rows.

use crate::layouts::{HOUR, MORNING};
use crate::rows::Watermark;
use crate::stories::{A, B, go_well, stories};

stories! {
    /// After a start, an ID of another transaction is covered before any ID is made, and only the page knows the watermark.
    fn an_id_that_is_covered_first_after_a_start_is_above_all_watermarks() "
        a: make, ask@1, {restart|crash, start|lose}
        a: cover {0|1|60}, pass 5, cover {0|1|60}, ask@1"

    /// After a promotion, perhaps under another number, an ID of another transaction is covered before any ID is made.
    fn an_id_that_is_covered_first_after_a_promotion_is_above_all_watermarks() "
        a: make
        b: follow a {0/2|1/2}
        a: make, ask@1
        b: replay
        a: crash
        b: promote, cover {0|1|60}, pass 5, cover {0|1|60}, ask@1"

    /// A watermark is asked for while a new primary waits for the old one. Then it gets another number, and its clock is set back.
    fn a_watermark_from_before_time_was_granted_binds_the_next_number() "
        a: make
        b: follow a, promote
        a: make
        b: pass {0|1}, ask@1, ask@1
        b: step -1000us, restart 1/2, micro@1"

    /// A session has tried to make IDs on a standby with a number of its own, whose clock is behind. It must notice the promotion.
    fn a_session_from_before_the_promotion_notices_it() "
        a: make
        b: follow a 1/2, step -1, micro@1
        a: ask@1
        b: replay, promote, micro@1"

    /// After a crash, a snapshot sees a prepared transaction as running. The transaction ends before any session has learned of it.
    fn a_snapshot_from_before_a_prepared_transaction_was_learned_of_waits_for_it() "
        a: pass 4, begin, make, prepare, crash, start
        a: pass 4, make@1, look@1, finish, ask@1
        a: commit@1, ask@1"

    /// A prepared transaction is committed after a crash, or by a new primary.
    fn a_prepared_transaction_holds_watermarks_after_a_crash_and_a_failover() "{
        a: pass 4, begin, make, prepare, crash, start, wait, ask@1, finish, ask@1
        |
        b: follow a
        a: pass 4, begin, make, prepare
        b: replay
        a: crash
        b: promote, wait, ask@1, finish, ask@1
        }"

    /// The file is lost twice. A watermark is asked for before time is granted, in a database whose page alone knows an earlier
    /// watermark.
    fn a_file_written_before_the_page_was_read_does_not_hide_its_watermark() "
        a: lose, ask@1, lose, ask@1, stop, connect@1 1
        a: start, make@1, ask"

    /// Of two transactions that commit, the one with the later transaction ID is in the WAL first. It is not visible yet when a
    /// snapshot that sees the other one as ended asks for a watermark.
    fn a_snapshot_between_two_commits_loses_no_row() "
        a: pass 4, publish@1
        b: follow a
        a: begin@1, micro@1, begin, micro, commit!
        b: replay, look
        a: commit@1, publish@1, go
        b: replay, ask"

    /// A snapshot of the standby sees the last transaction as ended, and an earlier one as prepared.
    fn a_snapshot_that_is_older_than_a_published_watermark_loses_no_row() "
        a: pass 4, begin, micro, prepare, micro, publish@1
        b: follow a
        a: micro
        b: replay, look
        a: finish, publish@1
        b: replay, ask"

    /// The primary's clock was ahead when a watermark was published, and is corrected and accepted, perhaps in another database.
    fn a_published_watermark_that_is_recalled_is_not_returned() "
        a: pass 4, make, step {1|60}, publish@1, right
        a: connect {0|1}, accept, connect 0, wait, publish@1
        b: follow a, look, ask
        a: micro, wait, micro
        b: replay"

    /// A copy of the file has a watermark that was recalled since.
    fn a_watermark_in_an_older_file_stays_recalled() "
        a: step 30, ask@1, save, right, accept@1, restore"

    /// The clock is accepted while a session publishes a watermark.
    fn a_watermark_that_is_recalled_while_it_is_published_is_not_returned() "
        a: pass 4, make, make@1, step 60
        a: publish@1!, right, accept, go@1, wait
        b: follow a, look, ask
        a: micro, wait, micro
        b: replay"

    /// The clock is accepted while a session asks for a watermark.
    fn a_watermark_of_an_earlier_generation_is_not_returned() "
        a: make, step 60, make, ask@1!
        a: right, accept, go@1, wait"

    /// The clock is accepted while a session covers an ID or makes one, and a watermark is asked for before the session publishes its
    /// bound. The clock is set back after that.
    fn a_bound_that_is_published_after_an_acceptance_hides_no_watermark() "
        a: make, step 60, make@1, right
        a: {cover! 0|micro!}, accept@1, pass 1, ask@1
        a: step -0.5, go"

    /// A server without a file, whose page has nothing, has begun its ledger, and its clock is set back before a session asks. No
    /// time is granted. After a crash, the clock is set back again.
    fn a_watermark_for_which_no_time_is_granted_lies_in_reserved_time() "
        a: lose, ask!, step -2h, go
        a: crash, step -1h, start, micro, pass 4, micro"

    /// A session of another database announces a later instant while a session asks for a watermark. The clock of the next primary is
    /// behind, and it has replayed everything.
    fn a_watermark_that_another_database_has_announced_is_in_the_page_of_this_one() "
        a: make, connect@1 1, make@1
        b: follow a
        a: {pass 0|step -2h}, ask!, {pass 4|step 2h, pass 4}, ask@1, go, crash
        b: replay, step -4, promote, make, pass 1, make"

    /// The clock is set back after a watermark was announced, before a session has noticed that.
    fn a_watermark_is_returned_at_once_after_the_clock_was_set_back() "
        a: pass 4, ask@1, step {-2|-100|-2h}, ask, ask@1, make"

    /// A standby has returned a watermark of a clock that was ahead. The clock is accepted after the promotion, and the server is upgraded.
    fn a_watermark_of_a_standby_that_was_recalled_binds_no_upgraded_server() "
        a: step 4, make, right, accept, step 60, publish
        b: follow a, ask, promote, accept, upgrade, make"

    /// An old primary's clock is accepted. Later it starts from the new primary's data with its own file. The new primary's watermarks
    /// do not bind it.
    fn a_server_that_accepted_its_clock_more_often_ignores_watermarks_of_another_one() "
        b: follow a 1/2, promote
        a: ask, step -7, accept
        b: ask, make
        a: follow b 0/2 keeping, promote, wait"

    /// The clock is accepted, the file is restored from before, and a watermark is asked for. The earlier watermark is back, and binds.
    fn a_watermark_in_a_restored_file_binds_again() "
        a: step 1000us, ask@1, step -3.5, save
        a: accept@1, restore, ask@1, restart"

    /// In one database, a new primary announces the watermark of the old one, whose clock was ahead. In another it learns of the recall.
    fn a_new_primary_that_learns_of_a_recall_keeps_what_it_has_announced() "
        a: step 60, ask
        b: follow a 1/2
        a: right, accept, crash
        b: replay, connect@1 1, promote, ask@1, make, wait@1"

    /// A clock was ahead, and is accepted in one database. After the loss of the file, the server announces in the other database a
    /// watermark from before, and learns of the acceptance only after a restart.
    fn a_restarted_server_that_learns_of_a_recall_keeps_what_it_has_announced() "
        a: ask@1, connect 1, step 7, make, right
        a: accept@1, lose, ask, restart"

    /// The clock of an old primary was ahead. In the first database of the new one there is no page, so only the file tells that
    /// watermarks bind it there, and the page of the other database does not stop IDs that it has begun to make.
    fn watermarks_that_only_the_file_knows_bind_a_new_primary() "
        a: step 15
        b: follow a
        a: publish@1
        b: replay, promote, make, drop 0, restart 1/2
        a: follow b 0/1"
}

/// A standby has rows that no consumer has read yet. Its snapshot is from before a watermark was published, or from after that.
#[test]
fn a_standby_returns_what_was_published() {
    let story = "
        a: pass 4, publish@1, micro
        b: follow a, look, ask, commit
        a: begin, micro, micro@1, publish@1
        b: replay, look, ask, commit";
    let [first, second] = &go_well(story)[0].machines[B].replayed[..] else { panic!("each reader is told one") };
    assert!(first.instant < second.instant, "however long a transaction is open");
}

/// IDs lead the clock by more than flake.max_lead, so the clock is accepted sooner or later. Rows then come above the clock.
#[test]
fn a_watermark_for_which_no_time_is_granted_is_not_above_the_clock() {
    let world = &go_well("a: make, step 3h, make, right, make, pass 10, ask@1")[0];
    let before = |watermark: &&Watermark| watermark.acceptances == 0;
    let highest = world.machines[A].watermarks.iter().filter(before).map(|watermark| watermark.instant).max();
    assert!(highest.is_some_and(|highest| (MORNING..MORNING + HOUR).contains(&highest)), "{highest:?}");
}
