//! flake_release: lets an adopted sequence count again.
//!
//! The numbers of IDs that were made meanwhile stay. Without a number to continue with, the sequence counts on above them and above the
//! greatest key, so no key is made twice, also if it was asked for and is inserted later.
#![allow(unsafe_code, reason = "an entry point")]

use pgrx::prelude::*;

use super::exchange::{self, New};
use super::feed::{Sequence, key_and_feed};
use super::{patience, persistently};
use crate::error::{Error, OrRaise, Undetailed};
use crate::functions::convert_table::key::{NOT_READY, Purpose};
use crate::functions::null_argument;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::postgres::procedure::Procedure;
use crate::postgres::random::random;
use crate::postgres::transaction::unless_locked;
use crate::postgres::{recovery, sequence};
use crate::sequences::registry;
use crate::session::layout_source::LayoutSource;
use crate::session::next_id;
use crate::session::stores::LAYOUTS;

entry_point!(flake_release(relation: pg_sys::Oid, next: i64, as_identity: bool), |call| {
    // SAFETY: nothing is borrowed that an error could leave borrowed.
    unsafe {
        guarded(|| {
            for (number, name) in [(0, "relation"), (2, "as_identity")] {
                if call.is_null(number) {
                    null_argument(name, "There is nothing to release.").raise();
                }
            }
            recovery::refuse(c"flake_release()");
            let next = (!call.is_null(1)).then_some(next);
            Procedure::run(call, |procedure| {
                persistently(procedure, relation, || release(relation, next, as_identity));
            });
            pg_sys::Datum::null()
        })
    }
});

/// Releases the sequence of a table's key, or one that no column uses. Returns None if a lock is in the way.
fn release(relation: pg_sys::Oid, next: Option<i64>, as_identity: bool) -> Option<()> {
    unless_locked(patience(), || {
        if sequence::parameters(relation).is_some() {
            Sequence::of(relation).lock();
            let old = Sequence::of(relation);
            let code = code(&old);
            let next = next.unwrap_or_else(|| above(&old, code));
            return exchange::alone(&old, &New::Open(next));
        }
        // The release uses only what it reads under the lock.
        key_and_feed(relation, Purpose::Release).0.lock();
        key_and_feed(relation, Purpose::Release).1.sequence.lock();
        let (key, feed) = key_and_feed(relation, Purpose::Release);
        let code = code(&feed.sequence);
        let next = next.unwrap_or_else(|| {
            let above = above(&feed.sequence, code);
            let greatest = key.greatest_from(above);
            greatest
                .map_or(Some(above), |greatest| greatest.checked_add(1))
                .unwrap_or_else(|| no_room(&feed.sequence).raise())
        });
        let new = if as_identity { New::Identity(next) } else { New::Open(next) };
        exchange::of_key(&key, &feed, &new);
    })
}

/// Returns the code of the layout by which a sequence was adopted.
fn code(sequence: &Sequence) -> i64 {
    registry::code(&sequence.parameters).unwrap_or_else(|| unreleasable(sequence).detail("It was not adopted.").raise())
}

/// Returns a number above all IDs of a locked sequence: the first of the tick after the next ID.
fn above(sequence: &Sequence, code: i64) -> i64 {
    let layout = registry::layout(sequence.oid, code).unwrap_or_else(|_| no_layout(sequence).raise());
    let id = next_id(&LAYOUTS, LayoutSource::by_name(layout.name().as_bytes()), random).or_raise();
    let tick = layout.tick_of(id).or_raise();
    layout.min_at(layout.start_of(tick + 1)).or_raise() as i64
}

fn no_layout(sequence: &Sequence) -> Error {
    unreleasable(sequence)
        .detail(
            "The database does not have its layout, so it is not known above which IDs the sequence has to continue.",
        )
        .hint("Name the number to continue with: CALL flake_release(…, next => …).")
}

fn no_room(sequence: &Sequence) -> Error {
    unreleasable(sequence)
        .detail("The greatest key of the table is the greatest bigint.")
        .hint("Name the number to continue with: CALL flake_release(…, next => …).")
}

fn unreleasable(sequence: &Sequence) -> Undetailed {
    Purpose::Release.refuse(&to_utf8_lossy(&sequence.name), NOT_READY)
}
