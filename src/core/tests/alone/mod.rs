//! A server with a file and a page, whose clock shows what a test sets.
#![allow(dead_code, reason = "not every test needs all of it")]

pub mod making;
pub mod notation;

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::sync::atomic::Ordering;

use flake_core::ledger::cursors::line::{LaneCursors, MOST_LINES};
use flake_core::ledger::durable::file::{HALF, newest};
use flake_core::ledger::durable::record::Reserved;
use flake_core::ledger::host::{Change, Fault, Host, Page, Server, Timeline, Writer};
use flake_core::ledger::time::shared::Shared;
use flake_core::ledger::time::state::{Ledger, State};
use flake_core::{Layout, Node, Resumable};

pub const SECOND: i64 = 1_000_000;
pub const HOUR: i64 = 3600 * SECOND;
/// An instant that begins an hour, a millisecond and a tick of sno.
pub const NOON: i64 = 1_780_000_000 / 3600 * 3600 * SECOND;

#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    Fault(Fault),
    Disk,
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

pub struct Alone {
    /// The readings of the clock and of the steady clock.
    pub now: Cell<i64>,
    pub monotonic: Cell<i64>,
    /// After the next reading of the clock, another session raises the cursor of the first lane to this number, and the clock shows this
    /// instant.
    pub after_reading: Cell<Option<(u64, i64)>>,
    pub max_lead: Cell<i64>,
    pub file: RefCell<Option<Vec<u8>>>,
    /// The halves of the file that were written, in order; None if the file was replaced.
    pub writes: RefCell<Vec<Option<usize>>>,
    pub page: Page,
    /// Another server's record, which comes into the page before a session that has read the page changes it.
    pub meanwhile: Cell<Option<Vec<u8>>>,
    pub node: Node,
    /// The timelines of the WAL up to the one that the server writes.
    pub timelines: Vec<u32>,
    /// Whether the history file of the last one is there.
    pub has_history: bool,
    pub disk_fails: Cell<bool>,
    pub random: Cell<u64>,
    /// The session that makes IDs, if one has begun.
    pub own: Option<Resumable<&'static Layout>>,
    /// The era and the ledger at an earlier moment.
    pub noted: (u64, Option<Ledger>),
    shared: Shared,
    lines: Vec<LaneCursors>,
    state: RefCell<State>,
}

fn lines() -> Vec<LaneCursors> {
    std::iter::repeat_with(LaneCursors::default).take(MOST_LINES).collect()
}

impl Alone {
    pub fn new() -> Self {
        Self {
            now: Cell::new(NOON),
            monotonic: Cell::new(0),
            after_reading: Cell::default(),
            max_lead: Cell::new(HOUR),
            file: RefCell::new(None),
            writes: RefCell::default(),
            page: Page::default(),
            meanwhile: Cell::default(),
            node: Node::new(0, 2).unwrap(),
            timelines: vec![1],
            has_history: true,
            disk_fails: Cell::new(false),
            random: Cell::new(7),
            own: None,
            noted: (0, None),
            shared: Shared::default(),
            lines: lines(),
            state: RefCell::default(),
        }
    }

    /// Restarts the server: it keeps the disk, but not the memory.
    pub fn restarted(self) -> Self {
        Self {
            shared: Shared::default(),
            lines: lines(),
            state: RefCell::default(),
            writes: RefCell::default(),
            own: None,
            ..self
        }
    }

    /// Promotes a standby that has the server's file and page. Its memory has no ledger, because a standby begins none.
    pub fn promoted(self) -> Self {
        let mut new = self.restarted();
        new.timelines.push(new.timelines.last().unwrap() + 1);
        new
    }

    /// Sets the clock, while the steady clock stands.
    pub fn at(&self, now: i64) -> &Self {
        self.now.set(now);
        self
    }

    /// Time passes.
    pub fn pass(&self, by: i64) -> &Self {
        self.now.set(self.now.get() + by);
        self.monotonic.set(self.monotonic.get() + by);
        self
    }

    /// flake's time of layouts.
    pub fn led(&self) -> i64 {
        self.time(self.shared.era(), false)
    }

    pub fn ledger(&self) -> Ledger {
        self.lock(|state| state.ledger).unwrap()
    }

    /// Whether the file may have an acceptance whose call has failed.
    pub fn is_in_doubt(&self) -> bool {
        self.lock(|state| state.file.is_in_doubt)
    }

    pub fn in_file(&self) -> Reserved {
        newest(self.file.borrow().as_ref().unwrap()).unwrap().0.reserved
    }

    pub fn in_page(&self) -> Reserved {
        self.page.record().unwrap().reserved
    }
}

impl Server for Alone {
    fn clock(&self) -> i64 {
        let now = self.now.get();
        if let Some((cursor, later)) = self.after_reading.take() {
            self.lines[0].cursor(self.shared.era(), 0).fetch_max(cursor, Ordering::SeqCst);
            self.now.set(later);
        }
        now
    }
    fn monotonic(&self) -> i64 {
        self.monotonic.get()
    }
    fn shared(&self) -> &Shared {
        &self.shared
    }
    fn lines(&self) -> &[LaneCursors] {
        &self.lines
    }
    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.borrow_mut())
    }
}

pub struct Right<'a>(&'a Alone);

impl Deref for Right<'_> {
    type Target = Alone;

    fn deref(&self) -> &Alone {
        self.0
    }
}

impl Writer for Right<'_> {
    type Error = Trouble;

    fn read(&self) -> Result<Option<Vec<u8>>, Trouble> {
        Ok(self.0.file.borrow().clone())
    }

    fn write(&self, half: usize, bytes: &[u8]) -> Result<bool, Trouble> {
        if self.0.disk_fails.get() {
            return Err(Trouble::Disk);
        }
        let mut file = self.0.file.borrow_mut();
        let Some(file) = &mut *file else { return Ok(false) };
        file[half * HALF..][..bytes.len()].copy_from_slice(bytes);
        self.0.writes.borrow_mut().push(Some(half));
        Ok(true)
    }

    fn replace(&self, bytes: &[u8]) -> Result<(), Trouble> {
        if self.0.disk_fails.get() {
            return Err(Trouble::Disk);
        }
        *self.0.file.borrow_mut() = Some(bytes.to_vec());
        self.0.writes.borrow_mut().push(None);
        Ok(())
    }
}

impl Host for Alone {
    type Error = Trouble;
    type Writer<'a> = Right<'a>;

    fn node(&self) -> Node {
        self.node
    }
    fn timeline(&self) -> Timeline {
        let (&number, parents) = self.timelines.split_last().unwrap();
        Timeline { number, parents: self.has_history.then(|| parents.to_vec()) }
    }
    fn random(&self) -> u64 {
        self.random.set(self.random.get() + 1);
        self.random.get()
    }
    fn max_lead(&self) -> i64 {
        self.max_lead.get()
    }
    fn page(&mut self) -> Result<Page, Trouble> {
        Ok(self.page.clone())
    }
    fn change_page<R>(&mut self, change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Trouble> {
        if let Some(bytes) = self.meanwhile.take() {
            self.page.bytes = Some(bytes);
        }
        let (change, result) = change(&self.page);
        if let Change::Write(bytes, reserved, turns) = change {
            self.page = Page { bytes: Some(bytes), reserved: Some(reserved), turns: Some(turns) };
        }
        Ok(result)
    }
    fn writer(&mut self) -> Right<'_> {
        Right(self)
    }
    fn try_writer(&mut self) -> Option<Right<'_>> {
        Some(self.writer())
    }
    fn next_xid(&self) -> u64 {
        3
    }
}
