//! How a session finds the control block in shared memory.
//!
//! After the library was replaced, sessions of two versions can run in one server. The newer one cannot read the control block of
//! the older one, except for its header. So it uses a ledger of its own, or raises an error if the versions divide ticks
//! differently.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::Cell;

use flake_core::SHARE_RULE;

use super::control::{CONTROL_SIZE, Control, Counters, Header, System, VERSION};
use super::segment;
use crate::clock;
use crate::error::Error;
use crate::postgres::{report, shared_memory};

/// The control block of this session.
#[derive(Clone, Copy)]
pub struct Attachment {
    /// The control block of all sessions; a private one if another version of the library has created the shared one.
    pub control: &'static Control,
    /// The header of the shared control block, if another version of the library has created it.
    pub other_version: Option<&'static Header>,
}

thread_local! {
    static ATTACHMENT: Cell<Option<Attachment>> = const { Cell::new(None) };
}

/// If the library is being preloaded, registers the creation of the control block for the start of the server.
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
    // SAFETY: all versions of the library use this name and size. They read only the header before they have checked the version.
    unsafe { shared_memory::main_segment_block(c"flake", CONTROL_SIZE, Control::new) }
}

/// Returns the header of the shared control block, whichever version of the library created it.
pub fn header() -> Result<&'static Header, Error> {
    attach().map(|Attachment { control, other_version }| other_version.unwrap_or(&control.header))
}

/// Returns the control block; None if another version of the library has created it, or if it cannot be found.
pub fn control() -> Option<&'static Control> {
    attach().ok().filter(|attachment| attachment.other_version.is_none()).map(|attachment| attachment.control)
}

/// Returns the server's counters.
pub fn counters() -> Option<&'static Counters> {
    control().map(|control| &control.counters)
}

/// Returns facts about the operating system that earlier sessions have found.
pub fn system() -> Option<&'static System> {
    control().map(|control| &control.system)
}

/// Returns the control block if this session has attached to it.
pub fn attached() -> Option<Attachment> {
    ATTACHMENT.get()
}

/// Attaches to the control block. If there is none, it raises an error, because other sessions could not know of this one's IDs.
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
