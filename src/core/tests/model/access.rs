//! The ledger as the generators of a session reach it: what src/ledger/access.rs and src/ledger/mark_page.rs do.

use std::cell::{Cell, RefCell};

use flake_core::resume::{Beginning, Grant, LedgerAccess};
use flake_core::timeline::MARGIN;
use flake_core::{Start, Window};

use crate::layouts::SECOND;
use crate::server::{Refused, Server};

/// When less than this remains of the time that was granted, sessions ask for more.
const RESERVE: i64 = SECOND;
const NONE: Window = Window { from: i64::MIN, until: i64::MIN, skip: i64::MAX };

/// A server as one of its sessions sees it.
pub struct Access<'a> {
    pub server: RefCell<&'a mut Server>,
    pub slot: usize,
    pub database: usize,
    /// Whether there is memory for the slot.
    pub is_traced: bool,
    /// Whether time was granted, and no WAL could be written of it.
    pub granted_in_recovery: Cell<Option<bool>>,
}

fn without_reserve(window: Window) -> Window {
    if window.until >= window.skip { window } else { Window { until: window.until - RESERVE, ..window } }
}

impl LedgerAccess for Access<'_> {
    type Error = Refused;

    fn begin(&self, key: u64) -> Beginning {
        let server = &mut **self.server.borrow_mut();
        // An error would end the statement; so the disk works for a moment.
        let disk_fails = std::mem::take(&mut server.disk_fails);
        server.open(self.database).unwrap();
        server.disk_fails = disk_fails;
        self.granted_in_recovery.set(Some(server.recovers()));
        let memory = &server.memory;
        let ledger = *memory.ledger();
        let start = if self.is_traced {
            memory.progress[self.slot].start(&ledger, key, memory.unstored_floor)
        } else {
            let floor = ledger.floor().max(memory.unstored_floor).max(memory.free_from);
            Start { free_from: server.clock().saturating_add(1).max(floor), resumed: None }
        };
        let is_covered = if start.resumed.is_some() {
            server.cover(self.database, ledger.mark());
            true
        } else {
            server.is_covered(self.database, ledger.mark())
        };
        Beginning {
            start,
            last_seen: server.memory.last_seen,
            era: ledger.era(),
            window: if is_covered { without_reserve(ledger.window()) } else { NONE },
        }
    }

    fn era(&self) -> u64 {
        self.server.borrow().memory.ledger().era()
    }

    fn grant(&self, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, Refused> {
        let server = &mut **self.server.borrow_mut();
        let grant = server.grant(self.database, now, tick_end, goes_back)?;
        self.granted_in_recovery.set(Some(server.recovers()));
        Ok(grant)
    }
}

impl Server {
    /// Asks for the tick that holds `now`.
    pub fn grant(&mut self, database: usize, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, Refused> {
        let is_in = |window: Window| now >= window.from && now < window.until && tick_end <= window.skip;
        let (window, era) = (self.memory.ledger().window(), self.memory.ledger().era());
        let mark_of = |window: Window| window.until.saturating_add(MARGIN);
        let (grant, mark) = if is_in(without_reserve(window)) {
            (Grant::Window(without_reserve(window), era), mark_of(window))
        } else {
            if self.recovers() && !self.allow_in_recovery {
                return Err(Refused::InRecovery);
            }
            self.open(database)?;
            match self.extend(now, tick_end, goes_back) {
                Ok(extended) => extended,
                Err(refused) if !is_in(window) => return Err(refused),
                Err(_) => (Grant::Window(window, era), mark_of(window)),
            }
        };
        if let Grant::Window(..) = grant {
            self.cover(database, mark);
        }
        Ok(grant)
    }

    /// Extends the ledger for a tick. Returns the answer, and the mark that the page needs before anybody acts on it.
    fn extend(&mut self, now: i64, tick_end: i64, goes_back: bool) -> Result<(Grant, i64), Refused> {
        let ledger = *self.memory.ledger();
        let window = without_reserve(ledger.window());
        if now >= window.from && now < window.until && tick_end <= window.skip {
            return Ok((Grant::Window(window, ledger.era()), ledger.mark()));
        }
        let granted = if goes_back && now < ledger.window().from {
            ledger.covered(now, tick_end)
        } else {
            ledger.extended(now, tick_end).map(|new| (new, without_reserve(new.window())))
        };
        let (new, window) = match granted {
            Ok(granted) => granted,
            Err(until) => return Ok((Grant::After(until), i64::MIN)),
        };
        self.replace(new, None)?;
        self.memory.last_seen = self.memory.last_seen.max(now);
        Ok((Grant::Window(window, new.era()), new.mark()))
    }

    /// Returns whether this node's mark in a page is at an instant or above. A standby cannot write to the page.
    fn is_covered(&mut self, database: usize, mark: i64) -> bool {
        if mark <= self.memory.covered[database] || self.recovers() {
            return true;
        }
        let is_covered = self.wal.pages[database].own(self.node) >= Some(mark);
        if is_covered {
            self.memory.covered[database] = mark;
        }
        is_covered
    }

    pub fn cover(&mut self, database: usize, mark: i64) {
        if !self.is_covered(database, mark) {
            self.raise(database, mark);
        }
    }

    /// Sees to it that every node that has the page makes no IDs before an instant.
    pub fn bind(&mut self, database: usize, mark: i64) {
        if self.wal.pages[database].binding() < mark {
            self.change_page(database, mark, true);
        }
    }
}
