//! The shared memory of all sessions, and how a session finds it.
//!
//! After the library was replaced, new sessions load another version than the one that has created the memory. Versions with
//! the same form of shared memory and the same division of IDs work together. A session of any other version raises an error
//! until the server restarts, because it could not know which IDs the others make.
#![allow(unsafe_code, reason = "shared memory")]

use std::cell::Cell;
use std::ffi::CStr;
use std::ptr::{null_mut, slice_from_raw_parts_mut};

use flake_core::DIVISION_VERSION;
use flake_core::ledger::cursors::line::{LaneCursors, MOST_LINES};
use flake_core::watermark::ProcTransactions;
use flake_core::watermark::prepared::Prepared;

use super::control::{Control, Header, VERSION};
use crate::error::Error;
use crate::postgres::shared_memory::Preloading;
use crate::postgres::{injection_point, prepared, proc, shared_memory};

const NAME: &CStr = c"flake";

/// The memory as this session sees it.
pub struct Memory {
    pub control: &'static Control,
    /// The cursors of lanes.
    pub lines: &'static [LaneCursors],
    pub procs: &'static [ProcTransactions],
    prepared: *mut [Prepared],
}

thread_local! {
    static MEMORY: Cell<Option<&'static Memory>> = const { Cell::new(None) };
}

/// If the library is being preloaded, the server gets the memory when it starts.
pub fn preload() {
    shared_memory::at_startup(Preloading { name: NAME, size, fill });
}

/// Returns the memory if this session has found it already. Raises no error.
#[inline]
pub fn attached() -> Option<&'static Memory> {
    MEMORY.get()
}

/// Returns the memory; None if it belongs to another version. Raises an error if it cannot be had.
pub fn memory() -> Option<&'static Memory> {
    attach().ok()
}

/// Finds the memory, and creates it in the first session that needs it, unless the server has preloaded the library. Raises an error
/// if it cannot be had, because this session and the others could not know of each other's IDs. If it belongs to another version,
/// returns that error.
pub fn attach() -> Result<&'static Memory, Error> {
    if let Some(memory) = attached() {
        return Ok(memory);
    }
    let start = shared_memory::raising_instead(
        || shared_memory::segment(NAME, size(), fill),
        |reason| {
            let detail = "A session makes IDs only if it shares memory with the other sessions, which would not know of its IDs \
                          otherwise.";
            let message = format!("could not get shared memory: {reason}");
            Error::not_ready(message)
                .detail(detail)
                .hint(
                    "Check max_connections and the limits of dynamic shared memory, such as the size of /dev/shm, and \
                     whether queries use all of it. The next call tries again. If flake is in \
                     shared_preload_libraries, the server has this memory from its start.",
                )
                .raise()
        },
    );
    // SAFETY: the memory of every version begins with a header, which does not change.
    let header = unsafe { &*start.cast::<Header>() };
    let found = (header.version, header.division);
    if found != (VERSION, DIVISION_VERSION) {
        return Err(Error::not_ready("another version of the flake library is in use")
            .detail(format!(
                "The server's shared memory has form {} with division {}, and this version has others; together \
                     they could make the same IDs.",
                found.0, found.1
            ))
            .hint(
                "Restart the server. If flake is in shared_preload_libraries, all sessions use the version that the \
                 server was started with.",
            ));
    }
    let (control, lines, procs, prepared) = parts(start);
    // SAFETY: a session of this version has filled it, and it lives as long as this session.
    let memory = unsafe { Memory { control: &*control, lines: &*lines, procs: &*procs, prepared } };
    let memory = Box::leak(Box::new(memory));
    MEMORY.set(Some(memory));
    Ok(memory)
}

type Parts = (*mut Control, *mut [LaneCursors], *mut [ProcTransactions], *mut [Prepared]);

/// Returns the parts of the memory, one behind the other. The entries of prepared transactions suffice for all that can be prepared,
/// one more that each proc is about to prepare, and as many that have ended; one entry is for ended ones that find no place.
fn parts(start: *mut u8) -> Parts {
    const { assert!(align_of::<Control>().is_multiple_of(align_of::<LaneCursors>())) };
    const { assert!(align_of::<LaneCursors>().is_multiple_of(align_of::<ProcTransactions>())) };
    const { assert!(align_of::<ProcTransactions>().is_multiple_of(align_of::<Prepared>())) };
    let count = proc::count() as usize;
    let control = start.cast::<Control>();
    let lines = control.wrapping_add(1).cast::<LaneCursors>();
    let procs = lines.wrapping_add(MOST_LINES).cast::<ProcTransactions>();
    let prepared = procs.wrapping_add(count).cast::<Prepared>();
    let most_prepared = 2 * prepared::most() + count + 1;
    (
        control,
        slice_from_raw_parts_mut(lines, MOST_LINES),
        slice_from_raw_parts_mut(procs, count),
        slice_from_raw_parts_mut(prepared, most_prepared),
    )
}

fn size() -> usize {
    let (.., prepared) = parts(null_mut());
    prepared.cast::<Prepared>().wrapping_add(prepared.len()).addr()
}

/// Fills new memory, which no other session uses yet. May raise an error.
fn fill(start: *mut u8) {
    /// # Safety There must be memory for all elements.
    unsafe fn fill_all<T: Default>(array: *mut [T]) {
        // SAFETY: as the caller promises.
        (0..array.len()).for_each(|at| unsafe { array.cast::<T>().add(at).write(T::default()) });
    }
    let (control, lines, procs, prepared) = parts(start);
    // SAFETY: the memory has the size of all parts.
    unsafe {
        control.write(Control::new());
        fill_all(lines);
        fill_all(procs);
        fill_all(prepared);
    }
}

impl Memory {
    /// How many entries of prepared transactions there are, with and without one.
    pub fn prepared_count(&self) -> usize {
        self.prepared.len()
    }

    /// Calls `act` with the entries of prepared transactions, under their lock. `act` must not raise an error of PostgreSQL and must
    /// be quick.
    pub fn with_prepared<R>(&self, act: impl FnOnce(&mut [Prepared]) -> R) -> R {
        let _guard = self.control.prepared_lock.lock();
        injection_point::run("FlakeWatermark");
        // SAFETY: this session holds the lock, so no other one uses the memory.
        act(unsafe { &mut *self.prepared })
    }
}
