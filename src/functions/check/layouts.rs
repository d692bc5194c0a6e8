//! Checks of layouts: whether this server has IDs of them, and when their time ends.

use std::collections::BTreeSet;

use flake_core::ledger::cursors::claims::Quota;
use flake_core::sno::NAME;
use flake_core::{BUILTIN, IdSource, Lanes, Layout, MAX_STEP_MICROS, Node, Part, SnoSource, Ticks};

use super::finding::{Finding, described, first};
use super::node::Pair;
use super::uses::Uses;
use crate::error::{Error, listed};
use crate::layouts::custom;
use crate::postgres::memory::{collect_or_raise, push, require};
use crate::postgres::timestamptz::to_text;
use crate::session::stores::{LAYOUTS, SNOS, each};

const SNO_PARTITION: &str = "sno in a partition of the caller's";

/// How many layouts in use are listed.
const MOST_ENDS: usize = 100;

/// In microseconds.
const DAY: i64 = 86_400_000_000;
const YEAR: i64 = DAY * 1461 / 4;

/// A layout or sno, as a source of IDs.
struct Source {
    ticks: Ticks,
    /// The last tick up to which IDs sort by time.
    last_ordered: Option<u64>,
    lanes: Box<dyn Fn(Node) -> Result<Lanes, flake_core::Error>>,
}

impl Source {
    fn of<S: IdSource + 'static>(source: S, last_ordered: Option<u64>) -> Self {
        Self {
            ticks: source.ticks(),
            last_ordered,
            lanes: Box::new(move |node| source.lanes(Part::in_turn(node, 0, 0))),
        }
    }

    fn layout(layout: &'static Layout) -> Self {
        Self::of(layout, layout.last_ordered_tick())
    }

    fn sno(partition: Option<i32>) -> Self {
        let sno = SnoSource { partition };
        Self::of(sno, Some(sno.ticks().last))
    }
}

/// A layout that can make IDs.
struct Candidate {
    name: String,
    /// An error if its definition was changed.
    source: Result<Source, Error>,
    is_custom: bool,
    is_in_use: bool,
}

impl Candidate {
    /// Returns how many IDs can be made in a second, on the one of these nodes that can make the fewest.
    fn rate(&self, nodes: &[Node]) -> Result<u128, Finding> {
        let source =
            self.source.as_ref().map_err(|error| Finding { detail: format!("{error}."), ..Finding::from(error) })?;
        nodes.iter().try_fold(u128::MAX, |least, &node| {
            let lanes = (source.lanes)(node).map_err(|error| Finding::from(&Error::from(error)))?;
            Ok(least.min(lanes.ids_per_second(source.ticks.length)))
        })
    }
}

/// All layouts that can make IDs in this database.
pub struct Layouts(Vec<Candidate>);

impl Layouts {
    pub fn of_this_database(uses: &Uses) -> Self {
        let used = names_in_use(uses);
        let built_in = BUILTIN.iter().filter(|layout| layout.generates);
        let built_in = built_in.map(|layout| (layout.name().to_owned(), Ok(Source::layout(layout)), false));
        let snos = [(&*NAME, None), (SNO_PARTITION, Some(0))];
        let snos = snos.map(|(name, partition)| (name.to_owned(), Ok(Source::sno(partition)), false));
        let custom = custom::all().map(|(name, layout)| (name, layout.map(Source::layout), true));
        let candidate =
            |(name, source, is_custom)| Candidate { is_in_use: used.contains(&name), name, source, is_custom };
        Self(collect_or_raise(built_in.chain(snos).chain(custom).map(candidate)))
    }

