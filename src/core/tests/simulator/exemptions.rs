//! The cases that docs/explanation/guarantee.md does not cover, one function each. Every other duplicate is a failure. Each
//! function quotes the words of the page that it rests on, and `tests/repository/test_exemptions.py` compares them with the page.
//!
//! `one` and `other` have made the same ID, in either order.

use flake_core::TURNS;

use crate::oracle::{Branch, Made};
use crate::rows::Watermark;

/// The facts: all histories of WAL, and where databases come from.
pub struct Known<'a> {
    branches: &'a [Branch],
    databases: &'a [(usize, usize, usize)],
}

type Exemption = fn(&Known<'_>, &Made, &Made) -> bool;

pub const ALL: [(&str, Exemption); 6] = [
    ("another number of nodes", another_number_of_nodes),
    ("another database", another_database),
    ("a creation that was rolled back", a_creation_that_was_rolled_back),
    ("an upgraded copy", an_upgraded_copy),
    ("two servers that know nothing of each other", two_servers_that_know_nothing_of_each_other),
    ("a turn that comes again", a_turn_that_comes_again),
];

/// Returns the number of the exemption that covers two makers of the same ID.
pub fn of((branches, databases): (&[Branch], &[(usize, usize, usize)]), one: &Made, other: &Made) -> Option<usize> {
    // A server that still has its file needs no exemption, even if it has become a standby of another one in between.
    if one.server == other.server && one.life == other.life {
        return None;
    }
    let known = Known { branches, databases };
    ALL.iter().position(|(_, covers)| covers(&known, one, other))
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
    let is_one_history = one.branch == other.branch;
    one.upgrade != other.upgrade && (is_one_history || known.parted(one, other).is_some())
}

/// It rests on "Two servers made from one, if neither has replayed the other's promotion". Both can have the same turn.
fn two_servers_that_know_nothing_of_each_other(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    one.branch != other.branch && known.continues(one, other).is_none() && known.continues(other, one).is_none()
}

/// It rests on "A primary and its successor four promotions later (three, if PostgreSQL has skipped a number of a timeline), which has
/// the same turn: while the old one still runs".
fn a_turn_that_comes_again(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    known.parted(one, other).is_some_and(|promotions| promotions >= TURNS - 1)
}

/// It rests on "After a failover or the loss of `flake.mark`, watermarks of a transaction that created the
/// extension are not covered either". Only the file knew of them.
pub const fn has_a_page(watermark: &Watermark) -> bool {
    watermark.record < usize::MAX
}
