//! Stories of clocks that are ahead, and of what is done about that.

use crate::layouts::SECOND;
use crate::stories::{A, B, go_well, made_on, stories};

stories! {
    /// The clock was ahead when a watermark was returned, and the file is lost. The page still says that IDs lead.
    fn a_watermark_outlasts_the_loss_of_the_file() "
        a: step 15, ask, lose, right
        a: step 5, restart 1/2, make@1"

    /// The clock was accepted in one database, and the file is lost twice. The pages disagree, and each page has the watermarks that
    /// readers were returned.
    fn what_binds_a_server_that_has_lost_its_file_is_in_each_page() "
        a: make, step -7, ask@1, connect 1, accept, connect 0
        a: lose, make, connect@1 1, ask@1
        a: lose, make@1, make waiting, make@1"

    /// An older file is put back twice, and the server gets another number in between. A page has a watermark that the file lacks, and
    /// this start has announced a later one before it reads that page.
    fn a_page_knows_of_a_watermark_that_the_file_has_forgotten() "
        a: save, connect 1, ask@1, restore, ask@1
        a: restart 1/2, restore, ask"

    /// The old primary was half an hour ahead in one database. The new one jumps an hour ahead, is restarted, and its clock is
    /// accepted.
    fn what_a_page_says_counts_also_below_what_is_accepted() "
        a: make, connect-all 1, wait
        b: follow a
        a: step 0.5h, make, make@1
        b: replay
        a: stop
        b: promote, wait, step 1h, make, {|restart, make}
        b: connect-all 1, wait, right, pass 3, accept, pass 3, wait
        b: again {3|4} waiting, again 5"

    /// flake_start_above is called while the clock is further ahead; then the clock is accepted.
    fn an_accepted_clock_does_not_take_start_above_back() "
        a: step 1h, make, {|restart, make}
        a: above -0.5h, right, pass 3, accept, make, pass 3
        a: make, step 1790, again 0 waiting"

    /// The flush of an accepted clock fails, so the record may be on disk. It must not lower watermarks: not in a page that is created
    /// next, not after a crash, and not under another number.
    fn an_acceptance_that_failed_recalls_nothing_even_if_it_is_on_disk() "
        a: {upgrade, wait@1, ask@1, step -1|make, step 1h, make, ask@1, right, pass 4}
        a: accept!, disk fails, go, disk works
        a: {right, connect-all 1, make@1|ask@1, crash, start, make|ask@1, restart 1/2, make}"

    /// The clock is set back while it is accepted. The call recalls watermarks before it returns.
    fn an_acceptance_recalls_watermarks_before_it_returns() "
        a: ask@1, accept!, step -0.5
        a: go!, pass 0.25, make@1"

    /// Accepting the clock fails halfway, because the extension is about to be dropped. Generators must not begin where the clock was.
    fn no_generator_begins_at_a_clock_whose_acceptance_failed() "
        a: step 30, make@1, accept@1!
        a: right, pass 7000us, begin, recreate"

    /// After the clock was ahead and accepted, the file is restored from a copy, and the clock is set back.
    fn a_file_that_was_restored_gives_nothing_back() "
        a: make, step 1h, make, right, pass 4, accept
        a: pass 3, make, save, pass 10, make
        a: make@1, {stop|crash}, restore, again 1"

    /// A tick of sno ends in time that is reserved. A generator must not go back to it.
    fn a_generator_does_not_go_back_to_a_tick_that_ends_in_used_time() "
        a: make, pass 10001116us, snos@1 6, step -2066us, accept, pass 1793us, make
        a: exit@1, step -19us, snos@1 6"

    /// The clock was accepted, and an older copy of the file is put back. A session of another database begins before this server has
    /// counted the acceptance.
    fn an_acceptance_that_an_older_file_does_not_have_is_counted() "
        a: step 0.25, make@1, make, save
        a: step 30, make@1, lose
        a: used 14, step 25, accept
        a: restore, connect 1, pass 0.25, make"
}

/// A watermark is asked for while the clock is ahead; the clock is corrected and accepted. A new node makes IDs at once.
#[test]
fn a_recalled_watermark_binds_no_other_node() {
    let story = "
        a: make, step 1h, make, ask, right, pass 4, accept, wait
        b: follow a 1/2, replay, promote, wait";
    let world = &go_well(story)[0];
    let first = world.oracle.made.iter().find(|made| made.server == B).unwrap();
    assert!(first.clock < world.oracle.branches[1].promoted + 6 * SECOND, "{first}");
}

/// The clock was ahead and accepted, and the file is deleted. IDs lead the clock by what was reserved at most.
#[test]
fn a_lost_file_after_an_accepted_clock_costs_three_seconds_at_most() {
    let story = "
        a: make, step 1h, make, {|connect-all 1, make, connect-all 0}
        a: right, pass 4, accept, wait, pass 4
        a: wait, lose, wait";
    for world in go_well(story) {
        let mut waited = world.oracle.made.iter().filter(|made| made.kind == 1).take(3);
        assert!(waited.all(|made| made.clock < made.time + 4 * SECOND));
        assert!(made_on(&world, A, 1) > 5, "the third is made before the epilogue");
    }
}
