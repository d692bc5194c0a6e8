//! Where this session stands: the node's number, as it was when IDs were first made since the server started, and the
//! slot that PostgreSQL has given the session.
#![allow(unsafe_code, reason = "reads PostgreSQL's variables and shared memory")]

use flake_core::{Error, Node, Slot};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::{PgLogLevel, PgSqlErrorCode, function_name, pg_sys};

use crate::settings;

/// The node settings that every session of this server start uses, in shared memory.
#[repr(C)]
struct Pinned {
    id: u32,
    count: u32,
}

/// `AddinShmemInitLock`'s place among PostgreSQL's named locks, the same in 15 to 18 (lwlocknames.txt).
const ADDIN_SHMEM_INIT_LOCK: usize = 21;

/// This server's number. Sessions with different ones could make the same IDs, so the settings are pinned by the first
/// session that asks; later changes are a WARNING until the next start.
pub fn node() -> Result<Node, Error> {
    let (id, count) = settings::node();
    let pinned = pin(id, count)?;
    if (pinned.id, pinned.count) != (id, count) {
        let message = format!(
            "flake.node_id = {id} and flake.node_count = {count} are not in force; this server is node {} of {}",
            pinned.id, pinned.count
        );
        ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, function_name!())
            .set_hint("Restart the server to bring the new settings into force.")
            .report(PgLogLevel::WARNING);
    }
    Node::new(pinned.id, pinned.count)
}

fn pin(id: u32, count: u32) -> Result<Pinned, Error> {
    let mut found = false;
    // SAFETY: ShmemInitStruct returns memory of the asked size that lives as long as the server, the same for every
    // session; the lock keeps another session from reading it before it is filled. An error in between releases the
    // lock.
    unsafe {
        let lock = &raw mut (*pg_sys::MainLWLockArray.add(ADDIN_SHMEM_INIT_LOCK)).lock;
        pg_sys::LWLockAcquire(lock, pg_sys::LWLockMode::LW_EXCLUSIVE);
        let pinned = pg_sys::ShmemInitStruct(c"flake node".as_ptr(), size_of::<Pinned>(), &mut found).cast::<Pinned>();
        // An impossible pair is not pinned, so that it can be corrected by a reload.
        let valid = if found && (*pinned).count != 0 {
            Ok(())
        } else {
            let node = Node::new(id, count);
            *pinned = if node.is_ok() { Pinned { id, count } } else { Pinned { id: 0, count: 0 } };
            node.map(drop)
        };
        let pinned = Pinned { id: (*pinned).id, count: (*pinned).count };
        pg_sys::LWLockRelease(lock);
        valid.map(|()| pinned)
    }
}

/// The number of this server process among all that can exist at a time.
pub fn slot() -> Result<Slot, Error> {
    // SAFETY: both are set before a server process runs its first statement and do not change after.
    let (number, count) = unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        let number = (*pg_sys::MyProc).pgprocno;
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        let number = pg_sys::MyProcNumber;
        (number, pg_sys::MaxBackends)
    };
    Slot::new(number as u32, count as u32)
}
