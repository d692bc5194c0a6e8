//! A session of a simulated server as the host of the protocol. The story may stop the session at every call.

use std::cell::Cell;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use flake_core::Node;
use flake_core::ledger::cursors::line::LaneCursors;
use flake_core::ledger::host::{Change, Fault, Host, Page, Server, Timeline, Writer};
use flake_core::ledger::time::shared::Shared;
use flake_core::ledger::time::state::State;
use flake_core::watermark::host::Refusal;

use crate::disk::File;
use crate::machine::{Machine, Memory};
use crate::play::Play;
use crate::wal::{Extension, Record};

/// An error of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    Fault(Fault),
    /// The disk is full or broken.
    Disk,
    /// No more transactions can be prepared.
    NoRoom,
    /// No watermark was published for a snapshot.
    NothingPublished,
    /// There is no watermark now.
    NoWatermark(Refusal),
    /// The extension does not exist, or another transaction is about to drop it.
    NoExtension,
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A session ends because its server has crashed.
pub struct Dead;
/// A session ends because it was terminated.
pub struct Terminated;

/// Requests of other threads to a running session.
#[derive(Default)]
pub struct Control {
    pub is_dead: AtomicBool,
    pub is_terminated: AtomicBool,
    /// The point at which the session stops; 0 if it does not.
    pub stops_at: AtomicU64,
    pub points: AtomicU64,
}

/// A lock that a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    State,
    Writer,
    Page(usize),
}

/// No call has so many points. A loop of the protocol that never ends has.
const ENDLESS: u64 = 1_000_000;

/// A session during a call.
pub struct Hosted {
    pub play: Arc<Play>,
    pub at: usize,
    pub proc: usize,
    pub database: usize,
    pub node: Node,
    pub memory: Arc<Memory>,
    pub offset: Arc<std::sync::atomic::AtomicI64>,
    pub control: Arc<Control>,
    /// The page as only this transaction sees it, which has dropped and created the extension.
    pub private: Option<Arc<Page>>,
    /// The ID of the transaction that publishes a watermark.
    pub xid: Option<u64>,
    /// The history in which the session has read the page.
    pub has_looked_in: Option<usize>,
    /// Whether the session has the lock of the ledger, under which it does not stop.
    pub has_lock: Cell<bool>,
}

impl Hosted {
    /// A point at which the session may stop; if its server crashes, it stops for ever.
    pub fn step(&self, name: &'static str) {
        if self.has_lock.get() {
            return;
        }
        self.die_if_dead();
        self.play.pass(1);
        let point = self.control.points.fetch_add(1, Ordering::Relaxed) + 1;
        assert!(point < ENDLESS, "a call does not end");
        if point == self.control.stops_at.load(Ordering::Relaxed) {
            self.play.stop(self.at, self.proc, Some(name), None);
            self.die_if_dead();
        }
    }

    fn die_if_dead(&self) {
        if self.control.is_dead.load(Ordering::Relaxed) {
            resume_unwind(Box::new(Dead));
        }
    }

    /// A point at which the session may be terminated.
    pub fn interruptible(&self) {
        if self.control.is_terminated.swap(false, Ordering::Relaxed) {
            resume_unwind(Box::new(Terminated));
        }
    }

    /// Takes a lock. While another session holds it, others run.
    fn wait_for<'a, T>(&self, mutex: &'a Mutex<T>, lock: Lock) -> MutexGuard<'a, T> {
        loop {
            match mutex.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::WouldBlock) => {
                    self.play.stop(self.at, self.proc, None, Some(lock));
                    self.die_if_dead();
                }
                Err(TryLockError::Poisoned(_)) => panic!("a session has panicked under the lock {lock:?}"),
            }
        }
    }

    fn with_machine<R>(&self, act: impl FnOnce(&mut Machine) -> R) -> R {
        act(&mut self.play.world().machines[self.at])
    }

    /// The extension of this session's database, and the record that it is from.
    fn extension(&self) -> Result<(Extension, usize), Trouble> {
        if let Some(private) = &self.private {
            return Ok((Some(Arc::clone(private)), 0));
        }
        self.with_machine(|machine| match &machine.wal.databases[self.database] {
            _ if machine.recreating.is_some_and(|(_, database)| database == self.database) => Err(Trouble::NoExtension),
            (None, _) => Err(Trouble::NoExtension),
            (extension, record) => Ok((extension.clone(), *record)),
        })
    }
}

impl Server for Hosted {
    fn clock(&self) -> i64 {
        self.step("reads the clock");
        let now = self.play.time() + self.offset.load(Ordering::Relaxed);
        self.step("has read the clock");
        now
    }

    fn monotonic(&self) -> i64 {
        self.play.time()
    }

    fn time(&self, era: u64, of_snos: bool) -> i64 {
        let time = self.shared().time(era, of_snos, self.clock(), || self.monotonic());
        self.play.any_time(time)
    }

    fn shared(&self) -> &Shared {
        self.step("looks at what all sessions share");
        &self.memory.shared
    }

