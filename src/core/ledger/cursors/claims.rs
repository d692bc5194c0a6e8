//! Which lines of shared memory have the cursors of a layout, and what the cursors say.

use super::line::{CUSTOM_LINES, LaneCursors};
use crate::Lanes;
use crate::cursors::Cursors;
use crate::ledger::host::Server;
use crate::ledger::time::shared::Shared;
use crate::sync::{AtomicU64, Ordering};

/// The cursors of an era on a server.
#[derive(Debug)]
pub struct ServerCursors<'a, H> {
    host: &'a H,
    first: usize,
    era: u64,
}

impl<'a, H: Server> ServerCursors<'a, H> {
    /// The cursors that a generator of an era uses, in the lines from this one on.
    #[inline]
    pub const fn new(host: &'a H, first: usize, era: u64) -> Self {
        Self { host, first, era }
    }

    #[inline]
    fn cursor(&self, lane: u64, bit: u64) -> &AtomicU64 {
        self.host.lines()[self.first + lane as usize].cursor(self.era, bit)
    }

    fn count(&self) -> &AtomicU64 {
        &self.host.lines()[self.first].steps_back
    }
}

impl<H: Server> Cursors for ServerCursors<'_, H> {
    #[inline]
    fn load(&self, lane: u64, bit: u64) -> u64 {
        self.cursor(lane, bit).load(Ordering::SeqCst)
    }

    #[inline]
    fn swap(&self, lane: u64, bit: u64, old: u64, new: u64) -> bool {
        debug_assert!(old < new, "a cursor only rises");
        self.cursor(lane, bit).compare_exchange(old, new, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    fn steps_back(&self) -> u64 {
        self.count().load(Ordering::SeqCst)
    }

    fn step_back(&self, known: u64) -> bool {
        self.count().compare_exchange(known, known + 1, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// A session checks this after it has taken a block: if the era is still the same, the block is above its floor.
    #[inline]
    fn are_current(&self) -> bool {
        self.host.shared().era() == self.era
    }
}

/// The number in place of a database for a built-in layout, which belongs to all of them.
pub const BUILT_IN: u32 = 0;

/// The lines of a database's custom layouts. Layouts with the same bits as one of another database use the lines of that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// How many lines the database has.
    pub taken: u64,
    /// How many it can have: half of those that other databases leave, so that the next one finds some too.
    pub most: u64,
}

/// Finds the lines of a layout that has these lanes on the server, or takes free ones; returns the first. Returns None if its database
/// has too many. There are always enough for built-in layouts. Layouts with the same bits have the same key, and share their lines.
/// `database` is the layout's, or [`BUILT_IN`].
pub fn claim(server: &impl Server, key: u64, lanes: &Lanes, database: u32) -> Option<usize> {
    let (lines, used) = (server.lines(), &server.shared().lines);
    // The lock keeps others from taking the same lines.
    server.lock(|_| {
        let all = used.load(Ordering::Acquire) as usize;
        let known = starts(&lines[..all]).find(|&at| lines[at].key.load(Ordering::Relaxed) == key);
        if known.is_none() && database != BUILT_IN {
            let Quota { taken, most } = quota_of(&lines[..all], database);
            if taken + lanes.count > most {
                return None;
            }
        }
        let first = known.unwrap_or(all);
        let of = lines.get(first..first + lanes.count as usize)?.first()?;
        if known.is_none() {
            let set = |number: &AtomicU64, value| number.store(value, Ordering::Relaxed);
            set(&of.key, key);
            set(&of.database, database.into());
            set(&of.lanes, lanes.count);
            used.store(all as u64 + lanes.count, Ordering::Release);
        }
        debug_assert_eq!(
            of.lanes.load(Ordering::Relaxed),
            lanes.count,
            "layouts with the same bits have as many lanes"
        );
        Some(first)
    })
}

/// Returns the last tick in which sessions have taken IDs of a layout in the generation of an era. None if they have taken none.
pub(super) fn last_tick(shared: &Shared, lines: &[LaneCursors], key: u64, lanes: &Lanes, era: u64) -> Option<u64> {
    let used = &lines[..shared.lines.load(Ordering::Acquire) as usize];
    let first = starts(used).find(|&at| used[at].key.load(Ordering::Relaxed) == key)?;
    let cursors = used.get(first..first + lanes.count as usize)?.iter();
    let last = cursors.map(|line| line.cursor(era, 0).load(Ordering::SeqCst)).max()?;
    Some(last.checked_sub(1)? / lanes.size())
}

/// Returns the lines that a database has, and how many it can have.
pub fn quota(shared: &Shared, lines: &[LaneCursors], database: u32) -> Quota {
    quota_of(&lines[..shared.lines.load(Ordering::Acquire) as usize], database)
}

fn quota_of(used: &[LaneCursors], database: u32) -> Quota {
    let (mut taken, mut of_others) = (0, 0);
    for at in starts(used) {
        let lanes = used[at].lanes.load(Ordering::Relaxed);
        match used[at].database.load(Ordering::Relaxed) {
            owner if owner == u64::from(database) => taken += lanes,
            owner if owner == u64::from(BUILT_IN) => {}
            _ => of_others += lanes,
        }
    }
    Quota { taken, most: (CUSTOM_LINES as u64).saturating_sub(of_others) / 2 }
}

/// The first lines of each layout.
fn starts(used: &[LaneCursors]) -> impl Iterator<Item = usize> {
    let next = |at: &usize| Some(at + used.get(*at)?.lanes.load(Ordering::Relaxed).max(1) as usize);
    std::iter::successors(Some(0), next).take_while(|&at| at < used.len())
}
