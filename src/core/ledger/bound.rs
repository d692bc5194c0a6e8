//! The bound on horizons.
//!
//! A server that has announced a horizon makes no ID below it, and after a failover the new primary must not do so either. A
//! horizon can be announced at any time, so the bound runs ahead: a server writes it before it announces, up to the end of granted
//! time. It binds every node but the one that wrote it, which knows what it has announced itself. flake_accept_clock lowers it: it
//! increases `recalls`, and of two bounds the one with more recalls counts.

use crate::instant::BEGINNING;

/// An instant that no announced horizon is above.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// How often the bound was lowered. A bound with fewer recalls is obsolete. Without this number, the union of two bounds would
    /// either undo the recall, or forget a horizon that a consumer has, and rows would come below it.
    pub recalls: u32,
    /// The incarnation that wrote it.
    pub incarnation: u32,
    /// The instant; [`BEGINNING`] before the first horizon.
    pub instant: i64,
}

impl Bound {
    /// No horizon was announced.
    pub const NONE: Self = Self { recalls: 0, instant: BEGINNING, incarnation: 0 };

    /// Returns the bound that is in force if both are known.
    #[must_use]
    pub const fn united(self, other: Self) -> Self {
        let other_counts =
            other.recalls > self.recalls || other.recalls == self.recalls && other.instant > self.instant;
        if other_counts { other } else { self }
    }
}

/// A server's knowledge of horizons: the ones that bind it, and the bound that it writes for others.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizons {
    /// The server's incarnation.
    me: u32,
    /// Whether sessions of this server ask for horizons.
    binds: bool,
    /// The bound that other servers find in the file and the page.
    pub bound: Bound,
    /// This server may have announced horizons up to here before the ledger began.
    before: i64,
    /// The bound of this incarnation that was in the file when the ledger began.
    of_file: i64,
}

impl Horizons {
    /// Begins with the content of the file. If an exit note gave back time from `free_from` on, this server has announced no horizon
    /// above that.
    pub fn begin(me: u32, bound: Bound, free_from: Option<i64>) -> Self {
        let announced = if bound.incarnation == me { bound.instant } else { BEGINNING };
        let before = free_from.map_or(announced, |free_from| announced.min(free_from));
        Self { me, binds: false, bound, before, of_file: announced }
    }

    /// Returns what is known after a page was read. `is_own` says whether this start has written the page.
    #[must_use]
    pub fn with(&self, found: Bound, is_own: bool) -> Self {
        let mut new = Self { bound: self.bound.united(found), ..*self };
        if found.recalls > self.bound.recalls && self.bound.incarnation == self.me {
            // The file is an older copy that lacks the recall, and this server may have announced horizons after it. The next
            // primary must make no ID below them.
            new.bind_upto(self.bound.instant);
            new.before = new.before.max(self.announced());
        }
        // The bound in the page is news unless the file has it too, or this start wrote it. A bound of this incarnation that is not
        // in the file shows that an older file was put back. A bound of another incarnation counts even if it is lower than ours.
        let is_known =
            found.incarnation == self.me && new.bound == self.bound && (is_own || found.instant <= self.of_file);
        if !is_known && found.recalls >= self.bound.recalls {
            new.before = new.before.max(found.instant);
        }
        if new.binds {
            new.ask();
        }
        new
    }

    /// Returns the horizon that binds this server: another server's, or its own from before the ledger began.
    pub fn announced(&self) -> i64 {
        // The file may know of a bound that no page contains yet.
        if self.bound.incarnation == self.me { self.before } else { self.before.max(self.bound.instant) }
    }

    /// Lowers all horizons that are above an instant.
    pub(super) fn recall(&mut self, now: i64) {
        self.before = self.before.min(now);
        if self.bound.instant > now {
            self.bound = Bound { recalls: self.bound.recalls + 1, instant: now, incarnation: self.me };
        }
    }

    /// Makes the bound apply to other servers from now on. It includes the horizon that binds this server, because sessions may
    /// return that too. So this incarnation signs it, whoever wrote it: else a restarted server would not know that it has
    /// announced it, and a recall that it then reads in a page would lower it.
    pub(super) fn ask(&mut self) {
        self.binds = true;
        self.before = self.announced();
        self.bind_upto(self.before);
        self.bound.incarnation = self.me;
    }

    /// Whether sessions of this server ask for horizons.
    pub const fn binds(&self) -> bool {
        self.binds
    }

    /// Raises the bound for other servers to an instant.
    pub(super) fn bind_upto(&mut self, instant: i64) {
        self.bound = self.bound.united(Bound { instant, incarnation: self.me, ..self.bound });
    }

    /// Returns whether the bound of a page or of the file is enough for other servers.
    pub fn are_in(&self, bound: Bound) -> bool {
        !self.binds || bound.united(self.bound) == bound
    }
}
