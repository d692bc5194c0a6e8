//! Stories of pages that are read, removed and created.

use crate::stories::{go_well, stories};

stories! {
    /// A database is created again under its old OID. Then the server loses its file, and its clock is behind.
    fn a_page_is_looked_at_not_remembered() "
        a: wait, create 0, pass 6, wait, create 0, make, make@1
        a: lose, step -8, make, again 1 waiting"

    /// A transaction drops and creates the extension, makes IDs, and rolls back. The server itself remembers the IDs.
    fn a_server_remembers_the_ids_of_a_rolled_back_creation() "
        a: make, recreate, make, abort, crash, start, again 0"

    /// flake_start_above fails, but its record may be on disk. No page has its argument, so IDs continue at once. The epilogue checks
    /// that.
    fn ids_continue_at_once_after_start_above_has_failed() "
        a: upgrade, above 0, disk fails, above 2, disk works"

    /// flake_start_above fails, and its record is in the file without a flush. After a restart, a call with an earlier instant succeeds.
    /// Then the page is dropped, and the machine crashes.
    fn start_above_does_not_rely_on_a_record_whose_flush_has_failed() "
        a: disk fails, above 20us, stop, start
        a: disk works, above 0
        a: drop 0, {reboot 0|reboot 1000138018a9082}, start"

    /// A server that has lost its file reads a page, drops the extension, and crashes. The page that is created then contains what the
    /// new file knows.
    fn a_page_created_after_a_crash_has_what_the_file_knows() "
        a: wait, pass 6, wait, make, make@1
        a: lose, step -8, make
        a: drop 0, {crash|reboot 0}, start
        a: recreate, commit, again 1 waiting"

    /// A session of a new primary is stopped anywhere in its first ID, and another one drops and creates the extension.
    fn a_page_removed_while_a_session_reads_it_loses_no_used_time() "
        b: follow a
        a: above@1 0
        b: replay, promote, make@1!, recreate, make"

    /// A new primary has read the page only for a snapshot from when it was a standby, and the extension is dropped.
    fn a_page_removed_after_a_watermark_of_a_standby_loses_no_used_time() "
        b: follow a
        a: publish
        b: look@1
        a: above@1 0
        b: replay, promote, ask@1, recreate@1, make@1"

    /// A session is stopped anywhere while it asks for time, and again after it has written the page. Another one gets more time
    /// meanwhile. Then the server loses its file, and its clock is behind.
    fn a_session_keeps_the_later_time_that_another_one_has_written() "
        a: make, make@1, pass 5, make!, pass 10, make@1
        a: go!
        a: lose crashing, step -8, make, again 0 waiting"

    /// A server whose clock was ahead makes IDs under another number, and the extension is created again. When the server has its first
    /// number back, its file still has the used time of that.
    fn a_file_keeps_the_used_time_of_another_number() "
        a: wait, step 60, make, right, restart 1/2, wait
        a: recreate, commit, restart, again 1 waiting"

    /// A server whose clock was ahead creates the extension again under another number. When it has its number back, it has lost its
    /// file. The new page has the used time of that number.
    fn a_page_created_under_another_number_has_the_used_time_of_the_first() "
        a: wait, step 60, make, right, restart 1/2
        a: recreate, commit, restart, lose, again 0 waiting"
}

/// A transaction drops and creates the extension, makes IDs, and commits or not. If not, only the file covers the IDs. The server
/// loses its file, and its clock is behind.
#[test]
fn ids_of_a_rolled_back_creation_are_remembered_by_their_server_only() {
    for (end, is_forgiven) in [("commit", false), ("abort", true)] {
        let story = format!(
            "a: wait, pass 6, recreate, make, {end}
             a: lose, step -8, make, again 0 waiting"
        );
        let forgiven = go_well(&story)[0].oracle.forgiven[2];
        assert_eq!(forgiven > 0, is_forgiven, "{forgiven}");
    }
}

/// A session has asked for time in a transaction that created the extension and is rolled back, and continues. Then an older copy of
/// flake.mark is put back.
#[test]
fn a_session_does_not_rely_on_a_page_that_was_rolled_back() {
    for some in ["make 2", "snos 2", "partition 2"] {
        go_well(&format!("a: recreate, save, {some}, abort, pass 0.25, {some}, restore, used 0, {some}"));
    }
}
