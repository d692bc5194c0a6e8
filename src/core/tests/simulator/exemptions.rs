//! The cases that docs/explanation/guarantee.md does not cover, one function each. Every other duplicate is a failure. Each
//! function quotes the words of the page that it rests on, and `tests/repository/test_exemptions.py` compares them with the page.
//!
//! `one` and `other` have made the same ID, in either order.

use std::iter::successors;

use flake_core::TURNS;

use crate::oracle::{Branch, Made, Upgrade};
use crate::rows::Watermark;

/// The facts: all histories of WAL, where databases come from, and all upgrades.
pub struct Known<'a> {
    pub branches: &'a [Branch],
    pub databases: &'a [(usize, usize, usize)],
    pub upgrades: &'a [Upgrade],
}

type Exemption = fn(&Known<'_>, &Made, &Made) -> bool;

pub const ALL: [(&str, Exemption); 7] = [
    ("another number of nodes", another_number_of_nodes),
    ("another database", another_database),
    ("a creation that was rolled back", a_creation_that_was_rolled_back),
    ("an upgraded copy", an_upgraded_copy),
    ("two servers that know nothing of each other", two_servers_that_know_nothing_of_each_other),
    ("a turn that comes again", a_turn_that_comes_again),
    ("a turn that pg_upgrade forgets", a_turn_that_an_upgrade_forgets),
];

/// Returns the number of the exemption that covers two makers of the same ID.
pub fn of(known: &Known<'_>, one: &Made, other: &Made) -> Option<usize> {
    // A server that still has its file needs no exemption, even if it has become a standby of another one in between.
    if one.server == other.server && one.life == other.life {
        return None;
    }
    ALL.iter().position(|(_, covers)| covers(known, one, other))
}

impl Known<'_> {
    /// Returns the number of promotions from one maker's history to the other's, if the latter continues the former, and the last
    /// record that it has of it.
    fn continues(&self, new: &Made, old: &Made) -> Option<(u32, usize)> {
        let (mut branch, mut promotions) = (&self.branches[new.branch], 0);
        loop {
            let (parent, end) = branch.parent?;
            promotions += 1;
            if parent == old.branch {
                return Some((promotions, end));
            }
            branch = &self.branches[parent];
        }
    }

    /// Returns the number of promotions between the makers if the later one has not replayed the earlier one's ID.
    fn parted(&self, one: &Made, other: &Made) -> Option<u32> {
        let forth = self.continues(other, one).map(|parted| (one, parted));
        let (old, (promotions, end)) = forth.or_else(|| self.continues(one, other).map(|parted| (other, parted)))?;
        (old.record > end).then_some(promotions)
    }

    /// Returns the numbers of the upgrades of a maker's cluster, the last one first.
    fn upgrades_of(&self, made: &Made) -> Vec<usize> {
        let number = |upgrade| (upgrade > 0).then_some(upgrade);
        successors(number(made.upgrade), |&upgrade| number(self.upgrades[upgrade - 1].before)).collect()
    }
}

/// It rests on "All servers must have the same `flake.node_count`".
fn another_number_of_nodes(_: &Known<'_>, one: &Made, other: &Made) -> bool {
    one.node.1 != other.node.1
}

/// It rests on "IDs of different databases, when `flake.mark` is lost and IDs led the clock, or the clock is set back". The rows of
/// a template belong to each database that was made of it.
fn another_database(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    let is_template = |old: &Made, new: &Made| {
        let (template, branch, record) = known.databases[new.number];
        old.number == template && old.branch == branch && old.record <= record
    };
    one.number != other.number && !is_template(one, other) && !is_template(other, one)
}

/// It rests on "IDs of a transaction that created the extension and was rolled back". The page was rolled back with the extension.
fn a_creation_that_was_rolled_back(_: &Known<'_>, one: &Made, other: &Made) -> bool {
    one.of_creator && one.record == usize::MAX || other.of_creator && other.record == usize::MAX
}

/// It rests on "An upgraded copy, if the original or a promoted standby of it still makes IDs". pg_upgrade begins at the first timeline
/// again.
fn an_upgraded_copy(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    let (old, new) = if one.upgrade < other.upgrade { (one, other) } else { (other, one) };
    let is_of_original = old.branch == new.branch || known.continues(old, new).is_some();
    let are_both_copies = old.upgrade > 0 && !known.upgrades_of(new).contains(&old.upgrade);
    old.upgrade != new.upgrade && (is_of_original || are_both_copies && known.parted(one, other).is_some())
}

/// It rests on "Two servers made from one, if neither has replayed the other's promotion". Both can have the same turn.
fn two_servers_that_know_nothing_of_each_other(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    one.branch != other.branch && known.continues(one, other).is_none() && known.continues(other, one).is_none()
}

/// It rests on "A primary and its successor four promotions later (three, if PostgreSQL has skipped a number of a timeline, or one of
/// them was a `pg_upgrade`), which has the same turn: while the old one still runs".
fn a_turn_that_comes_again(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    let upgrades = known.upgrades_of(one).len().abs_diff(known.upgrades_of(other).len());
    known.parted(one, other).is_some_and(|promotions| promotions + upgrades as u32 >= TURNS - 1)
}

/// It rests on "A server after `pg_upgrade`, if a database was not used between the last promotion and `pg_upgrade`".
fn a_turn_that_an_upgrade_forgets(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    let forgets = |made| known.upgrades_of(made).iter().any(|&upgrade| known.upgrades[upgrade - 1].forgets);
    known.parted(one, other).is_some() && (forgets(one) || forgets(other))
}

/// It rests on "After a failover or the loss of `flake.mark`, watermarks of a transaction that created the
/// extension are not covered either". Only the file knew of them.
pub const fn has_a_page(watermark: &Watermark) -> bool {
    watermark.record < usize::MAX
}
