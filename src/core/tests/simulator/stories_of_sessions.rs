//! Stories of sessions that stop, exit and have successors.

use crate::stories::{go_well, stories};

stories! {
    /// The clock goes back after flake_start_above has returned. No session continues below its argument. A transaction that began
    /// before may continue below it, but the next one may not.
    fn sessions_that_were_connected_start_above_too() "{
        a: make, above@1 2, step -3, again 0 waiting
        |
        a: begin, make, above@1 2, make, commit, step -1, again 0
        }"

    /// The clock is set back to before time was first reserved, and flake_start_above returns. Sessions begin where it ends, snos before
    /// it, and neither below what was returned. So it is if only layouts lead the clock. That does not hold any more once the clock is
    /// set back; the argument does.
    fn what_start_above_returns_is_before_the_first_id() "{
        a: make, step -0.5, above@1 0, pass 1, make
        |
        a: pass 1, make, step -5, above@1 0, pass 4.5, snos 2
        |
        a: above@1 -1, step -0.5, make
        |
        a: make, above 0, snos@1
        }"

    /// A session is stopped anywhere while it makes an ID, in granted time or in new time, and flake_start_above is called. The call
    /// returns after the ID is made or given up.
    fn start_above_waits_for_a_session_that_is_making_an_id() "
        a: make, {pass 1, make|pass 5, make, pass 5}, make!, above@1 2, go, make"

    /// flake_start_above is stopped anywhere while it begins an era, and another session makes IDs of a tick that it has used before. The
    /// cursors of the era in force still count.
    fn a_session_makes_ids_while_another_one_begins_an_era() "
        a: make, pass 1, make, above@1! 2, make, go@1, make"

    /// A session exits, and the clock goes back. The proc's next owner continues after the last ID.
    fn a_session_that_exits_is_continued() "
        a: {make, pass 1, make, exit, make, exit, again 0|
            snos 2, pass 1, snos 2, exit, used 0, snos 2, pass 4000us, snos 2}"

    /// The clock was ahead in one database, in a tick that had not begun yet, and flake.mark is lost. Within that tick, a session
    /// makes IDs in a database whose page does not know, and exits. The next one in its proc is connected to the first database. It
    /// does not continue in the tick, which its page says was used.
    fn a_tick_that_reaches_into_time_that_another_page_knows_is_not_continued() "
        a: make, pass 86340, make
        a: connect 1, step 100, day 9, right, pass 20, lose
        a: connect 0, wait, pass 50, day, connect 1, day 5"

    /// A session is terminated anywhere while it makes snos, and the clock goes back, also after a restart. Its proc has given up the
    /// granted time.
    fn a_session_that_is_terminated_in_the_middle_of_an_id_gives_up_its_time() "
        a: snos 2, pass 1, snos! 3, kill, {|restart}
        a: used 0, snos 2, pass 4000us, snos 2"
}

/// A session continues in another database where the proc's last owner has stopped. The page there has the time, so it is known when
/// the file is lost and the clock goes back.
#[test]
fn time_that_is_continued_in_another_database_is_in_its_page() {
    for some in ["make 2", "snos 2"] {
        go_well(&format!(
            "a: {some}, pass 20, {some}, connect-all 1, {some}, pass 0.25, {some}
             a: lose, step -8, {some}, used 2, {some}, pass 0.25, {some}"
        ));
    }
}

/// The machine crashes. Any sectors of records that were written and not flushed may be on disk.
#[test]
fn a_record_that_was_not_flushed_may_be_on_disk() {
    for round in 0..64_u64 {
        let sectors = round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ round << 7;
        go_well(&format!("a: make, exit, make, make, reboot {sectors:x}, start, again 0"));
        if round % 8 == 1 {
            go_well(&format!("a: make, exit, restart, make!, reboot {sectors:x}, start, again 0"));
        }
    }
}
