//! How a session finds the ledger in shared memory.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::Cell;

use flake_core::SHARE_RULE;

use super::control::{CONTROL_SIZE, Control, Counters, Header, System, VERSION};
use super::segment;
use crate::clock;
use crate::error::Error;
use crate::postgres::{report, shared_memory};

/// The control block as this session has it.
#[derive(Clone, Copy)]
pub struct Attachment {
    /// All sessions' control block; one of this session's own where another version of the library has made theirs.
    pub control: &'static Control,
    /// The beginning of all sessions' control block, where another version of the library has made it.
    pub other_version: Option<&'static Header>,
}

thread_local! {
    static ATTACHMENT: Cell<Option<Attachment>> = const { Cell::new(None) };
}

/// If the library is being preloaded, has the control block created when the server starts.
pub fn preload() {
    let size = || CONTROL_SIZE + segment::size();
    shared_memory::reserve(size, || {
        if let Ok(control) = control_block() {
            control.with_lock(|guarded| guarded.state.started_at = Some(clock::now()));
            segment::preload(control);
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
    attach().map(|Attachment { control, other_version }| other_version.unwrap_or(&control.header))
}

/// Returns the control block; none where another version of the library has made it, or there is none.
pub fn control() -> Option<&'static Control> {
    attach().ok().filter(|attachment| attachment.other_version.is_none()).map(|attachment| attachment.control)
}

/// Returns the server's counters.
pub fn counters() -> Option<&'static Counters> {
    control().map(|control| &control.counters)
}

/// Returns what sessions of this server have read of the operating system.
pub fn system() -> Option<&'static System> {
    control().map(|control| &control.system)
}

/// Returns what this session has attached to so far.
pub fn attached() -> Option<Attachment> {
    ATTACHMENT.get()
}

/// Attaches to the control block. A session that finds none makes no IDs, as no other session could know of them.
pub fn attach() -> Result<Attachment, Error> {
    if let Some(attachment) = ATTACHMENT.get() {
        return Ok(attachment);
    }
    let control = control_block().map_err(|reason| Error::NoControlBlock { reason })?;
    let found = &control.header;
    if found.share_rule != SHARE_RULE {
        return Err(Error::OtherShareRule { found: found.share_rule, own: SHARE_RULE });
    }
    let attachment = if found.version == VERSION {
        Attachment { control, other_version: None }
    } else {
        report::warning(
            "this session makes IDs without the ledger: another version of the library is in use".to_owned(),
            Some("Its IDs start above the present instant, and are unique unless the clock is set back."),
            "Restart the server.",
        );
        Attachment { control: Box::leak(Box::new(Control::new())), other_version: Some(found) }
    };
    attachment.control.register_locks();
    ATTACHMENT.set(Some(attachment));
    Ok(attachment)
}
