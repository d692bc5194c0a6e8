//! The memory of each slot and of prepared transactions. It is in a dynamic segment, or in the main segment if the library is
//! preloaded.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::Ordering;

use flake_core::SlotProgress;
use flake_core::horizon::SlotTransactions;
use flake_core::horizon::prepared::Prepared;
use flake_core::ledger::pool::{Lease, MOST_LEASES};

use super::control::Control;
use crate::postgres::{self, shared_memory, slot};

/// The memory of a slot.
#[repr(C)]
#[derive(Default)]
pub struct SlotMemory {
    pub transactions: SlotTransactions,
    /// Only the owner of the slot uses it.
    pub progress: UnsafeCell<SlotProgress>,
}

// SAFETY: only the owner of the slot uses the cell.
unsafe impl Sync for SlotMemory {}

/// The segment as mapped into this session.
#[derive(Clone, Copy)]
pub struct Segment {
    pub slots: &'static [SlotMemory],
    prepared: (*mut Prepared, usize),
}

thread_local! {
    static SEGMENT: Cell<Option<Segment>> = const { Cell::new(None) };
    static LEASES: Cell<Option<*mut Lease>> = const { Cell::new(None) };
}

/// Returns the number of slots and of entries for prepared transactions. The entries suffice for all transactions that can be
/// prepared, one more that each slot is about to prepare, and as many that have ended; one entry is for ended ones that find no
/// place.
fn numbers() -> (usize, usize) {
    let slots = slot::count() as usize;
    (slots, 2 * postgres::prepared::most() + slots + 1)
}

/// Returns how many bytes all this takes in the main segment if the library is preloaded.
pub fn size() -> usize {
    let (slots, others) = numbers();
    shared_memory::size_of_arrays::<SlotMemory, Prepared>(slots, others)
}

/// Creates it in the main segment, which works without dynamic shared memory.
pub fn preload(control: &Control) {
    let is_there = in_main_segment().is_ok();
    control.is_preloaded.store(is_there, Ordering::Release);
}

fn in_main_segment() -> Result<(*mut SlotMemory, *mut Prepared), String> {
    let (slots, others) = numbers();
    // SAFETY: every process of this version uses the name for these types, and the numbers are fixed at the server's start.
    unsafe { shared_memory::main_segment_arrays(c"flake slots", slots, others) }
}

/// Returns the segment, and creates it in the first session that needs it. An error is the reason why there is none.
pub fn segment(control: &Control) -> Result<Segment, String> {
    if let Some(segment) = SEGMENT.get() {
        return Ok(segment);
    }
    let (slots, others) = numbers();
    let (first, second) = if control.is_preloaded.load(Ordering::Acquire) {
        in_main_segment()?
    } else {
        // SAFETY: every session of this version uses the handle for these types, and the numbers are fixed at the server's start.
        unsafe { shared_memory::segment::<SlotMemory, Prepared>(&control.segment, slots, others)? }
    };
    // SAFETY: the segment has this many slots.
    let slots = unsafe { std::slice::from_raw_parts(first, slots) };
    let segment = Segment { slots, prepared: (second, others) };
    SEGMENT.set(Some(segment));
    Ok(segment)
}

/// Returns [`MOST_LEASES`] leases in a segment of their own, which the first session to lease creates.
pub fn leases(control: &Control) -> Result<*mut Lease, String> {
    if let Some(leases) = LEASES.get() {
        return Ok(leases);
    }
    // SAFETY: every session of this version uses the handle for this type.
    let (leases, _) = unsafe { shared_memory::segment::<Lease, u64>(&control.leases, MOST_LEASES, 0)? };
    LEASES.set(Some(leases));
    Ok(leases)
}

/// Returns the segment if this session has mapped it.
pub fn attached() -> Option<Segment> {
    SEGMENT.get()
}

impl Segment {
    /// Calls `act` with the entries of prepared transactions, under the lock. `act` must not raise an error of PostgreSQL and must
    /// be quick.
    pub fn with_prepared<R>(self, control: &Control, act: impl FnOnce(&mut [Prepared]) -> R) -> R {
        let _guard = control.prepared_lock.take();
        // SAFETY: this session holds the lock, so no other one uses the memory.
        act(unsafe { std::slice::from_raw_parts_mut(self.prepared.0, self.prepared.1) })
    }
}
