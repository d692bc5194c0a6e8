//! Checks of layouts: whether sessions have a share of them, and when they end.

use std::collections::BTreeSet;

use flake_core::{BUILTIN, IdSource, Layout, Node, Share, Slot, SnoSource, Ticks};

use super::finding::Finding;
use super::node::{Pair, fault};
use super::readers::Uses;
use crate::error::Error;
use crate::layouts::{catalog, custom};
use crate::postgres::slot;
use crate::postgres::timestamptz::Timestamptz;
use crate::session::stores::{LAYOUTS, SNOS, each};

const SNO: &str = "sno";
const SNO_PARTITION: &str = "sno in a partition of the caller's";

/// In microseconds.
const DAY: i64 = 86_400_000_000;
const YEAR: i64 = DAY * 1461 / 4;

/// The longest time for an ID, in whole microseconds: the steps in which the IDs of all sessions are in order.
const STEP: u128 = 16;

/// What IDs are made of.
struct Source {
    ticks: Ticks,
    /// The last tick up to which the order of IDs is the order of time.
    last_ordered: Option<u64>,
    share: Box<dyn Fn(Node, Slot) -> Result<Share, flake_core::Error>>,
}

impl Source {
    fn layout(layout: &'static Layout) -> Self {
        let share = Box::new(move |node, slot| layout.share(node, slot));
        Self { ticks: layout.ticks(), last_ordered: layout.last_ordered_tick(), share }
    }

    fn sno(partition: Option<i32>) -> Self {
        let sno = SnoSource { partition };
        let share = Box::new(move |node, slot| sno.share(node, slot));
        Self { ticks: sno.ticks(), last_ordered: Some(sno.ticks().last), share }
    }
}

/// A layout by which IDs can be made.
struct Candidate {
    name: String,
    /// An error if somebody has changed its definition.
    source: Result<Source, Error>,
    is_custom: bool,
    is_in_use: bool,
}

/// All layouts by which IDs can be made in this database.
pub struct Layouts(Vec<Candidate>);

impl Layouts {
    pub fn of_this_database(uses: &Uses) -> Self {
        let used = names_in_use(uses);
        let candidate = |name: String, is_custom, source| {
            let is_in_use = used.contains(&name);
            Candidate { name, source, is_custom, is_in_use }
        };
        let built_in = BUILTIN.iter().filter(|layout| layout.generates());
        let mut all: Vec<_> =
            built_in.map(|layout| candidate(layout.name().to_owned(), false, Ok(Source::layout(layout)))).collect();
        all.extend(
            [(SNO, None), (SNO_PARTITION, Some(0))]
                .map(|(name, partition)| candidate(name.to_owned(), false, Ok(Source::sno(partition)))),
        );
        all.extend(catalog::names().into_iter().filter_map(|name| {
            let source = custom::find(&name).transpose()?;
            Some(candidate(name, true, source.map(Source::layout)))
        }));
        Self(all)
    }

