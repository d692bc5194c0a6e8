//! The bound: up to where horizons may have been announced. It binds every node but the one that wrote it.

/// Up to where horizons may have been announced.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// How often horizons were taken back: what was announced before does not count.
    pub recalls: u32,
    /// The incarnation that announces.
    pub incarnation: u32,
    /// The instant; [`i64::MIN`] before the first horizon.
    pub instant: i64,
}

impl Bound {
    /// Nothing was announced.
    pub const NONE: Self = Self { recalls: 0, instant: i64::MIN, incarnation: 0 };

    /// Returns whichever counts.
    #[must_use]
    pub const fn united(self, other: Self) -> Self {
        let other_counts =
            other.recalls > self.recalls || other.recalls == self.recalls && other.instant > self.instant;
        if other_counts { other } else { self }
    }
}

/// What a server knows of horizons: those that bind it, and those that it may announce to others.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Horizons {
    /// The incarnation of the server.
    me: u32,
    /// Whether horizons are asked for here.
    binds: bool,
    /// Up to where horizons bind servers.
    pub bound: Bound,
    /// Horizons may have been announced up to this instant before the ledger began, by this server.
    before: i64,
    /// The bound of this incarnation that the file had when the ledger began.
    of_file: i64,
}

impl Horizons {
    /// Begins with what the file says. This server's own announcements were granted, and a note is not below them: time from
    /// `free_from` on was given back.
    pub const fn begin(me: u32, bound: Bound, free_from: i64) -> Self {
        let announced = if bound.incarnation == me { bound.instant } else { i64::MIN };
        let before = if announced < free_from { announced } else { free_from };
        Self { me, binds: false, bound, before, of_file: announced }
    }

    /// Returns what is known with what a page says. `is_own` says whether this start has written the page.
    #[must_use]
    pub fn with(&self, found: Bound, is_own: bool) -> Self {
        let mut new = Self { bound: self.bound.united(found), ..*self };
        if found.recalls > self.bound.recalls && (self.binds || self.bound.incarnation == self.me) {
            // The file, restored or a copy, does not know of the recall, and this server may have announced again since then.
            new.bind_upto(self.bound.instant);
            new.before = new.before.max(self.announced());
        }
        // This incarnation's own bound counts where the file does not know of it, because an older file was put back, although
        // this start may have bound more since; another one's counts also below this one's.
        let is_known =
            found.incarnation == self.me && new.bound == self.bound && (is_own || found.instant <= self.of_file);
        if !is_known && found.recalls >= self.bound.recalls {
            new.before = new.before.max(found.instant);
        }
        new
    }

    /// Up to this instant, horizons bind this server: another one's, or its own from before it began.
    pub fn announced(&self) -> i64 {
        if self.bound.incarnation == self.me { self.before } else { self.before.max(self.bound.instant) }
    }

    /// Takes back what was announced after an instant.
    pub(super) fn recall(&mut self, now: i64) {
        self.before = self.before.min(now);
        if self.bound.instant > now {
            self.bound = Bound { recalls: self.bound.recalls + 1, instant: now, incarnation: self.me };
        }
    }

    /// From now on, what is granted binds other servers, and so does what binds this one, as readers may be told that.
    pub(super) fn ask(&mut self) {
        self.binds = true;
        self.bind_upto(self.announced());
    }

    /// Whether horizons are asked for here.
    pub const fn binds(&self) -> bool {
        self.binds
    }

    /// Binds other servers up to an instant.
    pub(super) fn bind_upto(&mut self, instant: i64) {
        self.bound = self.bound.united(Bound { instant, incarnation: self.me, ..self.bound });
    }

    /// Returns whether a page or file says what has to bind other servers.
    pub fn are_in(&self, bound: Bound) -> bool {
        !self.binds || bound.united(self.bound) == bound
    }
}
