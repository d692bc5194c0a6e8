//! The words of lanes, and the memory of each slot and of prepared transactions. All that is in a dynamic segment, or in the main
//! segment if the library is preloaded.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::Ordering;

use flake_core::SlotProgress;
use flake_core::horizon::SlotTransactions;
use flake_core::horizon::prepared::Prepared;
use flake_core::ledger::line::{Line, MOST_LINES};
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
    /// The words of lanes.
    pub lines: &'static [Line],
    pub slots: &'static [SlotMemory],
    prepared: (*mut Prepared, usize),
}

thread_local! {
    static SEGMENT: Cell<Option<Segment>> = const { Cell::new(None) };
    static LEASES: Cell<Option<*mut Lease>> = const { Cell::new(None) };
}

/// Returns the number of lines, of slots, and of entries for prepared transactions. The entries suffice for all transactions that
/// can be prepared, one more that each slot is about to prepare, and as many that have ended; one entry is for ended ones that find
/// no place.
fn numbers() -> [usize; 3] {
    let slots = slot::count() as usize;
    [MOST_LINES, slots, 2 * postgres::prepared::most() + slots + 1]
}

type Arrays = (*mut Line, *mut SlotMemory, *mut Prepared);

/// Returns how many bytes all this takes in the main segment if the library is preloaded.
pub fn size() -> usize {
    shared_memory::size_of_arrays::<Line, SlotMemory, Prepared>(numbers())
}

/// Creates it in the main segment, which works without dynamic shared memory.
pub fn preload(control: &Control) {
    let is_there = in_main_segment().is_ok();
    control.is_preloaded.store(is_there, Ordering::Release);
}

fn in_main_segment() -> Result<Arrays, String> {
    // SAFETY: every process of this version uses the name for these types, and the numbers are fixed at the server's start.
    unsafe { shared_memory::main_segment_arrays(c"flake slots", numbers()) }
}

/// Returns the segment, and creates it in the first session that needs it. An error is the reason why there is none.
pub fn segment(control: &Control) -> Result<Segment, String> {
    if let Some(segment) = SEGMENT.get() {
        return Ok(segment);
    }
    let [lines, slots, others] = numbers();
    let (first, second, third) = if control.is_preloaded.load(Ordering::Acquire) {
        in_main_segment()?
    } else {
        // SAFETY: every session of this version uses the handle for these types, and the numbers are fixed at the server's start.
        unsafe { shared_memory::segment(&control.segment, numbers())? }
    };
    // SAFETY: the segment has this many.
    let (lines, slots) =
        unsafe { (std::slice::from_raw_parts(first, lines), std::slice::from_raw_parts(second, slots)) };
    let segment = Segment { lines, slots, prepared: (third, others) };
    SEGMENT.set(Some(segment));
    Ok(segment)
}

/// Returns [`MOST_LEASES`] leases in a segment of their own, which the first session to lease creates.
pub fn leases(control: &Control) -> Result<*mut Lease, String> {
    if let Some(leases) = LEASES.get() {
        return Ok(leases);
    }
    // SAFETY: every session of this version uses the handle for this type.
    let (leases, ..) = unsafe { shared_memory::segment::<Lease, u64, u64>(&control.leases, [MOST_LEASES, 0, 0])? };
    LEASES.set(Some(leases));
    Ok(leases)
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
