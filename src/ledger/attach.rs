//! How a session finds the ledger in shared memory.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::Cell;
use std::ptr;

use flake_core::{SHARE_RULE, SlotProgress, absent};

use super::control::{CONTROL_SIZE, Control, Counters, Header, VERSION};
use super::segment::segment;
use crate::clock;
use crate::error::Error;
use crate::postgres::{report, shared_memory, slot};

/// What this session has of the ledger's shared memory.
#[derive(Clone, Copy)]
pub enum Attachment {
    /// It has not looked yet.
    Unknown,
    /// The control block; and the progress of this slot, unless there was no memory for it, or it was not asked for yet.
    Ledger(&'static Control, *mut SlotProgress),
    /// The control block of another version of the library.
    Foreign(&'static Header),
}

thread_local! {
    static ATTACHMENT: Cell<Attachment> = const { Cell::new(Attachment::Unknown) };
}

/// If the library is being preloaded, has the control block created when the server starts.
pub fn preload() {
    shared_memory::reserve(CONTROL_SIZE, || {
        if let Ok(control) = control_block() {
            control.with_lock(|guarded| guarded.preloaded_at = clock::now());
        }
    });
}

fn control_block() -> Result<&'static Control, String> {
    // SAFETY: all versions of the library use this name and size. They read no more than the header of a block before they
    // have checked its version.
    unsafe { shared_memory::main_segment_block(c"flake", CONTROL_SIZE, Control::new) }
}

/// Returns the beginning of the control block, whatever version of the library created it.
pub fn header() -> Result<&'static Header, Error> {
    match attach()? {
        Attachment::Ledger(control, _) => Ok(&control.header),
        Attachment::Foreign(header) => Ok(header),
        Attachment::Unknown => unreachable!("the session has just attached"),
    }
}

/// Returns the control block, or none where this session does without the ledger.
pub fn control() -> Option<&'static Control> {
    match attach() {
        Ok(Attachment::Ledger(control, _)) => Some(control),
        _ => None,
    }
}

/// Returns the server's counters.
pub fn counters() -> Option<&'static Counters> {
    control().map(|control| &control.counters)
}

/// Returns what this session has attached to so far.
pub fn attached() -> Attachment {
    ATTACHMENT.get()
}

/// Attaches to the control block. A session that finds none makes no IDs, as no other session could know of them.
pub fn attach() -> Result<Attachment, Error> {
    if let Attachment::Unknown = ATTACHMENT.get() {
        let control = match control_block() {
            Ok(control) => control,
            Err(_) if absent!(MemoryOfServer) => Box::leak(Box::new(Control::new())),
            Err(reason) => return Err(Error::NoControlBlock { reason }),
        };
        if control.header.share_rule != SHARE_RULE && !absent!(ForeignShareRule) {
            return Err(Error::OtherShareRule { found: control.header.share_rule, own: SHARE_RULE });
        }
        ATTACHMENT.set(if control.header.version != VERSION && !absent!(ForeignVersion) {
            warn(
                "another version of the library is in use",
                "Its IDs start above the present instant, and are unique unless the clock is set back.",
                "Restart the server.",
            );
            Attachment::Foreign(&control.header)
        } else {
            control.register_locks();
            Attachment::Ledger(control, ptr::null_mut())
        });
    }
    Ok(ATTACHMENT.get())
}

/// Attaches to the control block and to the progress of this slot.
pub fn attach_slot() -> Result<Attachment, Error> {
    if let Attachment::Ledger(control, progress) = attach()?
        && progress.is_null()
    {
        match segment(control) {
            Ok(segment) => {
                let progress = segment.slots[slot::numbers().0 as usize].progress.get();
                ATTACHMENT.set(Attachment::Ledger(control, progress));
            }
            Err(reason) => warn(
                &format!("no shared memory for this slot: {reason}"),
                "Its IDs start above the present instant and above those of all sessions that have exited.",
                "Check max_connections and the limits of shared memory, and restart the server.",
            ),
        }
    }
    Ok(ATTACHMENT.get())
}

fn warn(reason: &str, detail: &str, hint: &str) {
    report::warning(format!("this session makes IDs without the ledger: {reason}"), Some(detail), hint);
}
