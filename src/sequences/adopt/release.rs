//! flake_release: lets an adopted sequence count again.
//!
//! The numbers of IDs that were made meanwhile stay. Without a number to continue with, the sequence counts on from the greatest key, so
//! no key is made twice.
#![allow(unsafe_code, reason = "an entry point")]

use pgrx::prelude::*;
use pgrx::spi::SpiError;

use super::exchange::{self, New};
use super::feed::Sequence;
use super::{key_and_feed, patience, persistently};
use crate::error::{Error, Undetailed};
use crate::functions::convert_table::key::NOT_READY;
use crate::functions::convert_table::statements::run;
use crate::functions::null_argument;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::entry_point;
use crate::postgres::guard::guarded;
use crate::postgres::procedure::Procedure;
use crate::postgres::transaction::unless_locked;
use crate::postgres::{recovery, sequence};
use crate::sequences::registry;

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
    let act = || {
        Spi::connect_mut(|client| {
            if sequence::parameters(relation).is_some() {
                let old = Sequence::of(client, relation)?;
                require_adopted(&old);
                let next = next.unwrap_or_else(|| no_table(&old).raise());
                return exchange::alone(client, &old, &New::Open(next));
            }
            // The table's name for the lock; what is read under it counts.
            let (key, _) = key_and_feed(client, relation)?;
            run(client, [b"LOCK TABLE ", &key.table[..], b" IN ACCESS EXCLUSIVE MODE"].concat())?;
            let (key, feed) = key_and_feed(client, relation)?;
            require_adopted(&feed.sequence);
            let above = || key.greatest_from(i64::MIN).map_or(Some(1), |greatest| greatest.max(0).checked_add(1));
            let next = next.or_else(above).unwrap_or_else(|| no_room(&feed.sequence).raise());
            let new = if as_identity { New::Identity(next) } else { New::Open(next) };
            exchange::of_key(client, &key, &feed, &new)?;
            Ok::<_, SpiError>(())
        })
        .unwrap_or_else(|error| pgrx::error!("{error}"))
    };
    unless_locked(patience(), act)
}

fn require_adopted(sequence: &Sequence) {
    if registry::code(&sequence.parameters).is_none() {
        unreleasable(sequence).detail("It was not adopted.").raise();
    }
}

fn no_table(sequence: &Sequence) -> Error {
    unreleasable(sequence)
        .detail("No column uses the sequence, so it is not known above which keys it has to continue.")
        .hint("Name the number to continue with: CALL flake_release(…, next => …).")
}

fn no_room(sequence: &Sequence) -> Error {
    unreleasable(sequence)
        .detail("The greatest key of the table is the greatest bigint.")
        .hint("Name the number to continue with: CALL flake_release(…, next => …).")
}

fn unreleasable(sequence: &Sequence) -> Undetailed {
    Error::of(NOT_READY, format!("cannot release {}", to_utf8_lossy(&sequence.name)))
}
