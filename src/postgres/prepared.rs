//! Keeps the bounds of prepared transactions.
//!
//! The problem: a prepared transaction has no session that could hold watermarks, and a restart loses shared memory. But PostgreSQL
//! keeps a prepared transaction's locks through restarts until the transaction ends. So the bound is stored in the tag of a lock
//! that no session waits for.
#![allow(unsafe_code, reason = "PostgreSQL's locks")]

use pgrx::pg_sys;

/// The class of these locks. PostgreSQL's own advisory locks have class 1 or 2.
const KIND: u16 = 0xf1a4;

unsafe extern "C-unwind" {
    /// max_prepared_transactions, which pgrx does not export.
    static max_prepared_xacts: core::ffi::c_int;
}

/// Returns how many transactions can be prepared at once.
pub fn most() -> usize {
    // SAFETY: PostgreSQL sets it when the server starts.
    unsafe { max_prepared_xacts }.max(0) as usize
}

/// Takes a lock whose tag has a number and the transaction's ID. May raise an error.
pub fn carry(xid: u64, number: i64) {
    let [high, low] = [(number as u64 >> 32) as u32, number as u32];
    let tag = pg_sys::LOCKTAG {
        locktag_field1: xid as u32,
        locktag_field2: high,
        locktag_field3: low,
        locktag_field4: KIND,
        locktag_type: pg_sys::LockTagType::LOCKTAG_USERLOCK as u8,
        locktag_lockmethodid: pg_sys::USER_LOCKMETHOD as u8,
    };
    // SAFETY: a lock of the transaction that no other session requests.
    unsafe { pg_sys::LockAcquire(&tag, pg_sys::ShareLock as pg_sys::LOCKMODE, false, false) };
}

/// Returns the OID of a prepared transaction's database; 0 if the transaction has ended.
pub fn database_of(xid: u32) -> u32 {
    // SAFETY: there are as many as can be prepared at once. Other processes change a transaction ID in a single store.
    let all = (0..most()).map(|at| unsafe { pg_sys::PreparedXactProcs.add(at) });
    // SAFETY: as above.
    let of = |process: *mut pg_sys::PGPROC| unsafe {
        ((&raw const (*process).xid).read_volatile().into_inner(), (*process).databaseId.to_u32())
    };
    all.map(of).find(|(running, _)| *running == xid).map_or(0, |(_, database)| database)
}

/// Returns the numbers in these locks, with the lower 32 bits of the transaction IDs.
pub fn carried() -> Vec<(u32, i64)> {
    // SAFETY: it returns a copy of the locks in the current memory context.
    let locks = unsafe {
        let locks = &*pg_sys::GetLockStatusData();
        match locks.nelements {
            0 => &[],
            count => std::slice::from_raw_parts(locks.locks, count as usize),
        }
    };
    let is_ours = |tag: &pg_sys::LOCKTAG| {
        u32::from(tag.locktag_type) == pg_sys::LockTagType::LOCKTAG_USERLOCK && tag.locktag_field4 == KIND
    };
    locks
        .iter()
        .map(|lock| lock.locktag)
        .filter(is_ours)
        .map(|tag| (tag.locktag_field1, (u64::from(tag.locktag_field2) << 32 | u64::from(tag.locktag_field3)) as i64))
        .collect()
}
