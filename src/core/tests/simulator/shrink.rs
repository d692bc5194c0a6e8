//! Shrinking: makes a story that fails as short and simple as it can be while it still fails in the same way.

use std::time::{Duration, Instant};

use crate::layouts::SECOND;
use crate::operator::Ending;
use crate::oracle::Failure;
use crate::play::Play;
use crate::story::{Event, Story};

/// The first cursors of a failure identify its kind.
fn kind(failure: &str) -> String {
    failure.split_whitespace().filter(|cursor| cursor.chars().all(char::is_alphabetic)).take(5).collect()
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
    let without_stop = match event {
        Event::Make { proc, kind, count, waits, stop: Some(_) } => {
            Some(Event::Make { proc, kind, count, waits, stop: None })
        }
        Event::GoOn { proc, stop: Some(_) } => Some(Event::GoOn { proc, stop: None }),
        Event::Exit { proc, stop: Some(_) } => Some(Event::Exit { proc, stop: None }),
        Event::Accept { proc, stop: Some(_) } => Some(Event::Accept { proc, stop: None }),
        Event::End { proc, commits, stop: Some(_) } => Some(Event::End { proc, commits, stop: None }),
        Event::Prepare { proc, stop: Some(_) } => Some(Event::Prepare { proc, stop: None }),
        Event::Finish { proc, which, commits, stop: Some(_) } => {
            Some(Event::Finish { proc, which, commits, stop: None })
        }
        Event::Cover { proc, ago, stop: Some(_) } => Some(Event::Cover { proc, ago, stop: None }),
        Event::Ask { proc, stop: Some(_) } => Some(Event::Ask { proc, stop: None }),
        Event::Publish { proc, stop: Some(_) } => Some(Event::Publish { proc, stop: None }),
        Event::Recreate { proc, stop: Some(_) } => Some(Event::Recreate { proc, stop: None }),
        Event::StartAbove { proc, ahead, stop: Some(_) } => Some(Event::StartAbove { proc, ahead, stop: None }),
        _ => None,
    };
    let others = match event {
        Event::Make { proc, kind, count, waits, stop } => {
            let fewer = [1, count / 2, count - 1].into_iter().filter(|&fewer| 0 < fewer && fewer < count);
            let fewer = fewer.map(|count| Event::Make { proc, kind, count, waits, stop });
            let kinds = (0..kind.min(1)).map(|kind| Event::Make { proc, kind, count, waits, stop });
            let at_once = waits.then_some(Event::Make { proc, kind, count, waits: false, stop });
            fewer.chain(kinds).chain(at_once).collect()
        }
        Event::Cover { proc, ago, stop } => rounder(ago).map(|ago| Event::Cover { proc, ago, stop }).collect(),
        Event::Churn { proc, count } if count > 1 => {
            vec![Event::Churn { proc, count: count / 2 }, Event::Churn { proc, count: count - 1 }]
        }
        Event::Finish { proc, which, commits, stop } if which > 0 => {
            vec![Event::Finish { proc, which: 0, commits, stop }]
        }
        Event::Pass { by } => rounder(by).map(|by| Event::Pass { by }).collect(),
        Event::Step { by } => rounder(by).map(|by| Event::Step { by }).collect(),
        Event::StartAbove { proc, ahead, stop } => {
            rounder(ahead).map(|ahead| Event::StartAbove { proc, ahead, stop }).collect()
        }
        Event::Stop { ending: Ending::Reboot(_) } => vec![Event::Stop { ending: Ending::Crash }],
        Event::Stop { ending: Ending::Crash } => vec![Event::Stop { ending: Ending::InOrder }],
        Event::LoseFile { ending: Ending::Reboot(_) | Ending::Crash } => {
            vec![Event::LoseFile { ending: Ending::InOrder }]
        }
        Event::Follow { source, node, keeps_file: true } => {
            vec![Event::Follow { source, node, keeps_file: false }]
        }
        _ => Vec::new(),
    };
    without_stop.into_iter().chain(others).collect()
}
