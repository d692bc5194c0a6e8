//! The interface between the protocol and the server that it runs in: PostgreSQL, or the simulator.

use std::ops::Deref;

use super::block::{SIZE, Unreadable};
use super::line::Line;
use super::note::NOTE;
use super::slot::SlotProgress;
use super::state::Ledger;
use super::window::SharedWindow;
use crate::Node;
use crate::instant::BEGINNING;
use crate::sync::{AtomicI64, AtomicU32, AtomicU64};

/// The size of each half of the file in bytes.
pub const HALF: usize = 8192;
const _: () = assert!(SIZE <= HALF);
/// The size of the file in bytes: two halves and the exit note.
pub const FILE: usize = 2 * HALF + NOTE;

/// Shared memory that sessions use without a lock.
#[repr(C)]
#[derive(Debug)]
pub struct Shared {
    /// The window and the era.
    pub window: SharedWindow,
    /// The highest announced horizon. No ID is made in a tick that has ended by then.
    pub announced: AtomicI64,
    /// How often horizons were recalled. Horizons from before a recall do not count.
    pub recalls: AtomicU32,
    /// How many sessions make IDs or ask for horizons.
    pub sessions: AtomicU32,
    /// How many lines have the words of layouts.
    pub lines: AtomicU64,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            window: SharedWindow::default(),
            announced: AtomicI64::new(BEGINNING),
            recalls: AtomicU32::new(0),
            sessions: AtomicU32::new(0),
            lines: AtomicU64::new(0),
        }
    }
}

/// Shared memory that sessions use under the ledger's lock.
#[derive(Debug, Clone, Copy, Default)]
pub struct State {
    /// The ledger, once it has begun. Only a `Writer` replaces it.
    pub ledger: Option<Ledger>,
    /// When the server started, if that is known.
    pub started_at: Option<i64>,
    /// In this era, the sessions that have exited used only ticks of sno that begin before this instant. Snos have no words, so without
    /// it an exit note would give back ticks in which some were made.
    pub free_from: Option<i64>,
    /// Time before this instant may be closed because the server was started or promoted, and not because of the clock.
    pub opened_at: Option<i64>,
    /// An earlier primary made IDs up to here, and the clock of this one is behind. The next session to be granted time says so.
    pub behind: Option<i64>,
    /// Transactions that began after the ledger have this transaction ID or a later one.
    pub first_xid: u64,
    /// The state of the file.
    pub file: FileState,
}

/// The state of the file, as far as this server knows it.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileState {
    /// The number of the last record.
    pub number: u64,
    /// The checksum of the last record.
    pub checksum: u64,
    /// The half that holds the last record.
    pub half: usize,
    /// Whether there is an exit note.
    pub has_exit_note: bool,
    /// Whether both halves must be replaced: an earlier start wrote them, perhaps without a flush.
    pub is_old: bool,
    /// Whether the file may contain an acceptance of the clock whose write failed. Horizons that were announced since would not be in
    /// it, and after a crash rows could come below them.
    pub is_in_doubt: bool,
}

/// Why a file or a page cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file is unreadable.
    #[error("file \"flake.mark\" {0}")]
    File(Unreadable),
    /// The page is unreadable.
    #[error("second page of sequence \"flake_mark\" {0}")]
    Page(Unreadable),
    /// It is not known which turn the timeline before this one had.
    #[error("turn of this server on timeline {0} is not known")]
    Turn(u32),
}

/// A page that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Its content; None if the page does not exist.
    pub bytes: Option<Vec<u8>>,
    /// If there is no page, such as after pg_upgrade: the sequence's last value, an instant that the last writer of the page has
    /// set.
    pub last_value: Option<i64>,
    /// The same of the sequence with the turns.
    pub turns: Option<i64>,
}

/// A decision about a page.
#[derive(Debug)]
pub enum Change {
    /// Leave the page as it is, because it contains the marks already.
    Keep,
    /// Write these bytes, and set the last values of the sequences to this instant and these turns.
    Write(Vec<u8>, i64, i64),
}

/// The timeline of a server's WAL.
#[derive(Debug, Clone)]
pub struct Timeline {
    /// Its number.
    pub number: u32,
    /// The timelines before it by its history file, the first one first; None if the file is missing or unreadable.
    pub parents: Option<Vec<u32>>,
}

/// Services of the server that raise no error. Code that holds a lock calls only these, and the services of a [`Writer`].
pub trait Server {
    /// The clock: microseconds since 1970.
    fn now(&self) -> i64;
    /// Identifies the run of the operating system, if anything does.
    fn boot(&self) -> Option<u64>;
    /// A random number other than 0.
    fn chance(&self) -> u32;
    /// The shared memory that is used without a lock.
    fn shared(&self) -> &Shared;
    /// The lines of shared memory for the words of lanes.
    fn lines(&self) -> &[Line];
    /// Runs a short action under the ledger's lock.
    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R;
    /// A named point at which a test can stop the session.
    fn point(&self, _name: &'static str) {}
}

/// The right to change the ledger and its file. Only one session has it at a time.
pub trait Writer: Deref<Target: Server> {
    /// An error of the file's reads and writes.
    type Error: From<Fault>;
    /// Reads the file; None if it does not exist.
    fn read(&self) -> Result<Option<Vec<u8>>, Self::Error>;
    /// Writes one half of the file and flushes it. Returns false if the file does not exist.
    fn write(&self, half: usize, bytes: &[u8]) -> Result<bool, Self::Error>;
    /// Writes an exit note, or overwrites it with zeros, without a flush. Does nothing if the file does not exist.
    fn note(&self, bytes: &[u8; NOTE]) -> Result<(), Self::Error>;
    /// Replaces the file by a new one, and flushes that. If it fails, the old file is unchanged.
    fn replace(&self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// A session of a primary. A standby makes no IDs.
pub trait Host: Server {
    /// An error of the server.
    type Error: From<Fault>;
    /// The right to change the ledger. While it is held, nothing is called that raises an error.
    type Writer<'a>: Writer<Error = Self::Error>
    where
        Self: 'a;

    /// The node in force.
    fn node(&self) -> Node;
    /// The timeline of the WAL that the server writes.
    fn timeline(&self) -> Timeline;
    /// Reads the page of this session's database, and waits until what it read is on disk.
    fn page(&mut self) -> Result<Page, Self::Error>;
    /// Locks the page, calls `change` with its content, applies the change, and waits until it is on disk. Returns the closure's
    /// result.
    fn change_page<R>(&mut self, change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Self::Error>;
    /// Waits for the right to change the ledger.
    fn writer(&mut self) -> Self::Writer<'_>;
    /// Takes the right to change the ledger if no session holds it.
    fn try_writer(&mut self) -> Option<Self::Writer<'_>>;
    /// A transaction ID that has not been assigned yet.
    fn next_xid(&self) -> u64;
    /// Tells the user that IDs can lie below IDs of an earlier primary, which made some up to an instant. May be interrupted.
    fn is_behind(&mut self, _until: i64) {}
}

/// A session that owns its slot: it makes IDs, asks for horizons, or both.
pub trait SlotOwner: Host {
    /// Runs an action on the progress that the slot keeps.
    fn slot<R>(&mut self, act: impl FnOnce(&mut SlotProgress) -> R) -> R;
}