    /// Layouts of which a session has no share, or a small one, with the settings in force or with those that a restart would put in force.
    /// A built-in layout that nothing uses may have none.
    pub fn shares(&self, in_force: Option<Pair>, configured: Option<Pair>) -> Finding {
        let pairs: Vec<_> = [in_force, configured].into_iter().flatten().collect();
        if let Some(fault) = pairs.iter().copied().find_map(fault) {
            return Finding::from(&fault);
        }
        let nodes: Vec<_> = pairs.iter().filter_map(|&(id, count)| Node::new(id, count).ok()).collect();
        let Ok(slot) = slot::slot() else { return Finding::unknown("This session has no slot.") };
        if nodes.is_empty() {
            return Finding::unknown("This session does not know the number of this node.");
        }
        let (mut needed, mut unused, mut slow) = (Vec::new(), Vec::new(), Vec::new());
        for Candidate { name, source, is_custom, is_in_use } in &self.0 {
            let fault = match source {
                Ok(source) => match nodes.iter().map(|&node| (source.share)(node, slot)).collect::<Result<Vec<_>, _>>()
                {
                    Ok(shares) => {
                        let rate = shares
                            .iter()
                            .map(|share| share.ids_per_second(source.ticks.length))
                            .min()
                            .filter(|rate| 1_000_000 / rate.max(&1) > STEP);
                        slow.extend(rate.filter(|_| *is_in_use).map(|rate| format!("{rate} IDs of {name}")));
                        None
                    }
                    Err(error) => Some(Finding::from(&Error::Core(error))),
                },
                Err(error) => Some(Finding { detail: format!("{error}."), ..Finding::from(error) }),
            };
            match fault {
                Some(fault) if *is_custom || *is_in_use => needed.push((name, fault)),
                Some(_) => unused.push(name.as_str()),
                None => {}
            }
        }
        if let Some((_, first)) = needed.first() {
            let each = needed.iter().map(|(name, fault)| format!("{name}: {}", fault.detail));
            return Finding { detail: each.collect::<Vec<_>>().join(" "), hint: first.hint.clone(), ..*first };
        }
        if !slow.is_empty() {
            return Finding::wrong(
                format!(
                    "A session can make {} in a second, which is less than one in 16 microseconds.",
                    slow.join(", ")
                ),
                "Expect sessions that make many IDs at once to wait; use a layout with more worker and sequence bits, or a \
                 lower flake.node_count or max_connections.",
            );
        }
        if !unused.is_empty() {
            let unused = unused.join(", ");
            return Finding::fine(format!(
                "All layouts in use have shares; with these settings {unused} would have none."
            ));
        }
        Finding::fine("Every layout has a share for every session.")
    }

    /// Layouts in use, the one that ends first before the others.
    pub fn ends(&self, now: i64) -> Finding {
        let mut ends: Vec<_> = self
            .0
            .iter()
            .filter(|candidate| candidate.is_in_use)
            .filter_map(|Candidate { name, source, .. }| {
                let Source { ticks, last_ordered, .. } = source.as_ref().ok()?;
                let (end, order) = (ticks.start_of(ticks.last), last_ordered.map(|tick| ticks.start_of(tick)));
                Some(match order.filter(|order| *order < end) {
                    None => (end, format!("{name} ends {}.", relative(end, now))),
                    Some(order) => (
                        order,
                        format!(
                            "The order of {name} by time ends {}, and {name} {}.",
                            relative(order, now),
                            relative(end, now)
                        ),
                    ),
                })
            })
            .collect();
        ends.sort();
        let Some((earliest, _)) = ends.first() else {
            return Finding::fine("No column default and no generator of this session uses a layout.");
        };
        let is_far = *earliest - now >= 5 * YEAR;
        let detail = ends.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join(" ");
        if is_far {
            return Finding::fine(detail);
        }
        Finding::wrong(
            detail,
            "Use a layout with a later epoch or more timestamp bits before then; flake_create_layout creates one.",
        )
    }
}

/// Says when something is or was, in relation to now.
fn relative(instant: i64, now: i64) -> String {
    let at = Timestamptz::from_instant(instant).to_text();
    match instant.saturating_sub(now) {
        ..=0 => format!("at {at}, which is over"),
        time if time >= 2 * YEAR => format!("in {} years ({at})", time / YEAR),
        time => format!("in {} days ({at})", time / DAY),
    }
}

/// Returns the names of layouts that column defaults and generated columns of this database and generators of this session use.
fn names_in_use(uses: &Uses) -> BTreeSet<String> {
    let sno = |is_partition| if is_partition { SNO_PARTITION } else { SNO }.to_owned();
    let mut names = uses.named.clone();
    names.extend(uses.snos.iter().map(|&arguments| sno(arguments > 1)));
    names.extend(each(&LAYOUTS, |own| own.source().name().into_owned()));
    names.extend(each(&SNOS, |own| sno(own.source().partition.is_some())));
    names
}
