//! flake_adopt: lets a sequence return IDs, and the key that it feeds.
//!
//! The danger is a key above the next ID, as for flake_convert, whose proof this uses: before the table's lock and under it. The lock is
//! waited for a short time only, because whoever uses the table waits behind; then other transactions may run, and it is tried again.
//! All names are qualified, because the caller's search_path is in force.
#![allow(unsafe_code, reason = "entry points, and a row")]

mod exchange;
mod feed;
mod release;
mod route;
mod schema;

use flake_core::{Layout, sequence_code};
use pgrx::PgSqlErrorCode::*;
use pgrx::prelude::*;

use self::exchange::New;
use self::feed::{Feed, Sequence, key_and_feed};
use super::registry;
use crate::error::{Error, OrRaise, altered_type};
use crate::functions::convert_table::key::{Key, NOT_READY, Purpose, lookalikes};
use crate::functions::convert_table::proof::{check, floor, prove, warn_of};
use crate::functions::null_argument;
use crate::layouts::by_name;
use crate::postgres::call::Text;
use crate::postgres::encoding::to_utf8_lossy;
use crate::postgres::entry_point::entry_point;
use crate::postgres::extension::{self, Extension};
use crate::postgres::guard::guarded;
use crate::postgres::interrupts;
use crate::postgres::literal::quoted;
use crate::postgres::local_settings::lock_timeout;
use crate::postgres::procedure::Procedure;
use crate::postgres::rows::row;
use crate::postgres::transaction::unless_locked;
use crate::postgres::{recovery, relation, sequence, sequence_page};

/// How long a try waits for locks, in milliseconds, unless lock_timeout is shorter.
const PATIENCE: i32 = 100;
/// How long others run between two tries, in milliseconds, and how many tries there are: about half a minute.
const PAUSE: i64 = 400;
const TRIES: u32 = 60;

entry_point!(flake_adopt(relation: pg_sys::Oid, layout: Text<'_>), |call| {
    // SAFETY: nothing is borrowed that an error could leave borrowed.
    unsafe {
        guarded(|| {
            // A misspelled to_regclass(…) is NULL.
            if let Some(number @ 0..=1) = call.first_null() {
                null_argument(["relation", "layout"][number], "There is nothing to adopt, or no layout.").raise();
            }
            let layout = layout.bytes();
            recovery::refuse(c"flake_adopt()");
            let layout = adoptable(layout);
            let undo = Procedure::run(call, |procedure| persistently(procedure, relation, || adopt(relation, layout)));
            // SAFETY: the column has this type, and nothing else is cached. A text is stored like a bytea.
            let row = row(call, [pg_sys::TEXTOID], [undo.as_slice().into_datum()]);
            row.ok_or_else(|| altered_type("record")).or_raise()
        })
    }
});

/// Returns the layout of this name, unless its IDs cannot be the numbers of a sequence.
fn adoptable(name: &[u8]) -> &'static Layout {
    let layout = by_name(name);
    if !layout.increases() {
        Error::invalid(format!("layout \"{}\" does not fit a sequence", layout.name()))
            .detail("Its IDs do not increase, and applications take the greatest key of a sequence for the newest one.")
            .hint("Use a layout for which the column \"increasing\" of the view flake_layouts is true.")
            .raise();
    }
    layout
}

/// Calls `act` until no lock is in its way, each time in another transaction if that is allowed.
fn persistently<R>(procedure: &Procedure, relation: pg_sys::Oid, act: impl Fn() -> Option<R>) -> R {
    for _ in 1..TRIES {
        if let Some(result) = act() {
            procedure.commit();
            return result;
        }
        procedure.commit();
        interrupts::sleep(PAUSE, interrupts::wait_event(c"FlakeAdopt"));
    }
    act().unwrap_or_else(|| {
        let name = sequence::name(relation);
        Error::of(ERRCODE_LOCK_NOT_AVAILABLE, format!("could not lock \"{name}\" in {TRIES} tries"))
            .detail("Transactions that use it were open each time. Nothing has been changed.")
            .hint("End long transactions, and call the procedure again.")
            .raise()
    })
}

/// How long a try may wait for a lock.
fn patience() -> u32 {
    match lock_timeout() {
        0 => PATIENCE,
        set => set.min(PATIENCE),
    }
    .unsigned_abs()
}

/// Adopts the sequence of a table's key, or one that no column uses. Returns the statement that undoes it, or None if a lock is in the
/// way.
fn adopt(relation: pg_sys::Oid, layout: &Layout) -> Option<Vec<u8>> {
    if sequence::parameters(relation).is_some() {
        return adopt_alone(relation, layout);
    }
    let (key, _) = adoptable_key(relation, layout);
    // If many rows were deleted, it takes long to find the greatest key. No session waits for the lock yet.
    prove(&key, layout, true);
    let suspects = lookalikes(&key, layout);
    let undo = unless_locked(patience(), || under_lock(&key, layout));
    if undo.is_some() {
        warn_of(&to_utf8_lossy(&key.table), &suspects);
    }
    undo
}

/// Locks a table, proves again that its keys are below the next ID, and adopts the sequence of its key.
fn under_lock(key: &Key, layout: &Layout) -> Vec<u8> {
    key.lock();
    let (_, feed) = adoptable_key(key.oid, layout);
    // A session that has used the sequence without the table may still get numbers of it.
    feed.sequence.lock();
    let (key, feed) = adoptable_key(key.oid, layout);
    prove(&key, layout, false);
    let undo = undo(&key.table, &feed.sequence, key.is_identity);
    exchange::of_key(&key, &feed, &New::Closed(sequence_code(layout.name())));
    undo
}

