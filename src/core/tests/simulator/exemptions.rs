//! The cases that docs/explanation/guarantee.md does not cover, a function each. Nothing else is forgiven.
//!
//! `one` and `other` have made the same ID, in either order.

use flake_core::ledger::marks::MARGIN;

use crate::oracle::{Branch, Made};
use crate::rows::Horizon;

/// The facts to judge by: the histories, and when each server's clock was last set.
pub struct Known<'a> {
    branches: &'a [Branch],
    databases: &'a [(usize, usize, usize)],
    last_steps: &'a [i64],
}

type Exemption = fn(&Known<'_>, &Made, &Made) -> bool;

pub const ALL: [(&str, Exemption); 6] = [
    ("another database", another_database),
    ("made in recovery", made_in_recovery),
    ("two servers with one number", two_servers_with_one_number),
    ("a creation that was rolled back", a_creation_that_was_rolled_back),
    ("a number that had not come across", a_number_that_had_not_come_across),
    ("an old primary for too long", an_old_primary_for_too_long),
];

/// Returns the number of the exemption that covers two makers of the same ID.
pub fn of(
    (branches, databases): (&[Branch], &[(usize, usize, usize)]),
    last_steps: &[i64],
    one: &Made,
    other: &Made,
) -> Option<usize> {
    // Nothing is forgiven to a server that has its file.
    if one.server == other.server && one.life == other.life {
        return None;
    }
    let known = Known { branches, databases, last_steps };
    ALL.iter().position(|(_, covers)| covers(&known, one, other))
}

impl Known<'_> {
    /// How the history of one continues that of another, if it does: its first own branch.
    fn continues(&self, new: &Made, old: &Made) -> Option<&Branch> {
        let mut branch = &self.branches[new.branch];
        loop {
            match branch.parent {
                Some((parent, _)) if parent == old.branch => return Some(branch),
                Some((parent, _)) => branch = &self.branches[parent],
                None => return None,
            }
        }
    }

    /// The earlier one, the later one, and the branch that parted.
    fn parted<'a>(&'a self, one: &'a Made, other: &'a Made) -> Option<(&'a Made, &'a Branch)> {
        let forth = self.continues(other, one).map(|branch| (one, branch));
        forth.or_else(|| self.continues(one, other).map(|branch| (other, branch)))
    }

    /// Whether one's history has all that the other had written when its transaction committed.
    fn is_replayed(&self, one: &Made, other: &Made) -> bool {
        let has = |(old, branch): (&Made, &Branch)| branch.parent.is_some_and(|(_, end)| old.record <= end);
        one.branch == other.branch || self.parted(one, other).is_some_and(has)
    }
}

/// After a failover, a recovery to a point in time or the loss of the file, the guarantee holds for each database, to which
/// the rows of its template belong.
fn another_database(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    let is_template = |old: &Made, new: &Made| {
        let (template, branch, record) = known.databases[new.number];
        old.number == template && old.branch == branch && old.record <= record
    };
    one.number != other.number && !is_template(one, other) && !is_template(other, one)
}

/// A standby cannot write the page, so once its file is lost nobody knows of its IDs.
fn made_in_recovery(_: &Known<'_>, one: &Made, other: &Made) -> bool {
    one.in_recovery || other.in_recovery
}

/// Neither continues the other, so neither knows what the other has used.
fn two_servers_with_one_number(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    one.branch != other.branch && known.parted(one, other).is_none()
}

/// A page that was rolled back with its extension did not travel.
fn a_creation_that_was_rolled_back(_: &Known<'_>, one: &Made, other: &Made) -> bool {
    one.of_creator && one.record == usize::MAX || other.of_creator && other.record == usize::MAX
}

/// The old primary had been given another number, or was about to be, when the new one parted from it; or its clock was set.
fn a_number_that_had_not_come_across(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    let is_new = |(old, branch): (&Made, &Branch)| {
        let is_set = branch.stepped >= branch.last || known.last_steps[old.server] >= branch.last;
        let is_known = old.node == branch.node && branch.is_known[old.database];
        one.node != other.node || !is_known || is_set
    };
    !known.is_replayed(one, other) && known.parted(one, other).is_some_and(is_new)
}

/// An old primary goes on for longer than its mark is ahead, and longer than a new one waits.
fn an_old_primary_for_too_long(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    let Some((old, branch)) = known.parted(one, other) else { return false };
    let new = if std::ptr::eq(old, one) { other } else { one };
    let is_lag = branch.is_active[old.database] && old.time < branch.last + MARGIN;
    let is_overlap = old.time < branch.promoted + MARGIN - branch.lag - branch.delay.abs()
        && known.last_steps[new.server] < branch.promoted;
    !known.is_replayed(one, other) && !is_lag && !is_overlap
}

/// A new primary is bound by what the old one has announced after its last record came across only if it goes on with the old
/// one's number, whose mark was ahead: for less than two seconds, and where the clocks are as near.
pub fn horizon_that_has_come_across(old: &Branch, node: (u32, u32), horizon: &Horizon) -> bool {
    let is_set = old.stepped >= old.last || old.delay.abs() >= MARGIN;
    let database = horizon.database;
    let goes_on = node == old.node && old.is_known[database] && old.is_active[database];
    has_a_page(horizon) && !is_set && goes_on && horizon.time < old.last + MARGIN
}

/// A server whose clock was accepted takes earlier horizons back also where it goes on with the data of another one.
pub fn horizon_that_was_taken_back(taken_back: &[(i64, i64)], horizon: &Horizon) -> bool {
    taken_back.iter().any(|&(time, clock)| horizon.time <= time && horizon.instant > clock)
}

/// A server accepts its clock after another one has parted from it, and later goes on with that one's data and its own file, which
/// counts more acceptances than the other's page: so it takes the other's later horizons for ones that it has taken back.
pub fn horizon_that_an_acceptance_did_not_know(taken_back: &[(i64, i64)], horizon: &Horizon) -> bool {
    taken_back.iter().any(|&(_, clock)| horizon.instant > clock)
}

/// Only the file knew of a horizon from a transaction that has created the extension, until that commits.
pub const fn has_a_page(horizon: &Horizon) -> bool {
    horizon.record < usize::MAX
}
