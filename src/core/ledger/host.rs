//! The interface between the ledger and the server that it runs in: PostgreSQL, or the simulator.

use std::ops::Deref;

use super::cursors::line::LaneCursors;
use super::durable::record::{Record, Reserved};
use super::durable::record_format::Unreadable;
use super::time::shared::Shared;
use super::time::state::State;
use crate::{Node, Turns};

/// Why a file or a page cannot be used, or no time is granted.
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
    /// IDs would lead the clock by the first number of microseconds; the second is flake.max_lead.
    #[error("IDs lead the clock by more than flake.max_lead")]
    Lead(i64, i64),
    /// The IDs of both generations lead it by the first number of microseconds or more; the second is flake.max_lead.
    #[error("the clock cannot be accepted again")]
    BothLead(i64, i64),
}

/// A page that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Its content; None if the page does not exist.
    pub bytes: Option<Vec<u8>>,
    /// If there is no page, such as after pg_upgrade: what the sequence's last value and its copy say is reserved.
    pub reserved: Option<Reserved>,
    /// The same of the sequence with the turns.
    pub turns: Option<i64>,
}

impl Page {
    /// Decodes the record.
    ///
    /// # Errors
    /// The page is unreadable.
    pub fn record(&self) -> Result<Record, Fault> {
        match &self.bytes {
            None => Ok(Record {
                reserved: self.reserved.unwrap_or(Reserved::NONE),
                turns: self.turns.map_or(Turns::NONE, |turns| Turns::from_number(turns).before_upgrade()),
                ..Record::default()
            }),
            Some(bytes) => Record::decode(bytes).map(|(record, _)| record).map_err(Fault::Page),
        }
    }
}

/// A decision about a page.
#[derive(Debug)]
pub enum Change {
    /// Leave the page as it is.
    Keep,
    /// Write these bytes, and set the last values of the sequences to this reserved time and these turns.
    Write(Vec<u8>, Reserved, i64),
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
    fn clock(&self) -> i64;
    /// A clock in microseconds that is never set.
    fn monotonic(&self) -> i64;
    /// The shared memory that is used without a lock.
    fn shared(&self) -> &Shared;
    /// The lines of shared memory for the cursors of lanes.
    fn lines(&self) -> &[LaneCursors];
    /// Runs a short action under the ledger's lock.
    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R;
    /// A named point at which a test can stop the session.
    fn point(&self, _name: &'static str) {}
    /// flake's time in an era, of layouts or of snos.
    #[inline]
    fn time(&self, era: u64, of_snos: bool) -> i64 {
        self.shared().time(era, of_snos, self.clock(), || self.monotonic())
    }
}

/// The right to change the ledger and its file. Only one session has it at a time.
pub trait Writer: Deref<Target: Server> {
    /// An error of the file's reads and writes.
    type Error: From<Fault>;
    /// Reads the file; None if it does not exist.
    fn read(&self) -> Result<Option<Vec<u8>>, Self::Error>;
    /// Writes to the beginning of one half of the file and flushes it. Returns false if the file does not exist.
    fn write(&self, half: usize, bytes: &[u8]) -> Result<bool, Self::Error>;
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
    /// A random number other than 0.
    fn random(&self) -> u64;
    /// How far IDs may lead the clock, in microseconds.
    fn max_lead(&self) -> i64;
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
}
