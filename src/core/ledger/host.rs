//! The server that the protocol runs in: PostgreSQL, or a simulator.

use std::ops::Deref;

use super::block::{SIZE, Unreadable};
use super::note::NOTE;
use super::pool::{Lease, Pool};
use super::slot::SlotProgress;
use super::state::Ledger;
use super::window::SharedWindow;
use crate::share::Node;
use crate::sync::{AtomicI64, AtomicU32};

/// Bytes of each half of the file.
pub const HALF: usize = 8192;
const _: () = assert!(SIZE <= HALF);
/// Bytes of the file: two halves, and the exit note.
pub const FILE: usize = 2 * HALF + NOTE;

/// Memory that all sessions of a server share without a lock.
#[repr(C)]
#[derive(Debug)]
pub struct Shared {
    /// The window and the era.
    pub window: SharedWindow,
    /// The latest present instant that a session has seen.
    pub last_seen: AtomicI64,
    /// No ID is made in a tick that has ended by this instant, because it may lie below a horizon.
    pub announced: AtomicI64,
    /// How often that was taken back: horizons from before a recall do not count any more.
    pub recalls: AtomicU32,
    /// How many sessions have made IDs or asked for a horizon.
    pub sessions: AtomicU32,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            window: SharedWindow::default(),
            last_seen: AtomicI64::new(i64::MIN),
            announced: AtomicI64::new(i64::MIN),
            recalls: AtomicU32::new(0),
            sessions: AtomicU32::new(0),
        }
    }
}

/// Memory that they share under the lock of the ledger.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    /// The ledger, once it has begun. Only a `Writer` replaces it.
    pub ledger: Option<Ledger>,
    /// The pool, once it has begun. Only a `Writer` replaces it.
    pub pool: Option<Pool>,
    /// When the server started, if that is known.
    pub started_at: Option<i64>,
    /// Sessions that have exited have used only ticks that start before this instant in this era.
    pub free_from: Option<i64>,
    /// Time before this instant may be closed because of a start or a promotion, not because of the clock.
    pub opened_at: Option<i64>,
    /// Transactions that begin after the ledger did have this number or a greater one.
    pub first_xid: u64,
    /// The state of the file.
    pub file: FileState,
}

/// The state of the file as this server knows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileState {
    /// The number of the last record.
    pub number: u64,
    /// Its checksum.
    pub checksum: u64,
    /// The half that holds it.
    pub half: usize,
    /// Whether it has an exit note.
    pub has_exit_note: bool,
    /// Whether both halves have to be replaced: an earlier start has written them, perhaps without flushing.
    pub is_old: bool,
    /// Whether an acceptance of the clock that could not be written may be in it.
    pub is_in_doubt: bool,
}

/// Why something that was read cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file.
    #[error("file \"flake.mark\" {0}")]
    File(Unreadable),
    /// The page.
    #[error("second page of sequence \"flake_mark\" {0}")]
    Page(Unreadable),
}

/// A page as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its content; none if it does not exist.
    pub bytes: Option<Vec<u8>>,
    /// The instant that the sequence's last value repeats, where there is no page, as after pg_upgrade.
    pub last_value: Option<i64>,
}

/// The decision about a page.
#[derive(Debug)]
pub enum Change {
    /// Nothing: it says all that it has to.
    Keep,
    /// Write these bytes, and repeat this instant as the sequence's last value.
    Write(Vec<u8>, i64),
}

/// The services of a server that never raise an error, unless they say so: the only ones that are called under a lock.
pub trait Server {
    /// The present instant.
    fn now(&self) -> i64;
    /// The same by a clock that nobody sets.
    fn steady(&self) -> i64;
    /// Identifies the run of the operating system; none where nothing does.
    fn boot(&self) -> Option<u64>;
    /// A chance number, which is not 0.
    fn chance(&self) -> u32;
    /// The memory that all sessions share without a lock.
    fn shared(&self) -> &Shared;
    /// Acts under the lock of the ledger, for a moment.
    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R;
    /// A point at which a test may have the session wait.
    fn point(&self, _name: &'static str) {}
}

/// The right to change the ledger and its file, which one session has at a time.
pub trait Writer: Deref<Target: Server> {
    /// Why the server could not do it.
    type Error: From<Fault>;
    /// Acts on the leases that there are, which lie in memory.
    fn leases<R>(&self, act: impl FnOnce(&mut [Lease]) -> R) -> R;
    /// Reads the file; none if there is none.
    fn read(&self) -> Result<Option<Vec<u8>>, Self::Error>;
    /// Writes one half of the file, which is on disk when the call returns; returns false if there is no file.
    fn write(&self, half: usize, bytes: &[u8]) -> Result<bool, Self::Error>;
    /// Writes the exit note, or that there is none, which the operating system writes to disk later; without a file there is none.
    fn note(&self, bytes: &[u8; NOTE]) -> Result<(), Self::Error>;
    /// Replaces the file by a new one, which is on disk when the call returns, or has changed nothing.
    fn replace(&self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// A session of a primary: a standby makes no IDs.
pub trait Host: Server {
    /// Why the server could not do it.
    type Error: From<Fault>;
    /// The right to change the ledger. Until it is dropped, nothing is called that raises an error.
    type Writer<'a>: Writer<Error = Self::Error>
    where
        Self: 'a;

    /// The node in force.
    fn node(&self) -> Node;
    /// Sessions that take no part in the ledger have used only ticks that start before this instant.
    fn untraced(&self) -> i64 {
        i64::MIN
    }
    /// The timeline of the WAL that the server writes.
    fn wal_timeline(&self) -> u32;
    /// Reads the page of this session's database, and waits until what was read is on disk.
    fn page(&mut self) -> Result<Page, Self::Error>;
    /// Has `change` decide, while nobody else changes the page, and waits until the result is on disk. Returns what it says.
    fn change_page<R>(&mut self, change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Self::Error>;
    /// Waits for the right to change the ledger.
    fn writer(&mut self) -> Self::Writer<'_>;
    /// Takes it if nobody has it.
    fn try_writer(&mut self) -> Option<Self::Writer<'_>>;
    /// Acts on what this session's slot keeps of its generators.
    fn slot<R>(&mut self, act: impl FnOnce(&mut SlotProgress) -> R) -> R;
    /// A number that no transaction has yet.
    fn next_xid(&self) -> u64;
}
