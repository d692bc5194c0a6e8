//! The cases that docs/explanation/guarantee.md does not cover, one function each. Every other duplicate is a failure. Each
//! function quotes the words of the page that it rests on, and `tests/repository/test_exemptions.py` compares them with the page.
//!
//! `one` and `other` have made the same ID, in either order.

use flake_core::ledger::marks::MARGIN;
use flake_core::ledger::state::AHEAD;

use crate::oracle::{Branch, Made};
use crate::rows::Horizon;
use crate::wal::Wal;

/// The facts: all histories of WAL, and when each server's clock was last set.
pub struct Known<'a> {
    branches: &'a [Branch],
    databases: &'a [(usize, usize, usize)],
    last_steps: &'a [i64],
}

type Exemption = fn(&Known<'_>, &Made, &Made) -> bool;

pub const ALL: [(&str, Exemption); 7] = [
    ("another database", another_database),
    ("two servers with one number", two_servers_with_one_number),
    ("a creation that was rolled back", a_creation_that_was_rolled_back),
    ("a clock that was set", a_clock_that_was_set),
    ("a number that had not come across", a_number_that_had_not_come_across),
    ("an old primary for too long", an_old_primary_for_too_long),
    ("a lease that had not come across", a_lease_that_had_not_come_across),
];

/// Returns the number of the exemption that covers two makers of the same ID.
pub fn of(
    (branches, databases): (&[Branch], &[(usize, usize, usize)]),
    last_steps: &[i64],
    one: &Made,
    other: &Made,
) -> Option<usize> {
    // A server that still has its file needs no exemption, even if it has become a standby of another one in between.
    if one.server == other.server && one.life == other.life {
        return None;
    }
    let known = Known { branches, databases, last_steps };
    ALL.iter().position(|(_, covers)| covers(&known, one, other))
}

impl Known<'_> {
    /// Returns the first branch by which one maker's history continues the other's.
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

    /// Returns the earlier maker, the later one, and the branch between them, if the later one has not replayed the earlier one's
    /// ID.
    fn parted<'a>(&'a self, one: &'a Made, other: &'a Made) -> Option<(&'a Made, &'a Made, &'a Branch)> {
        (!one.is_lease && !other.is_lease).then(|| self.divided(one, other))?
    }

    /// Like `parted`, but for leases too.
    fn divided<'a>(&'a self, one: &'a Made, other: &'a Made) -> Option<(&'a Made, &'a Made, &'a Branch)> {
        let forth = self.continues(other, one).map(|branch| (one, other, branch));
        let parted = forth.or_else(|| self.continues(one, other).map(|branch| (other, one, branch)))?;
        let (old, _, branch) = parted;
        branch.parent.is_some_and(|(_, end)| old.record > end).then_some(parted)
    }

    /// Whether neither history continues the other.
    fn are_strangers(&self, one: &Made, other: &Made) -> bool {
        one.branch != other.branch && self.continues(one, other).is_none() && self.continues(other, one).is_none()
    }
}

/// It rests on "in each database, IDs continue 2 seconds after the used time in the page of the mark". The rows of a template belong
/// to each database that was made of it.
fn another_database(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    let is_template = |old: &Made, new: &Made| {
        let (template, branch, record) = known.databases[new.number];
        old.number == template && old.branch == branch && old.record <= record
    };
    one.number != other.number && !is_template(one, other) && !is_template(other, one)
}

/// It rests on "covered if every server, also every standby, has a number of its own". Neither continues the other, so neither knows
/// what the other has used.
fn two_servers_with_one_number(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    known.are_strangers(one, other)
}

/// It rests on "IDs of a transaction that created the extension and was rolled back". The page was rolled back with the extension.
fn a_creation_that_was_rolled_back(_: &Known<'_>, one: &Made, other: &Made) -> bool {
    one.of_creator && one.record == usize::MAX || other.of_creator && other.record == usize::MAX
}

/// It rests on "IDs made within 3 seconds after the clock was set or accepted, if the standby had not replayed that before a failover".
/// Only the old primary's IDs count, and only its steps after the last record that was replayed.
fn a_clock_that_was_set(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    known
        .parted(one, other)
        .is_some_and(|(old, _, branch)| old.stepped >= branch.last && old.time < old.stepped + AHEAD)
}

