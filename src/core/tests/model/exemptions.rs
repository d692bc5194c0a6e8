//! What docs/guarantee.md does not cover, a function each. Nothing else is forgiven.
//!
//! `one` and `other` have made the same ID, in either order.

use crate::layouts::SECOND;
use crate::oracle::Batch;
use crate::wal::World;

/// How long IDs stay below the mark.
const LEAD: i64 = 2 * SECOND;
/// A server asks for time when so much is left. One that has made no ID of a new tick for longer is idle.
const RESERVE: i64 = SECOND;

type Exemption = fn(&World, &Batch, &Batch) -> bool;

pub const ALL: [(&str, Exemption); 6] = [
    ("different node counts", different_node_counts),
    ("two servers with one number", two_servers_with_one_number),
    ("a standby that is lost", a_standby_that_is_lost),
    ("lost by pg_rewind", lost_by_rewind),
    ("an old primary for too long", an_old_primary_for_too_long),
    ("another database", another_database),
];

/// Returns the number of the exemption that covers two batches with the same ID.
pub fn of(world: &World, one: &Batch, other: &Batch) -> Option<usize> {
    ALL.iter().position(|(_, covers)| covers(world, one, other) || covers(world, other, one))
}

/// Whether one server's log has all that the other had written when it made its IDs.
pub fn has_replayed(world: &World, one: &Batch, other: &Batch) -> bool {
    world.common(one.end, other.end) == other.end
}

/// Workers of one may have been the other's.
fn shares_workers(one: &Batch, other: &Batch) -> bool {
    one.node == other.node || one.node.count() != other.node.count()
}

/// Two servers disagree on the number of nodes, and neither knows what the other has used.
fn different_node_counts(world: &World, one: &Batch, other: &Batch) -> bool {
    let is_known = has_replayed(world, one, other) || has_replayed(world, other, one);
    one.server != other.server && one.node.count() != other.node.count() && !is_known
}

/// Two primaries that have no log in common, such as one that was rebuilt from a primary of another number.
fn two_servers_with_one_number(world: &World, one: &Batch, other: &Batch) -> bool {
    one.server != other.server && one.node == other.node && world.common(one.end, other.end) == 0
}

/// A standby cannot write WAL, so once its file is lost nobody knows of its IDs.
fn a_standby_that_is_lost(_: &World, one: &Batch, other: &Batch) -> bool {
    one.in_recovery && one.history != other.history && shares_workers(one, other)
}

/// What a server made after its log had parted, in ticks that were not over by its clock: pg_rewind has taken its file.
fn lost_by_rewind(world: &World, one: &Batch, other: &Batch) -> bool {
    let lost = one.server == other.server && one.history != other.history && other.was_rewound;
    lost && shares_workers(one, other) && !has_replayed(world, other, one) && one.until > other.opened
}

/// An old primary goes on for longer than IDs stay below the mark; or it had been idle, and the clock of the new one, when
/// that began, was behind by so much.
fn an_old_primary_for_too_long(world: &World, one: &Batch, other: &Batch) -> bool {
    let Some(lost) = world.after(world.common(one.end, other.end), one.end).and_then(|path| path.first().copied())
    else {
        return false;
    };
    let lost = world.record(lost);
    let is_late = (one.at - lost.at).max(one.clock - lost.clock) > LEAD;
    let was_idle = lost.clock.saturating_sub(lost.latest[one.database]) > RESERVE;
    shares_workers(one, other) && (is_late || was_idle) && one.clock - other.opened > LEAD
}

/// After a failover, a recovery to a point in time or the loss of the file, the guarantee holds for each database.
fn another_database(world: &World, one: &Batch, other: &Batch) -> bool {
    let goes_on = one.history != other.history && world.common(one.end, other.end) > 0;
    goes_on && shares_workers(one, other) && one.database != other.database
}
