//! Transactions: their IDs, and callbacks at their ends.
#![allow(unsafe_code, reason = "PostgreSQL's transactions")]

use std::cell::Cell;
use std::ffi::CString;
use std::panic::{RefUnwindSafe, UnwindSafe};

use flake_core::watermark::prepared::Transactions;
use flake_core::watermark::widened;
use pgrx::pg_sys::panic::CaughtError;
use pgrx::pg_sys::{self, SubXactEvent, XactEvent};
use pgrx::{PgSqlErrorCode, PgTryBuilder, check_for_interrupts};

use super::local_settings;

/// How a transaction ends.
#[derive(Clone, Copy, PartialEq)]
pub enum Event {
    /// It is about to be prepared, unless an error is raised.
    WillPrepare,
    /// It has committed, and new snapshots see it as ended.
    Committed,
    /// It has been rolled back, or it has been prepared, so that another session may end it.
    Left,
    /// It has been rolled back to a savepoint, and continues.
    LeftInPart,
}

thread_local! {
    static SUBSCRIBER: Cell<Option<fn(Event)>> = const { Cell::new(None) };
}

/// Calls `act` at the end of every transaction of this session from now on. `act` may raise an error or panic only for
/// [`Event::WillPrepare`].
pub fn subscribe(act: fn(Event)) {
    unsafe extern "C-unwind" fn at_event(event: XactEvent::Type, _argument: *mut std::ffi::c_void) {
        let event = match event {
            XactEvent::XACT_EVENT_PRE_PREPARE => Event::WillPrepare,
            XactEvent::XACT_EVENT_COMMIT => Event::Committed,
            XactEvent::XACT_EVENT_ABORT | XactEvent::XACT_EVENT_PREPARE => Event::Left,
            _ => return,
        };
        let Some(act) = SUBSCRIBER.get() else { return };
        if event == Event::WillPrepare {
            // SAFETY: PostgreSQL is ready for an error here.
            unsafe { pg_sys::panic::pgrx_extern_c_guard(|| act(event)) }
        } else {
            act(event);
        }
    }
    unsafe extern "C-unwind" fn at_savepoint(
        event: SubXactEvent::Type,
        _own: pg_sys::SubTransactionId,
        _parent: pg_sys::SubTransactionId,
        _argument: *mut std::ffi::c_void,
    ) {
        if let Some(act) = SUBSCRIBER.get().filter(|_| event == SubXactEvent::SUBXACT_EVENT_ABORT_SUB) {
            act(Event::LeftInPart);
        }
    }
    if SUBSCRIBER.replace(Some(act)).is_none() {
        // SAFETY: the callbacks live as long as the library, which PostgreSQL never unloads.
        unsafe {
            pg_sys::RegisterXactCallback(Some(at_event), std::ptr::null_mut());
            pg_sys::RegisterSubXactCallback(Some(at_savepoint), std::ptr::null_mut());
        }
    }
}

/// Returns the ID of the current transaction, which gets one when it first writes.
pub fn xid() -> Option<u64> {
    // SAFETY: it reads a variable of this process.
    let xid = unsafe { pg_sys::GetTopFullTransactionIdIfAny() }.value;
    (xid != 0).then_some(xid)
}

