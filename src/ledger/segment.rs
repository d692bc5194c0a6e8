//! The dynamic segment: what is kept for each slot, and the transactions that have none.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::Ordering;

use flake_core::SlotProgress;
use flake_core::horizon::SlotTransactions;
use flake_core::horizon::detached::Detached;

use super::control::Control;
use crate::postgres::{prepared, shared_memory, slot};

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
    detached: (*mut Detached, usize),
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
    // Prepared transactions, as many that have ended, and some whose workers have made IDs.
    let others = 2 * prepared::most() + 64;
    // SAFETY: every session of this version uses the handle for this; the numbers are those of the server start.
    let segment = unsafe {
        let (first, second) = shared_memory::segment::<SlotMemory, Detached>(&control.segment, slots, others)?;
        Segment { slots: std::slice::from_raw_parts(first, slots), detached: (second, others) }
    };
    SEGMENT.set(Some(segment));
    Ok(segment)
}

/// Returns the segment if this session has it.
pub fn attached() -> Option<Segment> {
    SEGMENT.get()
}

impl Segment {
    /// Acts on the transactions without a slot, under the lock. `act` must not raise an error of PostgreSQL, nor take long.
    pub fn with_detached<R>(self, control: &Control, act: impl FnOnce(&mut [Detached]) -> R) -> R {
        let _guard = control.detached_lock.take();
        // SAFETY: this session holds the lock, so no other one uses the memory.
        act(unsafe { std::slice::from_raw_parts_mut(self.detached.0, self.detached.1) })
    }

    /// Returns whether there may be any.
    pub fn has_detached(control: &Control) -> bool {
        control.detached.load(Ordering::SeqCst) > 0
    }
}
