//! The dynamic segment: what is kept for each slot, and the prepared transactions.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::Ordering;

use flake_core::SlotProgress;
use flake_core::horizon::SlotTransactions;
use flake_core::horizon::prepared::{self, Prepared};

use super::control::Control;
use crate::postgres::transaction::OfServer;
use crate::postgres::{self, shared_memory, slot};

/// What is kept for a slot.
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
}

/// Returns the segment, which the first session to ask creates, or why there is none.
pub fn segment(control: &Control) -> Result<Segment, String> {
    if let Some(segment) = SEGMENT.get() {
        return Ok(segment);
    }
    let slots = slot::numbers().1 as usize;
    // As many as can be prepared, one that each slot is about to prepare, and as many again that have ended, or all of those as one.
    let others = 2 * postgres::prepared::most() + slots + 1;
    // SAFETY: every session of this version uses the handle for this; the numbers are those of the server start.
    let segment = unsafe {
        let (first, second) = shared_memory::segment::<SlotMemory, Prepared>(&control.segment, slots, others)?;
        Segment { slots: std::slice::from_raw_parts(first, slots), prepared: (second, others) }
    };
    SEGMENT.set(Some(segment));
    Ok(segment)
}

/// Returns the segment if this session has it.
pub fn attached() -> Option<Segment> {
    SEGMENT.get()
}

impl Segment {
    /// Acts on the entries of prepared transactions that may be in use, under the lock. `act` must not raise an error of
    /// PostgreSQL, nor take long.
    pub fn with_prepared<R>(self, control: &Control, act: impl FnOnce(&[Prepared]) -> R) -> R {
        let _guard = control.prepared_lock.take();
        let used = control.prepared.load(Ordering::SeqCst) as usize;
        // SAFETY: this session holds the lock, so no other one uses the memory.
        act(unsafe { std::slice::from_raw_parts(self.prepared.0, used) })
    }

    /// Adds prepared transactions.
    pub fn add_prepared(self, control: &Control, new: &[Prepared]) {
        let _guard = control.prepared_lock.take();
        // SAFETY: as above.
        let all = unsafe { std::slice::from_raw_parts_mut(self.prepared.0, self.prepared.1) };
        for &one in new {
            let at = prepared::add(all, one, &OfServer) as u32;
            control.prepared.fetch_max(at + 1, Ordering::SeqCst);
        }
    }
}
