//! Shrinking: makes a story that fails as short and simple as it can be while it still fails in the same way.

use std::time::{Duration, Instant};

use crate::layouts::SECOND;
use crate::operator::Ending;
use crate::oracle::Failure;
use crate::play::Play;
use crate::story::{Act, Event, Making, Story};

/// The first words of a failure identify its kind.
fn kind(failure: &str) -> String {
    failure.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic)).take(5).collect()
}

/// Returns the simplest story found that still fails.
pub fn shrunk(mut story: Story, failure: &str, patience: Duration) -> Story {
    let began = Instant::now();
    let wanted = kind(failure);
    let fails = |story: &Story| Play::of(story, false).failure.is_some_and(|Failure(found)| kind(&found) == wanted);
    let accept = |story: &mut Story, simpler: Story| {
        let is_better = began.elapsed() < patience && simpler != *story && fails(&simpler);
        if is_better {
            *story = simpler;
        }
        is_better
    };
    loop {
        let before = story.clone();
        // Removes events, first many at once.
        let mut length = story.events.len().div_ceil(2);
        while length > 0 {
            let mut at = 0;
            while at < story.events.len() {
                let mut simpler = story.clone();
                simpler.events.drain(at..(at + length).min(story.events.len()));
                if !accept(&mut story, simpler) {
                    at += length;
                }
            }
            length /= 2;
        }
        for at in 0..story.events.len() {
            while simpler(story.events[at].1).into_iter().any(|event| {
                let mut simpler = story.clone();
                simpler.events[at].1 = event;
                accept(&mut story, simpler)
            }) {}
        }
        if story == before {
            return story;
        }
    }
}

/// Returns simpler events of the same kind.
fn simpler(event: Event) -> Vec<Event> {
    let rounder = |by: i64| {
        [0, by / (60 * SECOND) * 60 * SECOND, by / SECOND * SECOND, by / 250_000 * 250_000, by / 1000 * 1000, by / 2]
            .into_iter()
            .filter(move |simpler| simpler.abs() < by.abs())
    };
    match event {
        Event::Session(proc, act, stop) => {
            let acts = match act {
                Act::Make(making @ Making { kind, count, .. }) => {
                    let fewer = [1, count / 2, count - 1].into_iter().filter(|&fewer| 0 < fewer && fewer < count);
                    let fewer = fewer.map(|count| Making { count, ..making });
                    let kinds = (0..kind.min(1)).map(|kind| Making { kind, ..making });
                    let at_once = making.waits.then_some(Making { waits: false, ..making });
                    fewer.chain(kinds).chain(at_once).map(Act::Make).collect()
                }
                Act::Cover(ago) => rounder(ago).map(Act::Cover).collect(),
                Act::Churn(count) if count > 1 => vec![Act::Churn(count / 2), Act::Churn(count - 1)],
                Act::Finish { which: 1.., commits } => vec![Act::Finish { which: 0, commits }],
                Act::StartAbove(ahead) => rounder(ahead).map(Act::StartAbove).collect(),
                _ => Vec::new(),
            };
            let without_stop = stop.map(|_| act.by(proc));
            without_stop.into_iter().chain(acts.into_iter().map(|act| Event::Session(proc, act, stop))).collect()
        }
        Event::Pass(by) => rounder(by).map(Event::Pass).collect(),
        Event::Step(by) => rounder(by).map(Event::Step).collect(),
        Event::Stop(Ending::Reboot(_)) => vec![Event::Stop(Ending::Crash)],
        Event::Stop(Ending::Crash) => vec![Event::Stop(Ending::InOrder)],
        Event::LoseFile(Ending::Reboot(_) | Ending::Crash) => vec![Event::LoseFile(Ending::InOrder)],
        Event::Follow { source, node, keeps_file: true } => vec![Event::Follow { source, node, keeps_file: false }],
        _ => Vec::new(),
    }
}