    fn lines(&self) -> &[LaneCursors] {
        self.step("looks at the cursors of lanes");
        &self.memory.lines
    }

    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.step("takes the lock of the ledger");
        let mut state = self.wait_for(&self.memory.state, Lock::State);
        self.has_lock.set(true);
        let result = act(&mut state);
        self.has_lock.set(false);
        result
    }

    fn point(&self, name: &'static str) {
        self.step(name);
    }
}

/// The right to change the ledger.
pub struct Right<'a> {
    host: &'a Hosted,
    _guard: MutexGuard<'a, ()>,
}

impl Deref for Right<'_> {
    type Target = Hosted;

    fn deref(&self) -> &Hosted {
        self.host
    }
}

impl Writer for Right<'_> {
    type Error = Trouble;

    fn read(&self) -> Result<Option<Vec<u8>>, Trouble> {
        self.host.step("reads the file");
        Ok(self.host.with_machine(|machine| machine.file.as_ref().map(|file| file.bytes().to_vec())))
    }

    fn write(&self, half: usize, bytes: &[u8]) -> Result<bool, Trouble> {
        self.host.step("writes the file");
        let is_written = self.host.with_machine(|machine| {
            let fails = machine.disk_fails;
            let Some(file) = &mut machine.file else { return Ok(false) };
            file.write(half, if fails { &bytes[..bytes.len() / 3] } else { bytes });
            if fails { Err(Trouble::Disk) } else { Ok(true) }
        })?;
        if is_written {
            self.host.step("flushes the file");
            self.host.with_machine(|machine| {
                let fails = machine.disk_fails;
                match &mut machine.file {
                    Some(file) if !fails => file.flush(),
                    _ => return Err(Trouble::Disk),
                }
                Ok(())
            })?;
        }
        self.host.step("has written the file");
        Ok(is_written)
    }

    fn replace(&self, bytes: &[u8]) -> Result<(), Trouble> {
        self.host.step("replaces the file");
        self.host.with_machine(|machine| {
            if machine.disk_fails {
                return Err(Trouble::Disk);
            }
            machine.file = Some(File::new(bytes.to_vec()));
            Ok(())
        })?;
        self.host.step("has replaced the file");
        Ok(())
    }
}

impl Host for Hosted {
    type Error = Trouble;
    type Writer<'a> = Right<'a>;

    fn node(&self) -> Node {
        self.node
    }

    fn timeline(&self) -> Timeline {
        self.step("asks for the timeline");
        self.with_machine(|machine| Timeline {
            number: machine.timeline(),
            parents: Some(machine.history[..machine.history.len() - 1].to_vec()),
        })
    }

    fn random(&self) -> u64 {
        self.play.world().number()
    }

    fn max_lead(&self) -> i64 {
        self.with_machine(|machine| machine.max_lead)
    }

    fn page(&mut self) -> Result<Page, Trouble> {
        self.interruptible();
        self.step("reads the page");
        let (extension, record) = {
            let _guard = self.wait_for(&self.memory.pages[self.database], Lock::Page(self.database));
            self.extension()?
        };
        self.step("has read the page");
        self.has_looked_in = self.with_machine(|machine| {
            machine.wal.flush(record);
            Some(machine.branch)
        });
        self.interruptible();
        Ok(extension.map(|page| (*page).clone()).unwrap_or_default())
    }

    fn change_page<R>(&mut self, change: impl FnOnce(&Page) -> (Change, R)) -> Result<R, Trouble> {
        self.interruptible();
        self.step("is about to change the page");
        let mut written = None;
        let result = {
            let guard = self.wait_for(&self.memory.pages[self.database], Lock::Page(self.database));
            let (extension, _) = self.extension()?;
            let present = extension.map(|page| (*page).clone()).unwrap_or_default();
            let (change, result) = change(&present);
            if let Change::Write(bytes, reserved, turns) = change {
                let new = Arc::new(Page { bytes: Some(bytes), reserved: Some(reserved), turns: Some(turns) });
                self.step("changes the page");
                if self.private.is_some() {
                    self.private = Some(new);
                } else {
                    let time = self.play.time();
                    let record = Record::Extension(self.database, Some(new));
                    written = Some(self.with_machine(|machine| machine.wal.write(time, record)));
                }
            }
            drop(guard);
            result
        };
        if let Some(record) = written {
            self.step("flushes the page");
            self.with_machine(|machine| machine.wal.flush(record));
            self.step("has flushed the page");
        }
        self.interruptible();
        Ok(result)
    }

    fn writer(&mut self) -> Right<'_> {
        self.step("asks for the right to write");
        let guard = self.wait_for(&self.memory.writer, Lock::Writer);
        Right { host: self, _guard: guard }
    }

    fn try_writer(&mut self) -> Option<Right<'_>> {
        self.step("asks for the right to write if it is free");
        let guard = self.memory.writer.try_lock().ok()?;
        Some(Right { host: self, _guard: guard })
    }

    fn next_xid(&self) -> u64 {
        self.step("looks for a number that no transaction has");
        self.with_machine(|machine| machine.procs.next)
    }
}
