//! How a session finds the control block in shared memory.
//!
//! After the library was replaced, new sessions load another version than the one that has created the control block. Versions with
//! the same form of shared memory and the same division of IDs work together. A session of any other version raises an error
//! until the server restarts, because it could not know which IDs the others make.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::Cell;

use flake_core::DIVISION;

use super::control::{CONTROL_SIZE, Control, Counters, System, VERSION};
use super::segment;
use crate::clock;
use crate::error::Error;
use crate::postgres::shared_memory;

thread_local! {
    static CONTROL: Cell<Option<&'static Control>> = const { Cell::new(None) };
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

/// Returns the control block; None if it cannot be found or has another form.
pub fn control() -> Option<&'static Control> {
    attach().ok()
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
pub fn attached() -> Option<&'static Control> {
    CONTROL.get()
}

/// Attaches to the control block. If there is none, or if it has another form, it raises an error, because this session and the
/// others could not know of each other's IDs.
pub fn attach() -> Result<&'static Control, Error> {
    if let Some(control) = CONTROL.get() {
        return Ok(control);
    }
    let control = control_block().map_err(|reason| Error::NoControlBlock { reason })?;
    let found = (control.header.version, control.header.division);
    // The first session has reserved the memory, and could not get a lock for it.
    if found == (0, 0) {
        return Err(Error::NoControlBlock {
            reason: "no lock could be made for it, because the tranches are used up".into(),
        });
    }
    if found != (VERSION, DIVISION) {
        return Err(Error::OtherVersion { found });
    }
    control.register_locks();
    CONTROL.set(Some(control));
    Ok(control)
}
