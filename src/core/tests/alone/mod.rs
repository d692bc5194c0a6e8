//! A server with a file, a page and some slots, whose clock shows what a test sets. One slot is in use at a time.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::cell::{Cell, RefCell};
use std::ops::Deref;

use flake_core::ledger::host::{Change, Fault, HALF, Host, Page, Server, Shared, SlotOwner, State, Timeline, Writer};
use flake_core::ledger::line::Line;
use flake_core::ledger::note::NOTE;
use flake_core::{Node, SlotProgress};

/// The number of a server's slots.
pub const SLOTS: usize = 8;
/// How many lanes have words: enough for three layouts.
pub const LINES: usize = 96;
pub const SECOND: i64 = 1_000_000;
pub const HOUR: i64 = 3600 * SECOND;
/// An instant that begins an hour, a millisecond and a unit of sno.
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
    pub now: Cell<i64>,
    pub file: RefCell<Option<Vec<u8>>>,
    /// The halves of the file that were written, in order; None if the file was replaced.
    pub writes: RefCell<Vec<Option<usize>>>,
    pub page: Page,
    pub node: Node,
    /// The timelines of the WAL up to the one that the server writes.
    pub timelines: Vec<u32>,
    /// Whether the history file of the last one is there.
    pub has_history: bool,
    pub disk_fails: Cell<bool>,
    pub chance: Cell<u32>,
    /// The slot of the session that makes the calls.
    pub slot: usize,
    /// The published era, each time that words were used under the ledger's lock.
    pub eras: RefCell<Vec<u64>>,
    shared: Shared,
    lines: Vec<Line>,
    state: RefCell<State>,
    slots: [SlotProgress; SLOTS],
}

fn lines() -> Vec<Line> {
    std::iter::repeat_with(Line::default).take(LINES).collect()
}

impl Alone {
    pub fn new() -> Self {
        Self {
            now: Cell::new(NOON),
            file: RefCell::new(None),
            writes: RefCell::default(),
            page: Page { bytes: None, last_value: None, turns: None },
            node: Node::new(0, 2).unwrap(),
            timelines: vec![1],
            has_history: true,
            disk_fails: Cell::new(false),
            chance: Cell::new(7),
            slot: 0,
            eras: RefCell::default(),
            shared: Shared::default(),
            lines: lines(),
            state: RefCell::default(),
            slots: Default::default(),
        }
    }

    /// Restarts the server: it keeps the disk, but not the memory.
    pub fn restarted(self) -> Self {
        Self {
            shared: Shared::default(),
            lines: lines(),
            state: RefCell::default(),
            slots: Default::default(),
            writes: RefCell::default(),
            ..self
        }
    }

    /// Promotes a standby that has the server's file and page. Its memory has no ledger, because a standby begins none.
    pub fn promoted(self) -> Self {
        let mut new = self.restarted();
        new.timelines.push(new.timelines.last().unwrap() + 1);
        new
    }

    pub fn at(&self, now: i64) -> &Self {
        self.now.set(now);
        self
    }
}

impl Server for Alone {
    fn now(&self) -> i64 {
        self.now.get()
    }
    fn boot(&self) -> Option<u64> {
        Some(1)
    }
    fn chance(&self) -> u32 {
        self.chance.set(self.chance.get() + 1);
        self.chance.get()
    }
    fn shared(&self) -> &Shared {
        &self.shared
    }
    fn lines(&self) -> &[Line] {
        if self.state.try_borrow().is_err() {
            self.eras.borrow_mut().push(self.shared.window.era());
        }
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

    fn note(&self, bytes: &[u8; NOTE]) -> Result<(), Trouble> {
        if let Some(file) = &mut *self.0.file.borrow_mut() {
            file[2 * HALF..].copy_from_slice(bytes);
        }
        if self.0.disk_fails.get() { Err(Trouble::Disk) } else { Ok(()) }
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
    fn page(&mut self) -> Result<Page, Trouble> {
        Ok(self.page.clone())
    }
    fn change_page<R>(&mut self, change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Trouble> {
        let (change, result) = change(&self.page);
        if let Change::Write(bytes, until, turns) = change {
            self.page = Page { bytes: Some(bytes), last_value: Some(until), turns: Some(turns) };
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

impl SlotOwner for Alone {
    fn slot<R>(&mut self, act: impl FnOnce(&mut SlotProgress) -> R) -> R {
        act(&mut self.slots[self.slot])
    }
}
