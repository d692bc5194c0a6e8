//! The second page of a sequence of the extension, where a database keeps its record.
//!
//! The problem: the record must travel with the data of their database, in the WAL, in base backups, and to a copy of the database.
//! PostgreSQL copies the files of a sequence with its database, and the WAL carries changes of its pages. Any role can write such a
//! change, without a transaction ID. Other code of PostgreSQL sees an empty page of a table, because the record lies in the
//! special space of the page.
//!
//! `pg_upgrade` copies only the last value of a sequence. So the last value says up to when time is reserved. An unlogged sequence
//! has a copy of the last value, because since version 19, replication of sequences overwrites the last values of logged ones.
#![allow(unsafe_code, reason = "PostgreSQL's buffers and pages")]

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicI32, Ordering};

use pgrx::pg_sys;

use super::recovery;

/// A position in the WAL.
pub type Lsn = pg_sys::XLogRecPtr;

const LOCK_MODE: pg_sys::LOCKMODE = pg_sys::RowExclusiveLock as pg_sys::LOCKMODE;
const NO_LOCK: pg_sys::LOCKMODE = pg_sys::NoLock as pg_sys::LOCKMODE;
/// The relation is not temporary.
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

/// A locked sequence with such a page. It is not opened as a relation, because building the relation's cache entry would double the
/// cost of a session's first ID.
pub struct SequencePage {
    oid: pg_sys::Oid,
    schema: pg_sys::Oid,
    place: Place,
    is_logged: bool,
}

impl SequencePage {
    /// Opens the sequence with this name in a schema of the extension, or returns None if there is none. The catalog is searched
    /// only if neither this session nor another one, by the hint `known`, has found it before.
    pub fn open(known: u32, schema: &CStr, name: &CStr) -> Option<Self> {
        let found = [FOUND.get(), known.into()].into_iter().find_map(|oid| Self::at(oid, name));
        let page = found.or_else(|| Self::at(look_up(schema, name)?, name))?;
        FOUND.set(page.oid());
        Some(page)
    }

    /// Opens the sequence with this OID and name. Returns None if the OID belongs to another object or to none.
    fn at(oid: pg_sys::Oid, name: &CStr) -> Option<Self> {
        if oid == pg_sys::Oid::INVALID {
            return None;
        }
        // SAFETY: the lock is released at the end of the transaction or before.
        unsafe { pg_sys::LockRelationOid(oid, LOCK_MODE) };
        Self::locked(oid, Some(name))
    }

    /// Opens the unlogged sequence with this name in the same schema, or returns None if there is none.
    fn copy(&self, name: &CStr) -> Option<Self> {
        self.sibling(name).filter(|copy| !copy.is_logged)
    }

    /// Opens the sequence with this name in the same schema, or returns None if there is none. A standby does not have the files of
    /// unlogged sequences, so there this returns None. This does not wait for a lock.
    pub fn sibling(&self, name: &CStr) -> Option<Self> {
        if recovery::is_in_progress() {
            return None;
        }
        // SAFETY: it looks the name up in the catalog, and locks what it finds.
        let oid = unsafe {
            let oid = pg_sys::get_relname_relid(name.as_ptr(), self.schema);
            (oid != pg_sys::Oid::INVALID && pg_sys::ConditionalLockRelationOid(oid, LOCK_MODE)).then_some(oid)
        };
        Self::locked(oid?, Some(name))
    }