/// It rests on "IDs that an old primary made under a new number, if the standby had not replayed a mark of that number before the
/// failover".
fn a_number_that_had_not_come_across(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    known.parted(one, other).is_some_and(|(old, _, branch)| {
        one.node != other.node || old.node != branch.node || !branch.is_known[old.database]
    })
}

/// It rests on "the replication lag and the time that both servers run must not exceed 2 seconds together. If the old primary made
/// no IDs in the last 2 seconds that were replicated, this limit is for the time that both run and the delay of the new one's clock".
fn an_old_primary_for_too_long(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    known.parted(one, other).is_some_and(|(old, new, branch)| {
        let is_lag = branch.is_active[old.database] && old.time < branch.last + MARGIN;
        // The old primary's clock may have been set back between the ID and the promotion.
        let delay = branch.delay.abs().max((old.clock - old.time) - (new.clock - new.time));
        let is_overlap = old.time < branch.promoted + MARGIN - delay && known.last_steps[new.server] < branch.promoted;
        !is_lag && !is_overlap
    })
}

/// It rests on "A lease that an old primary grants is covered if it was granted at most 2 seconds after the last WAL that the new
/// primary has replayed. A lease that was granted up to 2 seconds after the promotion is covered too, if both clocks are right and the
/// new primary leases the worker to another application".
fn a_lease_that_had_not_come_across(known: &Known<'_>, one: &Made, other: &Made) -> bool {
    (one.is_lease || other.is_lease)
        && known.divided(one, other).is_some_and(|(old, new, branch)| {
            let is_known = old.is_lease || branch.is_active[old.database];
            let ahead = (old.clock - old.time) - (new.clock - new.time);
            let is_over = new.is_lease && old.time + ahead.max(0) < branch.promoted + MARGIN;
            !(is_over || is_known && old.time < branch.last + MARGIN)
        })
}

/// It rests on "the same for readers who have replayed the WAL of that moment". A horizon that the old primary announced later
/// binds a new primary only under the old one's number, because that number's mark was ahead of the clock, and only if it is less
/// than two seconds later and the clocks differ by less than that.
pub fn horizon_that_has_come_across(old: &Branch, node: (u32, u32), horizon: &Horizon) -> bool {
    let is_set = old.stepped >= old.last || old.delay.abs() >= MARGIN;
    let database = horizon.database;
    let goes_on = node == old.node && old.is_known[database] && old.is_active[database];
    has_a_page(horizon) && !is_set && goes_on && horizon.time < old.last + MARGIN
}

/// It rests on "After `flake_accept_clock`, this server can make IDs below horizons that were returned before the call. If it later
/// takes over the data of another server, for example by `pg_rewind`, it can also make IDs below that server's horizons that were
/// returned before the call".
pub fn horizon_that_was_taken_back(taken_back: &[(i64, i64)], horizon: &Horizon) -> bool {
    taken_back.iter().any(|&(time, clock)| horizon.time <= time && horizon.instant > clock)
}

/// It rests on "below its later horizons too, if its clock was accepted less often". The server's file counts more acceptances than the
/// other's page.
pub fn horizon_that_an_acceptance_did_not_know(taken_back: &[(i64, i64)], horizon: &Horizon) -> bool {
    taken_back.iter().any(|&(_, clock)| horizon.instant > clock)
}

/// It rests on "If `flake.mark` is lost after the call, or an older copy is put back, two servers can make IDs below all horizons of this
/// server: a server that takes over its data, and this server itself if the file is lost or put back once more". Not all of its pages
/// tell how often its clock was accepted.
pub fn horizon_without_the_acceptance(wal: &Wal, horizon: &Horizon) -> bool {
    wal.acceptances_in(horizon.database) < wal.acceptances()
}

/// Otherwise this rests on "After a failover or the loss of `flake.mark`, horizons of a transaction that created the
/// extension are not covered either". Only the file knew of them.
pub const fn has_a_page(horizon: &Horizon) -> bool {
    horizon.record < usize::MAX
}