/// Adopts a sequence that no column uses: an application calls nextval of it. Returns the statement that undoes it, or None if a lock is
/// in the way.
fn adopt_alone(oid: pg_sys::Oid, layout: &Layout) -> Option<Vec<u8>> {
    let sequence = adoptable_alone(oid, layout);
    // A layout whose time is over makes no ID, and the application would get errors.
    floor(Purpose::Adopt, &to_utf8_lossy(&sequence.name), layout);
    unless_locked(patience(), || {
        Sequence::of(oid).lock();
        let old = adoptable_alone(oid, layout);
        let undo = undo(&old.name, &old, false);
        exchange::alone(&old, &New::Closed(sequence_code(layout.name())));
        undo
    })
}

/// Returns a sequence that no column uses, if it can be adopted.
fn adoptable_alone(oid: pg_sys::Oid, layout: &Layout) -> Sequence {
    let old = Sequence::of(oid);
    require_native(&old, layout);
    old.require_unused(None);
    if let Some(table) = sequence::owner(oid) {
        let table = to_utf8_lossy(&relation::quoted_name(table).unwrap_or_default()).into_owned();
        Purpose::Adopt
            .refuse(&to_utf8_lossy(&old.name), NOT_READY)
            .detail(format!("A column of table {table} owns it."))
            .hint("Name the table instead of the sequence.")
            .raise();
    }
    old
}

/// The same, if the sequence can be adopted.
fn adoptable_key(table: pg_sys::Oid, layout: &Layout) -> (Key, Feed) {
    let (key, feed) = key_and_feed(table, Purpose::Adopt);
    let name = to_utf8_lossy(&key.table);
    check(Purpose::Adopt, &name, layout);
    require_native(&feed.sequence, layout);
    if key.is_always {
        let column = to_utf8_lossy(&key.column);
        Purpose::Adopt
            .refuse(&name, NOT_READY)
            .detail(format!("Its key {column} is GENERATED ALWAYS. With a default instead, clients could choose keys."))
            .hint(format!("If they may, run ALTER TABLE {name} ALTER COLUMN {column} SET GENERATED BY DEFAULT first."))
            .raise();
    }
    feed.sequence.require_unused(Some(&key));
    (key, feed)
}

/// Raises an error if a sequence was adopted before, or if it counts by more than the layout has room for.
fn require_native(sequence: &Sequence, layout: &Layout) {
    let name = to_utf8_lossy(&sequence.name);
    if registry::code(&sequence.parameters).is_some() {
        Purpose::Adopt
            .refuse(&name, NOT_READY)
            .detail("It was adopted before.")
            .hint("To change the layout, call flake_release first.")
            .raise();
    }
    let increment = sequence.parameters.increment;
    if !u64::try_from(increment).is_ok_and(|increment| increment <= layout.block()) {
        Purpose::Adopt.refuse(&name, NOT_READY)
            .detail(format!(
                "It counts by {increment}: an application may use the numbers between, and in layout \"{}\" those are IDs of others.",
                layout.name()
            ))
            .hint(format!("{}If nothing uses them, run ALTER SEQUENCE … INCREMENT BY 1 first.", with_room(increment)))
            .raise();
    }
}

/// Says how to create layouts whose IDs have room for an increment: of 63 bits, and of 53.
fn with_room(increment: i64) -> String {
    // Half of the numbers that the bits count lie on each side of an ID.
    let bits = 65 - increment.wrapping_sub(1).leading_zeros();
    let definition = |like: &str, time: u32, workers: u32, rest: u32| {
        let sequence = rest.checked_sub(bits).filter(|&sequence| increment > 1 && sequence > 0)?;
        let value = 1_u64 << (bits - 1);
        Some(format!(
            "SELECT flake_create_layout('{like}_blocks', '{{\"like\": \"{like}\", \"fields\": [\
             {{\"name\": \"timestamp\", \"bits\": {time}, \"role\": \"timestamp\"}}, \
             {{\"name\": \"worker\", \"bits\": {workers}, \"role\": \"worker\"}}, \
             {{\"name\": \"sequence\", \"bits\": {sequence}, \"role\": \"sequence\"}}, \
             {{\"name\": \"block\", \"bits\": {bits}, \"role\": \"reserved\", \"value\": {value}}}]}}')."
        ))
    };
    match (definition("twitter", 41, 10, 12), definition("si", 39, 5, 9)) {
        (None, _) => String::new(),
        (Some(long), None) => format!("A layout that keeps them free: {long} "),
        (Some(long), Some(short)) => {
            format!("A layout that keeps them free: {long} One of 53 bits, until 2038: {short} ")
        }
    }
}

/// Returns the statement that undoes an adoption: the sequence then continues where it is now.
fn undo(relation: &[u8], sequence: &Sequence, is_identity: bool) -> Vec<u8> {
    let increment = sequence.parameters.increment;
    let next = match sequence_page::state(sequence.oid) {
        Some((last, true)) => last.saturating_add(increment),
        Some((next, false)) => next,
        None => 1,
    };
    let identity = if is_identity { ", as_identity => true" } else { "" };
    let literal = quoted(relation);
    let schema = own_schema();
    [b"CALL ", &schema[..], b".flake_release(", &literal, format!(", next => {next}{identity})").as_bytes()].concat()
}

/// The schema of flake_adopt and flake_release.
fn own_schema() -> Vec<u8> {
    let own = extension::find(c"flake_sequences").map(|Extension { schema, .. }| schema);
    own.and_then(relation::quoted_schema).unwrap_or_else(|| pgrx::error!("could not read the catalog"))
}