    /// Returns the locked sequence with this OID. If there is none, or it has another name than the given one, releases the lock.
    fn locked(oid: pg_sys::Oid, name: Option<&CStr>) -> Option<Self> {
        // SAFETY: the lock makes the catalog's row final.
        unsafe {
            let row = pg_sys::SearchSysCache1(pg_sys::SysCacheIdentifier::RELOID as _, oid.into());
            let found = row.as_mut().and_then(|row| {
                let form = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_class>();
                let is_it = form.relkind as u8 == pg_sys::RELKIND_SEQUENCE
                    && name.is_none_or(|name| CStr::from_ptr(form.relname.data.as_ptr()) == name);
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

    /// Returns the sequence's OID.
    pub const fn oid(&self) -> pg_sys::Oid {
        self.oid
    }

    /// Returns whether changes of the page are written to the WAL.
    pub const fn is_logged(&self) -> bool {
        self.is_logged
    }

    fn has_page(&self) -> bool {
        // SAFETY: the lock keeps the file; PostgreSQL closes what it has opened.
        unsafe { pg_sys::smgrnblocks(pg_sys::smgropen(self.place, NO_BACKEND), MAIN) > BLOCK }
    }

    /// Returns the content of the page, and the LSN up to which the WAL must be on disk for it, or None if the page does not exist.
    /// `recent` is the buffer where the page may be, so that no file must be opened to see whether it exists.
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

    /// Returns the last values of the sequence and of its copy, if they have one.
    pub fn last_values(&self, copy: &CStr) -> [Option<i64>; 2] {
        [self.last_value(), self.copy(copy).and_then(|copy| copy.last_value())]
    }

    /// Returns the last value of the sequence, if it has one.
    pub fn last_value(&self) -> Option<i64> {
        self.buffer(0).locked(pg_sys::BUFFER_LOCK_SHARE).last_value()
    }

    /// Sets the last value, unless the sequence has it. Returns the LSN up to which the WAL must be on disk, if there is one.
    pub fn set_last_value(&self, last_value: i64) -> Option<Lsn> {
        if self.last_value() == Some(last_value) {
            return None;
        }
        let relation = Relation::of(self.oid);
        let buffer = self.buffer(0).locked(pg_sys::BUFFER_LOCK_EXCLUSIVE);
        // SAFETY: the relation is open, and the buffer is locked. A logged one is changed through the copy of the WAL record.
        unsafe {
            if !self.is_logged {
                (*sequence_data(buffer.page())).set(last_value);
                pg_sys::MarkBufferDirty(buffer.0);
                return None;
            }
            let state = pg_sys::GenericXLogStart(relation.0);
            (*sequence_data(pg_sys::GenericXLogRegisterBuffer(state, buffer.0, 0))).set(last_value);
            Some(pg_sys::GenericXLogFinish(state))
        }
    }

    /// Reads a block, which must exist.
    fn buffer(&self, block: pg_sys::BlockNumber) -> Buffer {
        let (mode, strategy) = (pg_sys::ReadBufferMode::RBM_NORMAL, std::ptr::null_mut());
        // SAFETY: the lock keeps the relation.
        Buffer(unsafe { pg_sys::ReadBufferWithoutRelcache(self.place, MAIN, block, mode, strategy, self.is_logged) })
    }

    /// Changes the content of the page, and the last values of the sequence and its copy. `act` gets the content, or None if the
    /// page does not exist yet. It returns the new content and last value, or None if nothing is to be changed. Returns the LSN up
    /// to which the WAL must be on disk, and the other result of `act`.
    pub fn change<R>(&self, copy: &CStr, act: impl FnOnce(Option<Vec<u8>>) -> (Option<(Vec<u8>, i64)>, R)) -> (Lsn, R) {
        let relation = Relation::of(self.oid);
        let copy = self.copy(copy);
        // SAFETY: the relation is open, and all buffers are locked. Logged buffers are changed through the copies of the WAL
        // record.
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
            // The content that another version has written may be shorter.
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
        // After an error, PostgreSQL releases the lock at the end of the transaction.
        if !std::thread::panicking() {
            // SAFETY: it is locked, and no longer used.
            unsafe { pg_sys::UnlockRelationOid(self.oid, LOCK_MODE) };
        }
    }
}

/// Returns the last value of any sequence, and whether it was handed out. A query would name the sequence, and the owner of its schema
/// could put a view in its place. The sequence must not be temporary.
pub fn state(oid: pg_sys::Oid) -> Option<(i64, bool)> {
    // SAFETY: the lock is released at the end of the transaction or before. A sequence has one page, which the buffer's lock protects.
    unsafe {
        pg_sys::LockRelationOid(oid, LOCK_MODE);
        let page = SequencePage::locked(oid, None)?.buffer(0).locked(pg_sys::BUFFER_LOCK_SHARE);
        let data = &*sequence_data(page.page());
        Some((data.last_value, data.is_called))
    }
}

/// Returns the location of the files of a relation of this database.
fn place(form: &pg_sys::FormData_pg_class) -> Place {
    // SAFETY: PostgreSQL sets both variables before a backend runs its first statement.
    let (own, database) = unsafe { (pg_sys::MyDatabaseTableSpace, pg_sys::MyDatabaseId) };
    let space = if form.reltablespace == pg_sys::Oid::INVALID { own } else { form.reltablespace };
    #[cfg(feature = "pg15")]
    return Place { spcNode: space, dbNode: database, relNode: form.relfilenode };
    #[cfg(not(feature = "pg15"))]
    return Place { spcOid: space, dbOid: database, relNumber: form.relfilenode };
}

/// An open relation, for changing its page.
struct Relation(pg_sys::Relation);

impl Relation {
    /// The relation must be locked.
    fn of(oid: pg_sys::Oid) -> Self {
        // SAFETY: the caller's lock keeps it.
        Self(unsafe { pg_sys::relation_open(oid, NO_LOCK) })
    }
}

impl Drop for Relation {
    fn drop(&mut self) {
        // After an error, PostgreSQL closes it at the end of the transaction.
        if !std::thread::panicking() {
            // SAFETY: it is open, and no longer used.
            unsafe { pg_sys::relation_close(self.0, NO_LOCK) };
        }
    }
}

/// Waits until the WAL is on disk up to an LSN.
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
        // SAFETY: every page begins with this, whatever type the headers of a version give it.
        let [upper, lower] = unsafe { *self.page().cast::<[u32; 2]>() };
        Lsn::from(upper) << 32 | Lsn::from(lower)
    }

    /// Returns the content of the page, or None if the page is new.
    fn content(&self) -> Option<Vec<u8>> {
        // SAFETY: every page begins with the header, and its special space reaches to its end.
        unsafe {
            let header = &*self.page().cast::<pg_sys::PageHeaderData>();
            let size = (pg_sys::BLCKSZ as usize).saturating_sub(header.pd_special.into());
            (header.pd_upper > 0).then(|| std::slice::from_raw_parts(content(self.page()), size).to_vec())
        }
    }

    /// Returns the sequence's last value, or None if it has none. The page must be the sequence's first.
    fn last_value(&self) -> Option<i64> {
        // SAFETY: it holds one row.
        let data = unsafe { &*sequence_data(self.page()) };
        data.is_called.then_some(data.last_value)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // After an error, PostgreSQL releases the buffer at the end of the transaction.
        if !std::thread::panicking() {
            // SAFETY: it is locked and pinned.
            unsafe { pg_sys::UnlockReleaseBuffer(self.0) };
        }
    }
}

/// Returns where the content of a page begins.
///
/// # Safety It must be a page.
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
        // The whole struct must not be written, because the row is shorter.
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

/// Returns the OID of the relation with this name.
fn look_up(schema: &CStr, name: &CStr) -> Option<pg_sys::Oid> {
    // SAFETY: it looks the names up in the catalog; no relation is in a schema that does not exist.
    let oid = unsafe { pg_sys::get_relname_relid(name.as_ptr(), pg_sys::get_namespace_oid(schema.as_ptr(), true)) };
    (oid != pg_sys::Oid::INVALID).then_some(oid)
}