    /// Finds layouts whose IDs this server cannot make, or only few, with the settings in force or with the settings after a restart.
    /// A built-in layout that nothing uses need not have any. `lanes` is how many the custom layouts have.
    pub fn rates(&self, in_force: Option<Pair>, configured: Option<Pair>, lanes: Option<Quota>) -> Finding {
        let pairs = [in_force, configured].into_iter().flatten();
        let nodes: Vec<_> = match pairs.map(|(id, count)| Node::new(id, count)).collect() {
            Ok(nodes) => nodes,
            Err(error) => return Finding::from(&Error::from(error)),
        };
        if nodes.is_empty() {
            return Finding::unknown("This session does not know the number of this node.");
        }
        let (mut needed, mut unused, mut slow) = (Vec::new(), Vec::new(), Vec::new());
        for candidate in &self.0 {
            require();
            let Candidate { name, is_custom, is_in_use, .. } = candidate;
            match candidate.rate(&nodes) {
                Ok(rate) if *is_in_use && 1_000_000 / rate.max(1) > MAX_STEP_MICROS.into() => {
                    push(&mut slow, format!("{rate} IDs of {name}"))
                }
                Ok(_) => {}
                Err(fault) if *is_custom || *is_in_use => push(&mut needed, (name, fault)),
                Err(_) => unused.push(name.as_str()),
            }
        }
        if let Some((_, first)) = needed.first() {
            let each = collect_or_raise(needed.iter().map(|(name, fault)| format!("{name}: {}", fault.detail)));
            return Finding { detail: described(each.iter()), hint: first.hint.clone(), ..*first };
        }
        if !slow.is_empty() {
            return Finding::wrong(
                format!(
                    "All sessions together can make {} in a second, which is less than one in 16 microseconds.",
                    listed(slow.iter(), "others")
                ),
                "Expect sessions that make many IDs at once to wait; use a layout with more worker and sequence bits, or a \
                 lower flake.node_count.",
            );
        }
        if let Some(Quota { taken, most }) = lanes.filter(|lanes| lanes.taken > lanes.most / 4 * 3) {
            return Finding::wrong(
                format!("The custom layouts of this database have {taken} lanes, and can have {most}."),
                "Use fewer layouts, or restart the server now and then: a layout that was dropped keeps its lanes until the restart.",
            );
        }
        if !unused.is_empty() {
            let unused = unused.join(", ");
            return Finding::fine(format!(
                "This server can make IDs of all layouts in use; with these settings it could make none of {unused}."
            ));
        }
        Finding::fine("This server can make IDs of every layout.")
    }

    /// Lists layouts in use, beginning with the one that ends first.
    pub fn ends(&self, now: i64) -> Finding {
        let in_use = || {
            let used = self.0.iter().filter(|candidate| candidate.is_in_use);
            used.filter_map(|candidate| Some((&candidate.name, candidate.source.as_ref().ok()?)))
        };
        let ends = in_use().map(|(name, Source { ticks, last_ordered, .. })| {
            let end = ticks.start_of(ticks.last);
            let order = last_ordered.map_or(end, |tick| ticks.start_of(tick));
            let (until, order_until) = (relative(end, now), relative(order, now));
            (
                order,
                match order < end {
                    true => format!("The order of {name} by time ends {order_until}, and {name} {until}."),
                    false => format!("{name} ends {until}."),
                },
            )
        });
        let ends: BTreeSet<_> = ends.inspect(|_| require()).collect();
        let Some((earliest, _)) = ends.first() else {
            return Finding::fine("No column default uses a layout, and this session has not made IDs.");
        };
        let begins = in_use().filter_map(|(name, source)| {
            let epoch = source.ticks.start_of(0);
            (now < epoch).then(|| format!("{name} begins {}.", relative(epoch, now)))
        });
        let begins = collect_or_raise(begins);
        if !begins.is_empty() {
            return Finding::wrong(
                format!("The clock says {}. {}", to_text(now), described(begins.iter())),
                "Check the server's clock; a server that has just started may not have synchronized it yet.",
            );
        }
        let is_far = *earliest - now >= 5 * YEAR;
        let detail = first(ends.iter().map(|(_, text)| text), MOST_ENDS);
        if is_far {
            return Finding::fine(detail);
        }
        Finding::wrong(
            detail,
            "Use a layout with a later epoch or more timestamp bits before then; flake_create_layout creates one.",
        )
    }
}

/// Writes how long an instant is before or after now.
fn relative(instant: i64, now: i64) -> String {
    let at = to_text(instant);
    match instant.saturating_sub(now) {
        ..=0 => format!("at {at}, which is over"),
        time if time >= 2 * YEAR => format!("in {} years ({at})", time / YEAR),
        time => format!("in {} days ({at})", time / DAY),
    }
}

/// Returns the layouts that column defaults, generated columns of this database, and generators of this session use.
fn names_in_use(uses: &Uses) -> BTreeSet<String> {
    let sno = |is_partition| if is_partition { SNO_PARTITION } else { &NAME }.to_owned();
    let mut names = uses.named.clone();
    names.extend(uses.snos.iter().map(|&is_partition| sno(is_partition)));
    names.extend(each(&LAYOUTS, |own| own.source().name().into_owned()));
    names.extend(each(&SNOS, |own| sno(own.source().partition.is_some())));
    names
}
