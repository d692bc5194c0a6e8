//! A page of our own behind the first page of a sequence of this extension: changes to it are written to the WAL, by
//! whoever makes them and without a transaction ID, and PostgreSQL copies it with the database.
//!
//! To everybody else it looks like an empty page of a table: what it holds lies in its special space.
#![allow(unsafe_code, reason = "PostgreSQL's buffers and pages")]

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, Ordering};

use pgrx::pg_sys;

use super::extension;

/// A position in the WAL.
pub type Lsn = pg_sys::XLogRecPtr;

const LOCK_MODE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;
/// The relation is no temporary one of a session.
const NO_BACKEND: core::ffi::c_int = -1;
const MAIN: pg_sys::ForkNumber::Type = pg_sys::ForkNumber::MAIN_FORKNUM;
/// The page's number.
const BLOCK: pg_sys::BlockNumber = 1;

thread_local! {
    /// The sequence that was found last in this session's database.
    static FOUND: Cell<pg_sys::Oid> = const { Cell::new(pg_sys::Oid::INVALID) };
}

#[cfg(not(feature = "pg15"))]
use pg_sys::RelFileLocator as Place;
#[cfg(feature = "pg15")]
use pg_sys::RelFileNode as Place;

/// A locked sequence whose page holds some bytes. It is no open relation: to build one costs a session's first ID as much as all
/// the rest.
pub struct SequencePage {
    oid: pg_sys::Oid,
    place: Place,
    is_logged: bool,
}

impl SequencePage {
    /// Opens the sequence of this name in the extension's schema; none if there is no such sequence. The catalog is searched where
    /// neither this session nor another one, which says that it is `known`, has found it before.
    pub fn open(known: u32, extension: &CStr, name: &CStr) -> Option<Self> {
        let found = [FOUND.get(), known.into()].into_iter().find_map(|oid| Self::at(oid, name));
        let page = found.or_else(|| Self::at(look_up(extension, name)?, name))?;
        FOUND.set(page.oid());
        Some(page)
    }

