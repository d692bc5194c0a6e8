//! The marks of a database have to travel with its data: in the WAL, in base backups, and to a copy of the database. So they are in a
//! page of our own, the second page of a sequence of this extension. Changes to it are written to the WAL, by any role and without a
//! transaction ID, and PostgreSQL copies it with the database.
//!
//! Other code of PostgreSQL takes it for an empty page of a table, because the bytes lie in its special space.
//!
//! `pg_upgrade` copies only the last value of a sequence, so that repeats how far the marks reach. An unlogged sequence repeats it once
//! more: since version 19, replication of sequences overwrites the last values of logged ones.
#![allow(unsafe_code, reason = "PostgreSQL's buffers and pages")]

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, Ordering};

use pgrx::pg_sys;

use super::{extension, recovery};

/// A position in the WAL.
pub type Lsn = pg_sys::XLogRecPtr;

const LOCK_MODE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;
/// The relation is not a temporary one.
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

/// A locked sequence whose page holds some bytes. It is not opened as a relation: building the relation's entry would double the cost
/// of a session's first ID.
pub struct SequencePage {
    oid: pg_sys::Oid,
    schema: pg_sys::Oid,
    place: Place,
    is_logged: bool,
}

impl SequencePage {
    /// Opens the sequence of this name in the extension's schema, or None if there is no such sequence. The catalog is searched where
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
        // SAFETY: it is unlocked at the end of the transaction, or before.
        unsafe { pg_sys::LockRelationOid(oid, LOCK_MODE) };
        Self::locked(oid, name)
    }

    /// Opens the unlogged sequence of this name in the schema of this one, or None if there is no such sequence. A standby has no file of
    /// it. It does not wait for a lock.
    fn copy(&self, name: &CStr) -> Option<Self> {
        if recovery::is_in_progress() {
            return None;
        }
        // SAFETY: it looks the name up in the catalog, and locks what it finds.
        let oid = unsafe {
            let oid = pg_sys::get_relname_relid(name.as_ptr(), self.schema);
            (oid != pg_sys::Oid::INVALID && pg_sys::ConditionalLockRelationOid(oid, LOCK_MODE)).then_some(oid)
        };
        Self::locked(oid?, name).filter(|copy| !copy.is_logged)
    }

    /// Returns the sequence with this OID, which is locked, if it has this name; else it unlocks what has the OID.
    fn locked(oid: pg_sys::Oid, name: &CStr) -> Option<Self> {
        // SAFETY: once the lock is there, the catalog's row is the newest one and stays so; it is of this catalog.
        unsafe {
            let row = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as _, oid.into());
            let found = row.as_mut().and_then(|row| {
                let form = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_class>();
                let is_it = form.relkind as u8 == pg_sys::RELKIND_SEQUENCE
                    && CStr::from_ptr(form.relname.data.as_ptr()) == name;
                let is_logged = form.relpersistence as u8 == pg_sys::RELPERSISTENCE_PERMANENT;
                let found = is_it.then(|| Self { oid, schema: form.relnamespace, place: place(form), is_logged });
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

    /// Returns what the page holds and the position up to which the WAL has to be on disk for the page to be, or None if the
    /// page does not exist. `recent` is the buffer in which it may be, so that no file is opened to see whether it exists.
    pub fn read(&self, recent: &AtomicI32) -> Option<(Vec<u8>, Lsn)> {
        let buffer = match Buffer::recent(self.place, BLOCK, recent.load(Ordering::Relaxed)) {
            Some(buffer) => buffer,
            None if self.has_page() => self.buffer(BLOCK),
            None => return None,
        };
        recent.store(buffer.0, Ordering::Relaxed);
        let buffer = buffer.locked(pg_sys::BUFFER_LOCK_SHARE);
        Some((buffer.content()?, buffer.lsn()))
    }

    /// Returns the last values of the sequence and of its copy, as far as they have one.
    pub fn last_values(&self, copy: &CStr) -> [Option<i64>; 2] {
        let of = |page: &Self| page.buffer(0).locked(pg_sys::BUFFER_LOCK_SHARE).last_value();
        [of(self), self.copy(copy).as_ref().and_then(of)]
    }

    /// Reads a block. There has to be one.
    fn buffer(&self, block: pg_sys::BlockNumber) -> Buffer {
        let (mode, strategy) = (pg_sys::ReadBufferMode::RBM_NORMAL, std::ptr::null_mut());
        // SAFETY: the lock keeps the relation.
        Buffer(unsafe { pg_sys::ReadBufferWithoutRelcache(self.place, MAIN, block, mode, strategy, self.is_logged) })
    }

    /// Changes what the page holds, and the last value of the sequence and its copy. `act` gets the bytes of the page, or None if the
    /// page does not exist yet. It returns the new bytes and last value, or None if nothing is to change. Returns the position up to
    /// which the WAL has to be on disk, and the other result of `act`.
    pub fn change<R>(&self, copy: &CStr, act: impl FnOnce(Option<Vec<u8>>) -> (Option<(Vec<u8>, i64)>, R)) -> (Lsn, R) {
        let relation = Relation::of(self.oid);
        let copy = self.copy(copy);
        // SAFETY: the relation is open; all buffers are locked, and those that are logged are changed through the copies that the record is
        // made of.
        unsafe {
            if !self.has_page() {
                pg_sys::LockRelationForExtension(relation.0, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
                if !self.has_page() {
                    pg_sys::ReleaseBuffer(pg_sys::ReadBuffer(relation.0, pg_sys::InvalidBlockNumber));
                }
                pg_sys::UnlockRelationForExtension(relation.0, pg_sys::ExclusiveLock as pg_sys::LOCKMODE);
            }
            let copied = copy.as_ref().map(|copy| copy.buffer(0).locked(pg_sys::BUFFER_LOCK_EXCLUSIVE));
            let first = self.buffer(0).locked(pg_sys::BUFFER_LOCK_EXCLUSIVE);
            let second = self.buffer(BLOCK).locked(pg_sys::BUFFER_LOCK_EXCLUSIVE);
            let present = second.content();
            // The bytes of another version may take less room.
            let size = present.as_ref().map(Vec::len);
            let (new, result) = act(present);
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
            (*data).set(last_value);
            let lsn = pg_sys::GenericXLogFinish(state);
            if let Some(copied) = &copied {
                (*sequence_data(copied.page())).set(last_value);
                pg_sys::MarkBufferDirty(copied.0);
            }
            (lsn, result)
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

    /// Returns what the page holds, or None if it is new.
    fn content(&self) -> Option<Vec<u8>> {
        // SAFETY: every page begins with the header, and its special space reaches to its end.
        unsafe {
            let header = &*self.page().cast::<pg_sys::PageHeaderData>();
            let size = (pg_sys::BLCKSZ as usize).saturating_sub(header.pd_special.into());
            (header.pd_upper > 0).then(|| std::slice::from_raw_parts(content(self.page()), size).to_vec())
        }
    }

    /// Returns the sequence's last value, or None if it has none. The page has to be a sequence's first.
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

impl SequenceData {
    fn set(&mut self, last_value: i64) {
        // Not as a whole: the row is shorter.
        self.last_value = last_value;
        self.log_cnt = 0;
        self.is_called = true;
    }
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
