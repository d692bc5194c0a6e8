//! The memory of a session for adopted sequences: the last ID of each, for currval, and in which transaction it has locked the sequence
//! and checked the privilege.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::mem::ManuallyDrop;

use pgrx::pg_sys::Oid;

use crate::postgres::{discard_hook, memory, role, sequence};

/// When a sequence was checked. Nothing needs to be checked again while it stays the same.
#[derive(Clone, Copy, PartialEq)]
pub struct Check {
    transaction: u32,
    changes: u64,
    role: Oid,
}

impl Check {
    #[inline]
    pub fn now() -> Self {
        Self { transaction: sequence::transaction(), changes: sequence::changes(), role: role::present() }
    }

    /// A check that has to be made again.
    pub const fn never() -> Self {
        Self { transaction: 0, changes: 0, role: Oid::INVALID }
    }
}

/// A sequence that the session has used.
#[derive(Clone, Copy)]
pub struct Known {
    /// The code of its layout, and the name.
    pub code: i64,
    pub layout: &'static str,
    pub check: Check,
    /// The last ID, or what setval has set.
    last: Option<i64>,
}

/// The ID that was made last, of whichever sequence.
#[derive(Clone, Copy)]
pub struct Last {
    pub sequence: Oid,
    pub id: i64,
    /// The number that PostgreSQL's lastval() was made to return.
    pub shown: i64,
}

thread_local! {
    /// It is never dropped; see `layouts`.
    static KNOWN: RefCell<ManuallyDrop<BTreeMap<u32, Known>>> = const { RefCell::new(ManuallyDrop::new(BTreeMap::new())) };
    static LAST: Cell<Option<Last>> = const { Cell::new(None) };
}

/// Returns what is known of a sequence.
#[inline]
pub fn known(sequence: Oid) -> Option<Known> {
    KNOWN.with_borrow(|known| known.get(&sequence.to_u32()).copied())
}

/// Returns whether the session makes IDs for a sequence, and nothing needs to be checked again.
pub fn is_checked(sequence: Oid) -> bool {
    known(sequence).is_some_and(|known| known.check == Check::now())
}

/// Remembers a sequence, and keeps its last ID.
pub fn learn(sequence: Oid, code: i64, layout: &'static str, check: Check) {
    memory::require();
    discard_hook::subscribe(forget);
    KNOWN.with_borrow_mut(|known| {
        let last = known.get(&sequence.to_u32()).and_then(|known| known.last);
        known.insert(sequence.to_u32(), Known { code, layout, check, last });
    });
}

/// Keeps an ID of a known sequence as its last one. `shown` says what PostgreSQL's lastval() returns now, if that has changed.
#[inline]
pub fn keep(sequence: Oid, id: i64, shown: Option<i64>) {
    set(sequence, id);
    let before = LAST.get().map_or(id, |last| last.shown);
    LAST.set(Some(Last { sequence, id, shown: shown.unwrap_or(before) }));
}

/// Sets the last ID of a known sequence.
#[inline]
pub fn set(sequence: Oid, value: i64) {
    KNOWN.with_borrow_mut(|known| {
        if let Some(known) = known.get_mut(&sequence.to_u32()) {
            known.last = Some(value);
        }
    });
}

/// Returns the last ID of a sequence.
pub fn last_of(sequence: Oid) -> Option<i64> {
    known(sequence)?.last
}

/// Returns the ID that was made last.
pub fn last() -> Option<Last> {
    LAST.get()
}

/// Forgets all IDs, as DISCARD SEQUENCES wants.
fn forget() {
    KNOWN.with_borrow_mut(|known| known.clear());
    LAST.set(None);
}
