//! Stories of new primaries and new numbers: the home of what is shown of a server that takes over.

use crate::layouts::SECOND;
use crate::play::World;
use crate::stories::{A, B, go_well, made_on, stories};

stories! {
    /// The clock was ahead. The server gets another number, and then its own number again.
    fn a_number_that_comes_back_remembers_its_time() "
        a: make, step 200, make, make@1, restart, right
        a: restart 1/2, wait, pass 3, wait, restart
        a: connect-all {0|1}, wait, again 2 waiting"

    /// flake_start_above is given the greatest ID of a dump. Then the server is restarted under another number and under its own again,
    /// and used in the same database, or in one whose page does not have the call.
    fn start_above_binds_under_another_number() "
        a: pass 0.25, make, above 1h, restart {1/2|0/1|0/2}
        a: connect-all {0|1}, make, wait@1, restart, make"

    /// flake_start_above is called, and a standby takes over, perhaps with a number of its own.
    fn start_above_binds_after_a_failover() "
        a: make
        b: follow a {0/2|1/2}
        a: above 1h
        b: replay
        a: crash
        b: promote, make, wait@1, restart {0/2|1/2}, make"

    /// flake_start_above is called twice, with instants in granted time. The page has that time in the mark of the old primary already,
    /// which does not concern the new one.
    fn start_above_in_granted_time_binds_after_a_failover() "
        a: make
        b: follow a {0/2|1/2}
        a: above 1, above 2, crash
        b: replay, promote, pass 1.5, make, pass 1.5, make"

    /// A watermark is asked for after each of several promotions in a row. The first ID comes as soon as after one. The epilogue checks
    /// that.
    fn promotions_in_a_row_cost_what_one_costs() "
        a: make, ask
        b: follow a, replay, promote, ask
        c: follow b, replay, promote, ask
        a: follow c, replay, promote, ask
        b: follow a, replay, promote, ask"
}

/// After a start, a session learns of prepared transactions and is stopped anywhere, while another one asks for a watermark.
#[test]
fn a_watermark_waits_for_prepared_transactions_that_another_session_is_learning_of() {
    let story = "
        a: pass 0.25, begin, make, prepare
        a: crash, start, pass 4, make@1
        a: ask!, ask@1, finish@1, go";
    for world in go_well(story) {
        assert_eq!(made_on(&world, A, 0), 2, "one is prepared");
    }
}

fn forgiven(world: &World) -> Vec<u64> {
    world.oracle.forgiven.to_vec()
}

/// The old primary runs on, however much of its WAL the new one has replayed, and however far apart their clocks are. The first ID
/// comes at once, also after a restart.
#[test]
fn a_new_primary_and_the_old_one_make_different_ids() {
    for clock in [-60, -8, 0, 8] {
        for restart in ["", "restart", "crash, start", "lose"] {
            let back = -clock;
            let story = format!(
                "b: follow a
                 a: make 6, pass 6, make 6
                 b: {{replay|}}
                 a: make 6
                 b: step {clock}, promote, make 6, {restart}, beside a, step {back}, beside a"
            );
            for world in go_well(&story) {
                assert_eq!(forgiven(&world), [0; 7]);
                let first = world.oracle.made.iter().find(|made| made.server == B).unwrap();
                let is_at_once = first.time < world.oracle.branches[1].promoted + SECOND / 4;
                assert!(!restart.is_empty() || is_at_once, "{first}");
            }
        }
    }
}

/// Two standbys of one primary are promoted, and neither replays the promotion of the other: they have the same turn, if none of
/// them leaves out a number.
#[test]
fn two_standbys_of_one_primary_can_have_the_same_turn() {
    for (numbers, is_forgiven) in [(0, true), (1, false)] {
        let story = format!(
            "b: follow a
             c: follow a, leave-out {numbers}
             a: make 6, pass 1
             b: replay, promote
             c: replay, promote, beside b"
        );
        assert_eq!(forgiven(&go_well(&story)[0])[4] > 0, is_forgiven);
    }
}

/// The first primary runs on through a cascade of promotions. The fourth one has its turn again, or the third one if a number of
/// timelines was left out.
#[test]
fn a_turn_comes_again_after_four_promotions() {
    let cascade = |left_out: &[u32]| {
        let takes_over = |(place, numbers): (usize, &u32)| {
            let (source, at) = [("a", "b"), ("b", "c"), ("c", "b"), ("b", "c")][place];
            format!("\n{at}: follow {source}, replay, leave-out {numbers}, promote, make 6, beside a")
        };
        let story: String = left_out.iter().enumerate().map(takes_over).collect();
        forgiven(&go_well(&format!("a: make 6{story}"))[0])
    };
    assert_eq!(cascade(&[0; 3]), [0; 7]);
    let again = cascade(&[0; 4]);
    assert!(again[5] > 0 && again[..5] == [0; 5], "{again:?}");
    // Timelines 1, 2, 3 and 5.
    assert_eq!(cascade(&[0, 0]), [0; 7]);
    assert!(cascade(&[0, 0, 1])[5] > 0);
}

/// A new primary is upgraded, and begins at the first timeline again, where the old primary still is.
#[test]
fn an_upgraded_new_primary_takes_another_turn_than_the_old_one() {
    let story = "
        a: make 6, pass 1
        b: follow a, replay, promote, make 6, upgrade, beside a, beside a";
    assert_eq!(forgiven(&go_well(story)[0]), [0; 7]);
}

/// Only the databases that were used since the promotion know the turn of the server that is upgraded. The first ID after the upgrade,
/// or after the next promotion, is made in another database.
#[test]
fn an_upgraded_server_knows_its_turn_in_each_database_that_was_used_since_the_promotion() {
    for (used, is_known) in [("make@1", true), ("", false)] {
        let upgraded = format!(
            "
            a: connect@1 1, make 6, make@1, pass 1
            b: follow a, replay, promote, connect@1 1, make 6, {used}, upgrade, connect@1 1"
        );
        let beside_the_old_primary = "make@1, beside a, beside a";
        let and_its_successor = "
            c: follow b
            b: make 6
            c: replay, promote, connect@1 1, make@1, beside b, beside b";
        let of = |rest| forgiven(&go_well(&format!("{upgraded}, {rest}"))[0]);
        if is_known {
            assert_eq!(of(beside_the_old_primary), [0; 7]);
            assert_eq!(of(and_its_successor), [0; 7]);
        } else {
            assert!(of(beside_the_old_primary)[6] > 0);
        }
    }
}
