//! A simulator of whole deployments. It runs the protocol of the ledger and of watermarks as PostgreSQL's side does, with sessions
//! that stop at any point, transactions and snapshots, servers that crash, are promoted and copied, disks that tear, and clocks
//! that are set.
//!
//! A run plays stories, which it draws from a seed. `FLAKE_MODEL_CASES` is their number; if it is set, the seed is new, otherwise
//! it is always the same. A failure prints the shortest story found, and the seed from which `FLAKE_MODEL_SEED` repeats it.
//! `FLAKE_MODEL_SHRINK` is for how many seconds the run looks for a shorter story.

mod baton;
mod disk;
mod draw;
mod draw_long_ticks;
mod draw_takeovers;
mod endings;
mod exemptions;
mod exhaustive;
mod exhaustive_rows;
mod exhaustive_standby;
mod functions;
mod host;
mod layouts;
mod live;
mod machine;
mod operator;
mod oracle;
mod play;
mod procs;
mod rows;
mod session;
mod shrink;
mod standby;
mod stories;
mod stories_of_clocks;
mod stories_of_pages;
mod stories_of_primaries;
mod stories_of_rows;
mod stories_of_sessions;
mod story;
mod tailing;
mod wal;
mod watermark_host;

use std::time::{Duration, Instant};

use crate::draw::Chance;
use crate::oracle::Failure;
use crate::play::Play;
use crate::story::Story;

/// Prints a story that fails, in numbered sentences.
fn told(story: &Story) -> String {
    let world = Play::of(story, true);
    let sentences = world.told.unwrap_or_default();
    let lines: Vec<String> = (1..).zip(&sentences).map(|(number, sentence)| format!("{number}. {sentence}")).collect();
    let end = world.failure.map_or_else(String::new, |Failure(end)| end);
    format!("{}\n{end}", lines.join("\n"))
}

/// Keeps Rust from printing panics, because the simulator reports them itself.
fn be_quiet() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        if thread.name().is_some_and(|name| name != "main") || std::env::var_os("FLAKE_MODEL_PANICS").is_some() {
            eprintln!("{info}");
        }
    }));
}

/// Plays 4,000 stories, or as many as the environment says.
#[test]
fn no_id_is_made_twice() {
    be_quiet();
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let wanted = number("FLAKE_MODEL_CASES");
    let new_seed = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let seed = number("FLAKE_MODEL_SEED").unwrap_or_else(|| wanted.map_or(0, |_| new_seed()));
    let cases = wanted.unwrap_or(4000);
    let patience = Duration::from_secs(number("FLAKE_MODEL_SHRINK").unwrap_or(30));
    let (mut events, mut ids, mut switches) = (0, 0, 0);
    let mut forgiven = [0; exemptions::ALL.len()];
    let began = Instant::now();
    for case in 0..cases {
        let seed = seed.wrapping_add(case);
        let story = Chance(seed).story();
        let world = Play::of(&story, false);
        if let Some(Failure(failure)) = world.failure {
            eprintln!("after {case} deployments, FLAKE_MODEL_SEED={seed}: {failure}");
            let shrunk = shrink::shrunk(story, &failure, patience);
            panic!("after {case} deployments, FLAKE_MODEL_SEED={seed}:\n{}\n{shrunk:?}", told(&shrunk));
        }
        events += story.events.len();
        ids += world.oracle.made.len();
        switches += world.switches;
        forgiven.iter_mut().zip(world.oracle.forgiven).for_each(|(all, one)| *all += one);
    }
    let rate = cases as f64 / began.elapsed().as_secs_f64();
    println!("{cases} deployments, {events} events, {ids} IDs, {switches} switches, seed {seed}, {rate:.0} a second");
    let forgiven = exemptions::ALL.iter().zip(forgiven).map(|((name, _), count)| format!("{name}: {count}"));
    println!("not covered: {}", forgiven.collect::<Vec<_>>().join(", "));
}