    /// Opens the sequence with this OID and name; an OID of another object or of none is noticed.
    fn at(oid: pg_sys::Oid, name: &CStr) -> Option<Self> {
        if oid == pg_sys::Oid::INVALID {
            return None;
        }
        // SAFETY: once the lock is there, the catalog's row is the newest one and stays so; it is of this catalog.
        unsafe {
            pg_sys::LockRelationOid(oid, LOCK_MODE);
            let row = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as _, oid.into());
            let found = row.as_mut().and_then(|row| {
                let form = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_class>();
                let is_it = form.relkind as u8 == pg_sys::RELKIND_SEQUENCE
                    && CStr::from_ptr(form.relname.data.as_ptr()) == name;
                let is_logged = form.relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT;
                let found = is_it.then(|| Self { oid, place: place(form), is_logged });
                pg_sys::ReleaseSysCache(row);
                found
            });
            if found.is_none() {
                pg_sys::UnlockRelationOid(oid, LOCK_MODE);
            }
            found
        }
    }

    /// Returns its OID.
    pub const fn oid(&self) -> pg_sys::Oid {
        self.oid
    }

    /// Returns whether changes of the page are written to the WAL.
    pub const fn is_logged(&self) -> bool {
        self.is_logged
    }

    fn has_page(&self) -> bool {
        // SAFETY: the lock keeps its file; PostgreSQL closes what it opens of that.
        unsafe { pg_sys::smgrnblocks(pg_sys::smgropen(self.place, NO_BACKEND), MAIN) > BLOCK }
    }

    /// Returns what the page holds and the position up to which the WAL has to be on disk for the page to be; none if the
    /// page does not exist. `recent` is the buffer in which it may be, so that no file is opened to see whether it exists.
    pub fn read(&self, recent: &AtomicI32) -> Option<(Vec<u8>, Lsn)> {
        let buffer = match Buffer::recent(self.place, BLOCK, recent.load(Ordering::Relaxed)) {
            Some(buffer) => buffer,
            None if self.has_page() => Buffer::of(self.place, BLOCK),
            None => return None,
        };
        recent.store(buffer.0, Ordering::Relaxed);
        let buffer = buffer.locked(pg_sys::BUFFER_LOCK_SHARE);
        Some((buffer.content()?, buffer.lsn()))
    }

    /// Returns the sequence's last value; none if it has none.
    pub fn last_value(&self) -> Option<i64> {
        Buffer::of(self.place, 0).locked(pg_sys::BUFFER_LOCK_SHARE).last_value()
    }

    /// Has `act` change what the page holds, which is none if the page does not exist yet, and the sequence's last value, none if
    /// it has none. If `act` returns none, nothing changes. Returns the position up to which the WAL has to be on disk, and what
    /// `act` returns besides.
    pub fn change<R>(&self, act: impl FnOnce(Option<Vec<u8>>, Option<i64>) -> (Option<(Vec<u8>, i64)>, R)) -> (Lsn, R) {
        let relation = Relation::of(self.oid);
        // SAFETY: the relation is open; both buffers are locked, and changed through the copies that the record is made of.
        unsafe {
            if !self.has_page() {
                pg_sys::LockRelationForExtension(relation.0, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
                if !self.has_page() {
                    pg_sys::ReleaseBuffer(pg_sys::ReadBuffer(relation.0, pg_sys::InvalidBlockNumber));
                }
                pg_sys::UnlockRelationForExtension(relation.0, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
            }
            let first = Buffer::of(self.place, 0).locked(pg_sys::BUFFER_LOCK_EXCLUSIVE);
            let second = Buffer::of(self.place, BLOCK).locked(pg_sys::BUFFER_LOCK_EXCLUSIVE);
            let present = second.content();
            // The bytes of another version may take less room.
            let size = present.as_ref().map(Vec::len);
            let (new, result) = act(present, first.last_value());
            let Some((new, last_value)) = new else { return (second.lsn(), result) };
            let is_new = size != Some(new.len());
            let state = pg_sys::GenericXLogStart(relation.0);
            let data = sequence_data(pg_sys::GenericXLogRegisterBuffer(state, first.0, 0));
            let flags = if is_new { pg_sys::GENERIC_XLOG_FULL_IMAGE as i32 } else { 0 };
            let page = pg_sys::GenericXLogRegisterBuffer(state, second.0, flags);
            if is_new {
                pg_sys::PageInit(page, pg_sys::BLCKSZ as usize, new.len());
            }
            content(page).copy_from_nonoverlapping(new.as_ptr(), new.len());
            (*data).last_value = last_value;
            (*data).log_cnt = 0;
            (*data).is_called = true;
            (pg_sys::GenericXLogFinish(state), result)
        }
    }
}

impl Drop for SequencePage {
    fn drop(&mut self) {
        // After an error, PostgreSQL unlocks it at the end of the transaction.
        if !std::thread::panicking() {
            // SAFETY: it is locked, and nothing of it is used any more.
            unsafe { pg_sys::UnlockRelationOid(self.oid, LOCK_MODE) };
        }
    }
}

/// Returns where PostgreSQL keeps a relation of this database.
fn place(form: &pg_sys::FormData_pg_class) -> Place {
    // SAFETY: PostgreSQL sets both variables before a backend runs its first statement.
    let (own, database) = unsafe { (pg_sys::MyDatabaseTableSpace, pg_sys::MyDatabaseId) };
    let space = if form.reltablespace == pg_sys::Oid::INVALID { own } else { form.reltablespace };
    #[cfg(feature = "pg15")]
    return Place { spcNode: space, dbNode: database, relNode: form.relfilenode };
    #[cfg(not(feature = "pg15"))]
    return Place { spcOid: space, dbOid: database, relNumber: form.relfilenode };
}

/// A relation that is open while its page is changed.
struct Relation(pg_sys::Relation);

impl Relation {
    /// It has to be locked.
    fn of(oid: pg_sys::Oid) -> Self {
        // SAFETY: the caller's lock keeps it.
        Self(unsafe { pg_sys::relation_open(oid, NO_LOCK) })
    }
}

impl Drop for Relation {
    fn drop(&mut self) {
        // After an error, PostgreSQL closes it at the end of the transaction.
        if !std::thread::panicking() {
            // SAFETY: it is open, and nothing of it is used any more.
            unsafe { pg_sys::relation_close(self.0, NO_LOCK) };
        }
    }
}

/// Waits until the WAL is on disk up to a position.
pub fn flush(lsn: Lsn) {
    // SAFETY: the position comes from a page, so the WAL reaches it.
    unsafe { pg_sys::XLogFlush(lsn) }
}

/// A page in a buffer that is pinned, and soon locked.
struct Buffer(pg_sys::Buffer);

impl Buffer {
    /// Reads a block. There has to be one.
    fn of(place: Place, block: pg_sys::BlockNumber) -> Self {
        let (mode, strategy) = (pg_sys::ReadBufferMode::RBM_NORMAL, std::ptr::null_mut());
        // SAFETY: the caller's lock keeps the relation, which is a permanent one.
        Self(unsafe { pg_sys::ReadBufferWithoutRelcache(place, MAIN, block, mode, strategy, true) })
    }

    /// Returns the buffer if the block is there.
    fn recent(place: Place, block: pg_sys::BlockNumber, buffer: pg_sys::Buffer) -> Option<Self> {
        // SAFETY: it is a number of one of the server's buffers, or 0; PostgreSQL checks what the buffer holds.
        let is_there = buffer > 0 && unsafe { pg_sys::ReadRecentBuffer(place, MAIN, block, buffer) };
        is_there.then(|| Self(buffer))
    }

    fn locked(self, mode: u32) -> Self {
        // SAFETY: it is pinned.
        unsafe { pg_sys::LockBuffer(self.0, mode as _) };
        self
    }

    fn page(&self) -> pg_sys::Page {
        // SAFETY: the buffer is pinned.
        unsafe { pg_sys::BufferGetPage(self.0) }
    }

    fn lsn(&self) -> Lsn {
        // SAFETY: every page begins with this, whichever type the version's headers give it.
        let [upper, lower] = unsafe { *self.page().cast::<[u32; 2]>() };
        Lsn::from(upper) << 32 | Lsn::from(lower)
    }

    /// Returns what the page holds; none if it is new.
    fn content(&self) -> Option<Vec<u8>> {
        // SAFETY: every page begins with the header, and its special space reaches to its end.
        unsafe {
            let header = &*self.page().cast::<pg_sys::PageHeaderData>();
            let size = (pg_sys::BLCKSZ as usize).saturating_sub(header.pd_special.into());
            (header.pd_upper > 0).then(|| std::slice::from_raw_parts(content(self.page()), size).to_vec())
        }
    }

    /// Returns the sequence's last value; none if it has none. The page has to be a sequence's first.
    fn last_value(&self) -> Option<i64> {
        // SAFETY: it holds one row.
        let data = unsafe { &*sequence_data(self.page()) };
        data.is_called.then_some(data.last_value)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // After an error, PostgreSQL releases it at the end of the transaction.
        if !std::thread::panicking() {
            // SAFETY: it is locked and pinned.
            unsafe { pg_sys::UnlockReleaseBuffer(self.0) };
        }
    }
}

/// Returns where a page holds its content.
///
/// # Safety
/// The page must be one.
unsafe fn content(page: pg_sys::Page) -> *mut u8 {
    // SAFETY: as the caller promises; PageInit aligns the special space.
    unsafe { page.add((*page.cast::<pg_sys::PageHeaderData>()).pd_special as usize).cast() }
}

/// `FormData_pg_sequence_data` (sequence.h), which pgrx does not export.
#[repr(C)]
struct SequenceData {
    last_value: i64,
    log_cnt: i64,
    is_called: bool,
}

/// Returns the data of a sequence's only row.
///
/// # Safety
/// The page must be a sequence's first.
unsafe fn sequence_data(page: pg_sys::Page) -> *mut SequenceData {
    // SAFETY: as the caller promises.
    unsafe {
        let line = (*page.cast::<pg_sys::PageHeaderData>()).pd_linp.as_ptr();
        let row = page.add((*line).lp_off() as usize);
        row.add((*row.cast::<pg_sys::HeapTupleHeaderData>()).t_hoff as usize).cast()
    }
}

/// Returns the OID of the relation with this name in the schema of an extension.
fn look_up(extension: &CStr, name: &CStr) -> Option<pg_sys::Oid> {
    let schema = extension::find(extension)?.schema;
    // SAFETY: it looks the name up in the catalog.
    let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), schema) };
    (oid != pg_sys::Oid::INVALID).then_some(oid)
}