/// Returns whether all queries of the current transaction use one snapshot.
pub fn has_one_snapshot() -> bool {
    // SAFETY: it reads a variable of this process.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Sleeps for a millisecond, so that a session that was stopped can continue. It can be canceled.
pub fn nap() {
    check_for_interrupts!();
    std::thread::sleep(std::time::Duration::from_millis(1));
}

/// Returns a transaction ID that has not been assigned yet.
pub fn next_xid() -> u64 {
    // SAFETY: it reads shared memory.
    unsafe { pg_sys::ReadNextFullTransactionId() }.value
}

/// Assigns a transaction ID and aborts it at once, with a record in the WAL: a subtransaction gets it and is rolled back. May raise
/// an error.
pub fn consume_xid() {
    // SAFETY: this is a transaction. State that the end of the subtransaction changes is restored, as PL/pgSQL does.
    unsafe {
        let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::GetCurrentTransactionId();
        pg_sys::RollbackAndReleaseCurrentSubTransaction();
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
    }
}

/// Calls `act` in a subtransaction in which every wait for a lock ends after some milliseconds. If one does, rolls the subtransaction
/// back and returns None.
pub fn unless_locked<R>(milliseconds: u32, act: impl FnOnce() -> R + UnwindSafe + RefUnwindSafe) -> Option<R> {
    let limit = CString::new(milliseconds.to_string()).unwrap_or_default();
    // SAFETY: this is a transaction. State that the end of the subtransaction changes is restored, as PL/pgSQL does. The subtransaction
    // ends before an error is raised again: PostgreSQL would keep it open.
    unsafe {
        let (context, owner) = (pg_sys::CurrentMemoryContext, pg_sys::CurrentResourceOwner);
        pg_sys::BeginInternalSubTransaction(std::ptr::null());
        pg_sys::MemoryContextSwitchTo(context);
        let result = PgTryBuilder::new(|| Ok(local_settings::with(&[(c"lock_timeout", &limit)], act)))
            .catch_others(|error| Err(Box::new(error)))
            .catch_rust_panic(|error| Err(Box::new(error)))
            .execute();
        pg_sys::MemoryContextSwitchTo(context);
        if result.is_ok() {
            pg_sys::ReleaseCurrentSubTransaction();
        } else {
            pg_sys::RollbackAndReleaseCurrentSubTransaction();
        }
        pg_sys::MemoryContextSwitchTo(context);
        pg_sys::CurrentResourceOwner = owner;
        let error = match result {
            Ok(result) => return Some(result),
            Err(error) => *error,
        };
        match error {
            CaughtError::PostgresError(error) | CaughtError::ErrorReport(error)
                if error.sql_error_code() == PgSqlErrorCode::ERRCODE_LOCK_NOT_AVAILABLE =>
            {
                None
            }
            // PostgreSQL has forgotten its own error by now.
            CaughtError::PostgresError(error) => CaughtError::ErrorReport(error).rethrow(),
            error => error.rethrow(),
        }
    }
}

/// This server's view of transactions.
pub struct OfServer;

impl Transactions for OfServer {
    fn is_running(&self, xid: u64) -> bool {
        // SAFETY: it reads shared memory.
        unsafe { pg_sys::TransactionIdIsInProgress((xid as u32).into()) }
    }

    fn latest_ended(&self) -> u64 {
        // SAFETY: shared memory, in which another process changes the ID in a single store.
        unsafe {
            #[cfg(any(feature = "pg15", feature = "pg16"))]
            let shared = pg_sys::ShmemVariableCache;
            #[cfg(not(any(feature = "pg15", feature = "pg16")))]
            let shared = pg_sys::TransamVariables;
            (&raw const (*shared).latestCompletedXid).read_volatile().value
        }
    }

    fn oldest_xmin(&self) -> u64 {
        // SAFETY: without a relation, it considers all databases.
        let oldest = unsafe { pg_sys::GetOldestNonRemovableTransactionId(std::ptr::null_mut()) };
        // This is read later, so it is greater.
        widened(next_xid(), oldest.into())
    }
}

/// Returns whether a transaction that has ended has committed.
pub fn has_committed(xid: u32) -> bool {
    // SAFETY: it looks into the commit log.
    unsafe { pg_sys::TransactionIdDidCommit(xid.into()) }
}

/// Returns whether this is a parallel worker.
pub fn is_in_worker() -> bool {
    // SAFETY: it reads a variable of this process.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Returns the process that owns a proc, and the role that its session began as. The process is 0 if the proc is free.
pub fn process_of(proc: u32) -> (i32, pg_sys::Oid) {
    // SAFETY: the proc is one of this server's.
    unsafe {
        let process = (*pg_sys::ProcGlobal).allProcs.add(proc as usize);
        ((&raw const (*process).pid).read_volatile(), (&raw const (*process).roleId).read_volatile())
    }
}
