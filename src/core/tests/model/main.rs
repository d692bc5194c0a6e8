//! A model of whole deployments: primaries and standbys with slots, logs, disks and clocks of their own, to which all that can
//! happen to servers happens in random order, while others read by horizons.
//!
//! `FLAKE_MODEL_CASES` is the number of deployments; they are new ones then, and otherwise always the same. A failure prints the
//! shortest story found, and the seed that `FLAKE_MODEL_SEED` takes to begin with it.

mod access;
mod draw;
mod exemptions;
mod horizon;
mod layouts;
mod operator;
mod oracle;
mod server;
mod session;
mod shrink;
mod standby;
mod story;
mod transaction;
mod wal;

use std::time::Duration;

use crate::draw::Chance;
use crate::layouts::{LAYOUTS, SECOND};
use crate::operator::Ending;
use crate::oracle::Failure;
use crate::story::{Event, Play, Story};

const MOST_EVENTS: usize = 1000;

fn play(story: &Story, is_told: bool) -> (Play, Result<(), Failure>) {
    let mut play = Play::new(story.own_numbers, is_told);
    let result = play.all(&story.events);
    (play, result)
}

/// Tells a story that fails, in numbered sentences.
fn told(story: &Story) -> String {
    let (play, result) = play(story, true);
    let sentences = play.told.unwrap_or_default();
    let lines: Vec<String> = (1..).zip(&sentences).map(|(number, sentence)| format!("{number}. {sentence}")).collect();
    let end = result.err().map_or_else(String::new, |Failure(end)| end);
    format!("{}\n{end}", lines.join("\n"))
}

#[test]
fn no_id_is_made_twice_and_no_row_appears_below_a_horizon() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let wanted = number("FLAKE_MODEL_CASES");
    let new_seed = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("FLAKE_MODEL_SEED").unwrap_or_else(|| wanted.map_or(0, |_| new_seed()));
    let cases = wanted.unwrap_or(4000);
    let (mut events, mut ids, mut rows, mut horizons) = (0, 0, 0, 0);
    let mut forgiven = [0; exemptions::ALL.len()];
    for case in 0..cases {
        let seed = seed.wrapping_add(case);
        let story = Chance(seed).story(MOST_EVENTS);
        let (played, result) = play(&story, false);
        if result.is_err() {
            let shrunk = shrink::shrunk(story, |story| play(story, false).1.is_err(), Duration::from_secs(60));
            panic!("after {case} deployments, FLAKE_MODEL_SEED={seed}:\n{}\n{shrunk:?}", told(&shrunk));
        }
        events += story.events.len();
        ids += played.oracle.ids();
        rows += played.oracle.rows;
        horizons += played.oracle.horizons;
        forgiven.iter_mut().zip(played.oracle.forgiven).for_each(|(all, one)| *all += one);
    }
    println!("{cases} deployments, {events} events, {ids} IDs, {rows} rows, {horizons} horizons, seed {seed}");
    let forgiven = exemptions::ALL.iter().zip(forgiven).map(|((name, _), count)| format!("{name}: {count}"));
    println!("not covered: {}", forgiven.collect::<Vec<_>>().join(", "));
}

/// Plays what happens to the first server.
fn goes_well(events: impl IntoIterator<Item = Event>) {
    let story = Story { own_numbers: false, events: events.into_iter().map(|event| (0, event)).collect() };
    assert!(play(&story, false).1.is_ok(), "{}", told(&story));
}

/// A story that is rarely found at random: a unit of sno that begins unused, but ends in skipped time, where it was used.
#[test]
fn a_unit_that_reaches_into_skipped_time_is_not_gone_back_to() {
    let sno = Event::Make { slot: 1, kind: LAYOUTS, count: 6 };
    goes_well([
        Event::Make { slot: 0, kind: 0, count: 1 },
        Event::Pass { by: 10 * SECOND + 1116 },
        sno,
        Event::Step { by: -2066 },
        Event::Accept { go_on: false },
        Event::Pass { by: 1793 },
        Event::Make { slot: 0, kind: 0, count: 15 },
        Event::Exit { slot: 1, in_order: true },
        Event::Step { by: -19 },
        sno,
    ]);
}

/// The file is lost, and the server has been making IDs in one database when its first session of another one comes: what was
/// made there before, the ledger still does not know.
#[test]
fn a_database_that_is_used_later_raises_the_ledger_too() {
    let make = |slot, kind, count| Event::Make { slot, kind, count };
    goes_well([
        make(1, 1, 1),
        Event::Pass { by: SECOND + SECOND / 5 },
        make(1, 1, 4),
        Event::Restart { ending: Ending::LosesFile, step: -3 * SECOND - SECOND / 5, slots: 3, preloads: false },
        make(0, 0, 1),
        Event::Pass { by: 3 * SECOND + SECOND / 3 },
        make(0, 0, 2),
        make(1, 1, 4),
    ]);
}
