//! The memory of each slot, and the prepared transactions: in a dynamic segment, or in the main one where the library is
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
    /// The slot's owner uses it.
    pub progress: UnsafeCell<SlotProgress>,
}

// SAFETY: the cell is used by the slot's owner only.
unsafe impl Sync for SlotMemory {}

/// The segment as this session has it.
#[derive(Clone, Copy)]
pub struct Segment {
    pub slots: &'static [SlotMemory],
    prepared: (*mut Prepared, usize),
}

thread_local! {
    static SEGMENT: Cell<Option<Segment>> = const { Cell::new(None) };
    static LEASES: Cell<Option<*mut Lease>> = const { Cell::new(None) };
}

/// How many slots there are, and how many entries for prepared transactions: as many as can be prepared, one that each slot is
/// about to prepare, and as many again that have ended, or all of those as one.
fn numbers() -> (usize, usize) {
    let slots = slot::count() as usize;
    (slots, 2 * postgres::prepared::most() + slots + 1)
}

/// The bytes that it takes in the main segment, where the library is preloaded.
pub fn size() -> usize {
    let (slots, others) = numbers();
    shared_memory::size_of_arrays::<SlotMemory, Prepared>(slots, others)
}

/// Creates it in the main segment, which needs no dynamic shared memory.
pub fn preload(control: &Control) {
    let is_there = in_main_segment().is_ok();
    control.is_preloaded.store(is_there, Ordering::Release);
}

fn in_main_segment() -> Result<(*mut SlotMemory, *mut Prepared), String> {
    let (slots, others) = numbers();
    // SAFETY: every process of this version uses the name for this; the numbers are those of the server start.
    unsafe { shared_memory::main_segment_arrays(c"flake slots", slots, others) }
}

/// Returns the segment, which the first session to ask creates, or why there is none.
pub fn segment(control: &Control) -> Result<Segment, String> {
    if let Some(segment) = SEGMENT.get() {
        return Ok(segment);
    }
    let (slots, others) = numbers();
    let (first, second) = if control.is_preloaded.load(Ordering::Acquire) {
        in_main_segment()?
    } else {
        // SAFETY: every session of this version uses the handle for this; the numbers are those of the server start.
        unsafe { shared_memory::segment::<SlotMemory, Prepared>(&control.segment, slots, others)? }
    };
    // SAFETY: there are so many.
    let slots = unsafe { std::slice::from_raw_parts(first, slots) };
    let segment = Segment { slots, prepared: (second, others) };
    SEGMENT.set(Some(segment));
    Ok(segment)
}

/// Returns the leases, [`MOST_LEASES`] of them in a segment of their own, which the first session to lease creates.
pub fn leases(control: &Control) -> Result<*mut Lease, String> {
    if let Some(leases) = LEASES.get() {
        return Ok(leases);
    }
    // SAFETY: every session of this version uses the handle for this.
    let (leases, _) = unsafe { shared_memory::segment::<Lease, u64>(&control.leases, MOST_LEASES, 0)? };
    LEASES.set(Some(leases));
    Ok(leases)
}

/// Returns the segment if this session has it.
pub fn attached() -> Option<Segment> {
    SEGMENT.get()
}

impl Segment {
    /// Acts on the entries of prepared transactions, under the lock. `act` must not raise an error of PostgreSQL, nor take long.
    pub fn with_prepared<R>(self, control: &Control, act: impl FnOnce(&mut [Prepared]) -> R) -> R {
        let _guard = control.prepared_lock.take();
        // SAFETY: this session holds the lock, so no other one uses the memory.
        act(unsafe { std::slice::from_raw_parts_mut(self.prepared.0, self.prepared.1) })
    }
}
