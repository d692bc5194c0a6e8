//! Transactions: their numbers, and what is to be done at their ends.
#![allow(unsafe_code, reason = "PostgreSQL's transactions")]

use std::cell::Cell;

use flake_core::horizon::detached::Transactions;
use flake_core::horizon::widened;
use pgrx::check_for_interrupts;
use pgrx::pg_sys::{self, XactEvent};

/// How the end of a transaction goes.
#[derive(Clone, Copy, PartialEq)]
pub enum Event {
    /// It will be prepared, unless an error is raised.
    WillPrepare,
    /// It has committed, and new snapshots see that.
    Committed,
    /// It has been rolled back, or left to whoever ends a prepared transaction.
    Left,
    /// A parallel worker has finished its part of it.
    LeftByWorker,
}

thread_local! {
    static SUBSCRIBER: Cell<Option<fn(Event)>> = const { Cell::new(None) };
}

/// Has `act` called at the end of every transaction of this session from now on. It may raise an error, and panic, only for
/// [`Event::WillPrepare`].
pub fn subscribe(act: fn(Event)) {
    unsafe extern "C-unwind" fn at_event(event: XactEvent::Type, _argument: *mut std::ffi::c_void) {
        let event = match event {
            XactEvent::XACT_EVENT_PRE_PREPARE => Event::WillPrepare,
            XactEvent::XACT_EVENT_COMMIT => Event::Committed,
            XactEvent::XACT_EVENT_ABORT | XactEvent::XACT_EVENT_PREPARE => Event::Left,
            XactEvent::XACT_EVENT_PARALLEL_COMMIT | XactEvent::XACT_EVENT_PARALLEL_ABORT => Event::LeftByWorker,
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
    if SUBSCRIBER.replace(Some(act)).is_none() {
        // SAFETY: the callback lives as long as the library, which PostgreSQL never unloads.
        unsafe { pg_sys::RegisterXactCallback(Some(at_event), std::ptr::null_mut()) };
    }
}

/// Returns the number of the present transaction if it has one, which it has once it has written.
pub fn xid() -> Option<u64> {
    // SAFETY: it reads a variable of this process.
    let xid = unsafe { pg_sys::GetTopFullTransactionIdIfAny() }.value;
    (xid != 0).then_some(xid)
}

/// Sleeps for a millisecond, for somebody who was stopped to go on. It can be canceled.
pub fn nap() {
    check_for_interrupts!();
    std::thread::sleep(std::time::Duration::from_millis(1));
}

/// Returns a number that no transaction has yet.
pub fn next_xid() -> u64 {
    // SAFETY: it reads shared memory.
    unsafe { pg_sys::ReadNextFullTransactionId() }.value
}

/// What this server knows of transactions.
pub struct OfServer;

impl Transactions for OfServer {
    fn is_running(&self, xid: u64) -> bool {
        is_running(xid as u32)
    }

    fn is_in_slot(&self, slot: u32, number: u32) -> bool {
        local(slot, number).0
    }

    fn next(&self) -> u64 {
        next_xid()
    }

    fn latest_ended(&self) -> u64 {
        // SAFETY: shared memory, in which another process changes the number in one store.
        unsafe {
            #[cfg(any(feature = "pg15", feature = "pg16"))]
            let shared = pg_sys::ShmemVariableCache;
            #[cfg(any(feature = "pg17", feature = "pg18"))]
            let shared = pg_sys::TransamVariables;
            (&raw const (*shared).latestCompletedXid).read_volatile().value
        }
    }

    fn oldest(&self) -> u64 {
        // SAFETY: without a relation, it looks at all databases.
        let oldest = unsafe { pg_sys::GetOldestNonRemovableTransactionId(std::ptr::null_mut()) };
        // Read after the other, so that it is greater.
        widened(next_xid(), transaction_id(oldest))
    }
}

/// Returns whether a transaction has not ended yet.
pub fn is_running(xid: u32) -> bool {
    // SAFETY: it looks into shared memory.
    unsafe { pg_sys::TransactionIdIsInProgress(to_xid(xid)) }
}

/// Returns whether a transaction that has ended has committed.
pub fn has_committed(xid: u32) -> bool {
    // SAFETY: it looks into the commit log.
    unsafe { pg_sys::TransactionIdDidCommit(to_xid(xid)) }
}

/// Returns whether this is a parallel worker.
pub fn is_in_worker() -> bool {
    // SAFETY: it reads a variable of this process.
    unsafe { pg_sys::ParallelWorkerNumber >= 0 }
}

/// Returns the slot of the session that this parallel worker works for, and the number of its transaction there.
pub fn of_leader() -> Option<(u32, u32)> {
    // SAFETY: a parallel worker's leader lives as long as the worker.
    unsafe {
        let leader = (*pg_sys::MyProc).lockGroupLeader;
        (!leader.is_null()).then(|| (leader.offset_from((*pg_sys::ProcGlobal).allProcs) as u32, local_number(leader)))
    }
}

/// Returns whether the transaction with this number in a slot has not ended yet, and the process of the slot.
pub fn local(slot: u32, number: u32) -> (bool, i32) {
    // SAFETY: the slot is one of this server's.
    unsafe {
        let process = (*pg_sys::ProcGlobal).allProcs.add(slot as usize);
        (local_number(process) == number, (*process).pid)
    }
}

/// Returns whether all statements of the present transaction see the same.
pub fn has_one_snapshot() -> bool {
    // SAFETY: it reads a variable of this process.
    unsafe { pg_sys::XactIsoLevel >= pg_sys::XACT_REPEATABLE_READ as i32 }
}

/// Returns the slot of this session and the number of its transaction there.
pub fn own() -> (u32, u32) {
    // SAFETY: MyProc is the slot of this process.
    unsafe { (pg_sys::MyProc.offset_from((*pg_sys::ProcGlobal).allProcs) as u32, local_number(pg_sys::MyProc)) }
}

/// Returns the process of the session whose transaction has a number; none if there is none in the first `slots`.
pub fn process_with(xid: u32, slots: u32) -> Option<i32> {
    // SAFETY: the slots are this server's; another process changes the number in one store.
    let xid_of = |slot: u32| unsafe {
        let process = (*pg_sys::ProcGlobal).allProcs.add(slot as usize);
        transaction_id((&raw const (*process).xid).read_volatile())
    };
    (0..slots).find(|&slot| xid_of(slot) == xid).map(process_of)
}

/// Returns the process that a slot belongs to; 0 if it is free.
pub fn process_of(slot: u32) -> i32 {
    local(slot, 0).1
}

unsafe fn local_number(process: *mut pg_sys::PGPROC) -> u32 {
    // SAFETY: as the caller promises, it is a slot; another process changes the number in one store.
    unsafe {
        #[cfg(any(feature = "pg15", feature = "pg16"))]
        return (&raw const (*process).lxid).read_volatile();
        #[cfg(any(feature = "pg17", feature = "pg18"))]
        return (&raw const (*process).vxid.lxid).read_volatile();
    }
}

pub fn transaction_id(xid: pg_sys::TransactionId) -> u32 {
    xid.into_inner()
}

/// Returns a number as PostgreSQL passes it.
pub fn to_xid(xid: u32) -> pg_sys::TransactionId {
    pg_sys::TransactionId::from_inner(xid)
}
