//! Shrinking: a story that fails, made as short and as round as it can be while it still fails.

use std::time::{Duration, Instant};

use crate::layouts::{KINDS, SECOND};
use crate::server::SLOTS;
use crate::story::{Event, Story};

/// Returns the simplest story found that still fails.
pub fn shrunk(mut story: Story, fails: impl Fn(&Story) -> bool, patience: Duration) -> Story {
    let began = Instant::now();
    let accept = |story: &mut Story, simpler: Story| {
        let is_better = began.elapsed() < patience && simpler != *story && fails(&simpler);
        if is_better {
            *story = simpler;
        }
        is_better
    };
    loop {
        let before = story.clone();
        // Without some of its events: first many at once.
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
        let mut at = 0;
        while at < story.events.len() {
            let (server, mut simplest) = story.events[at];
            while simpler(simplest).into_iter().any(|events| {
                let mut simpler = story.clone();
                let event = events[0];
                simpler.events.splice(at..=at, events.into_iter().map(|event| (server, event)));
                let is_simpler = accept(&mut story, simpler);
                if is_simpler {
                    simplest = event;
                }
                is_simpler
            }) {}
            at += 1;
        }
        if story == before {
            return story;
        }
    }
}

/// Returns what may take the place of an event, each simpler.
fn simpler(event: Event) -> Vec<Vec<Event>> {
    let make = |slot| move |kind| Event::Make { slot, kind, count: 1 };
    match event {
        Event::MakeOfMany { slot, .. } => (0..KINDS).map(make(slot)).map(|one| vec![one]).collect(),
        Event::Accept { go_on: true } => {
            let accept = [Event::Accept { go_on: false }, Event::Step { by: 61 * SECOND }];
            let made = (0..SLOTS).flat_map(|slot| (0..KINDS).map(make(slot)));
            [accept[..1].to_vec(), accept.to_vec()]
                .into_iter()
                .chain(made.map(|made| [&accept[..], &[made]].concat()))
                .collect()
        }
        _ => rounded(event).into_iter().map(|event| vec![event]).collect(),
    }
}

/// Returns events that come nearer to the simplest one of their kind.
fn rounded(event: Event) -> Vec<Event> {
    let rounder = |by: i64| {
        [0, by / (60 * SECOND) * 60 * SECOND, by / SECOND * SECOND, by / 100_000 * 100_000, by / 1000 * 1000, by / 2]
            .into_iter()
            .filter(move |simpler| simpler.abs() < by.abs())
    };
    match event {
        Event::Make { slot, kind, count } if count > 1 => {
            [1, count / 2, count - 1].map(|count| Event::Make { slot, kind, count }).to_vec()
        }
        Event::End { slot, how, stops: true } => vec![Event::End { slot, how, stops: false }],
        Event::Begin { slot, writes: true, has_one_snapshot } => {
            vec![Event::Begin { slot, writes: false, has_one_snapshot }]
        }
        Event::Ask { slot, is_newer, stops: true } => vec![Event::Ask { slot, is_newer, stops: false }],
        Event::Ask { slot, is_newer: true, stops } => vec![Event::Ask { slot, is_newer: false, stops }],
        Event::Pass { by } => rounder(by).map(|by| Event::Pass { by }).collect(),
        Event::Step { by } => rounder(by).map(|by| Event::Step { by }).collect(),
        Event::ToSkipped { by } => rounder(by).map(|by| Event::ToSkipped { by }).collect(),
        Event::StartAbove { ahead } => rounder(ahead).map(|ahead| Event::StartAbove { ahead }).collect(),
        Event::Restart { ending, step, slots, preloads } => {
            let fewer = (slots > 3).then_some(Event::Restart { ending, step, slots: 3, preloads });
            let usual = preloads.then_some(Event::Restart { ending, step, slots, preloads: false });
            let steps = rounder(step).map(|step| Event::Restart { ending, step, slots, preloads });
            steps.chain(fewer).chain(usual).collect()
        }
        Event::Restore { without, step } => rounder(step).map(|step| Event::Restore { without, step }).collect(),
        _ => Vec::new(),
    }
}
