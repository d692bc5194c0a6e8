//! The second oracle: it reports a lost row. Such a row has an ID below a horizon, and becomes visible after the snapshot for which
//! the horizon was returned.

use crate::exemptions::horizon_that_was_taken_back;
use crate::oracle::time;
use crate::play::{Play, World};
use crate::procs::Procs;
use crate::wal::Record;

/// The rows of a transaction.
pub struct Row {
    /// The number of the database, which is never used again.
    number: usize,
    /// The earliest end of the ticks of their IDs.
    pub end: i64,
    /// Which IDs the transaction has made.
    pub made: Vec<usize>,
    /// When they first became visible on any server.
    seen: Option<u64>,
    /// The session that inserted them.
    by: (char, usize),
}

/// A horizon that was returned.
#[derive(Clone)]
pub struct Horizon {
    pub instant: i64,
    number: usize,
    /// The last WAL record on disk when it was returned; the greatest number if its page is not visible to others.
    pub record: usize,
    /// When it was returned, in real time, and in which database.
    pub time: i64,
    pub database: usize,
    /// The place of its snapshot in the order of snapshots and commits.
    order: u64,
    by: (char, usize),
}

impl World {
    /// The next place in that order.
    pub fn moment(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Adds a row to a transaction. The tick of its ID ends at an instant. Returns the transaction's rows.
    pub fn insert(&mut self, (at, slot): (usize, usize), rows: Option<usize>, database: usize, end: i64) -> usize {
        let (number, by) = (self.machines[at].wal.numbers[database], (self.name(at), slot));
        let rows = rows.unwrap_or_else(|| {
            self.rows.push(Row { number, end, made: Vec::new(), seen: None, by });
            self.rows.len() - 1
        });
        let row = &mut self.rows[rows];
        row.end = row.end.min(end);
        rows
    }

    /// A row becomes visible on a server that, as a standby, has returned horizons for earlier snapshots.
    pub fn come_after(&mut self, at: usize, row: usize) {
        let rows = &self.rows[row];
        let is_lost = |horizon: &&Horizon| horizon.number == rows.number && rows.end <= horizon.instant;
        if let Some(horizon) = self.machines[at].replayed.iter().find(is_lost) {
            let sentence = lost(rows, horizon, self.name(at));
            self.fail(sentence);
        }
    }

    /// A session has published a horizon.
    pub fn publish(&mut self, (at, slot): (usize, usize), database: usize, instant: i64, time: i64) {
        let (by, order) = ((self.name(at), slot), self.moment());
        let machine = &mut self.machines[at];
        let number = machine.wal.numbers[database];
        machine.published.push(Horizon { instant, number, record: 0, time, database, order, by });
    }

    /// A session gets a horizon for a snapshot on a standby that had replayed so many records.
    pub fn returned_replayed(
        &mut self,
        (at, slot): (usize, usize),
        database: usize,
        (instant, replayed): (i64, usize),
        time: i64,
    ) {
        let (number, by) = (self.machines[at].wal.numbers[database], (self.name(at), slot));
        // The session that published it may not have returned yet.
        let new = Horizon { instant, number, record: 0, time, database, order: 0, by };
        let is_it = |one: &&Horizon| one.number == number && one.instant == instant;
        let is_valid = |one: &Horizon| !self.machines.iter().any(|by| horizon_that_was_taken_back(&by.taken_back, one));
        let mut all = self.machines.iter().flat_map(|machine| &machine.published).filter(is_it).peekable();
        let valid = if all.peek().is_some() { all.find(|one| is_valid(one)).cloned() } else { Some(new) };
        let Some(horizon) = valid.map(|horizon| Horizon { by, ..horizon }) else { return };
        let commits = self.machines[at].wal.records[replayed..].iter();
        let rows = commits.filter_map(|(_, record)| if let Record::Commit(_, row) = record { *row } else { None });
        let mut rows = rows.map(|row| &self.rows[row]);
        let lost_row = rows.find(|row| row.number == number && row.end <= instant);
        let sentence = lost_row.map(|row| lost(row, &horizon, by.0));
        self.machines[at].replayed.push(horizon);
        if let Some(sentence) = sentence {
            self.fail(sentence);
        }
    }

    /// The rows of a committed transaction become visible on a server.
    pub fn become_visible(&mut self, at: usize, row: usize) {
        let moment = self.moment();
        self.machines[at].procs.seen.push(row);
        let rows = &mut self.rows[row];
        let seen = *rows.seen.get_or_insert(moment);
        let rows = &self.rows[row];
        let is_lost =
            |horizon: &&Horizon| horizon.number == rows.number && rows.end <= horizon.instant && horizon.order < seen;
        if let Some(horizon) = self.machines[at].horizons.iter().find(is_lost) {
            let sentence = lost(rows, horizon, self.name(at));
            self.fail(sentence);
        }
    }

    /// A transaction has committed with a record.
    pub fn have_committed(&mut self, row: usize, record: usize) {
        for &made in &self.rows[row].made {
            self.oracle.made[made].record = record;
        }
    }

    /// After a start, a server knows the transactions in its WAL, and shows the rows of the committed ones.
    pub fn recover_transactions(&mut self, at: usize) {
        self.machines[at].procs = Procs::recovered(&self.machines[at].wal);
        let committed = |(record, (_, kind)): (usize, &(i64, Record))| match *kind {
            Record::Commit(_, Some(row)) => Some((row, record)),
            _ => None,
        };
        let all = (1..).zip(&self.machines[at].wal.records);
        let unseen = all.filter_map(committed).filter(|&(row, _)| self.rows[row].seen.is_none());
        let unseen: Vec<(usize, usize)> = unseen.collect();
        for (row, record) in unseen {
            self.have_committed(row, record);
            self.become_visible(at, row);
        }
    }

    /// A session gets a horizon for a snapshot that sees so many of the rows.
    pub fn returned(
        &mut self,
        (at, slot): (usize, usize),
        database: usize,
        instant: i64,
        look: (usize, u64),
        (record, time): (usize, i64),
    ) {
        let by = (self.name(at), slot);
        let machine = &mut self.machines[at];
        let number = machine.wal.numbers[database];
        let horizon = Horizon { instant, number, record, time, database, order: look.1, by };
        let since = &machine.procs.seen[look.0..];
        let rows = since.iter().map(|&row| &self.rows[row]);
        let lost_rows =
            rows.filter(|row| row.number == horizon.number && row.end <= instant && row.seen > Some(look.1));
        let sentence = lost_rows.map(|row| lost(row, &horizon, by.0)).next();
        let is_known = |known: &Horizon| known.number == horizon.number && known.instant >= instant;
        if !machine.horizons.iter().any(is_known) {
            machine.horizons.push(horizon);
        }
        if let Some(sentence) = sentence {
            self.fail(sentence);
        }
    }
}

impl Play {
    /// A server's clock is about to be accepted, or was. Horizons above its reading do not count any more. Returns the reading.
    pub fn take_horizons_back(&self, at: usize, known: Option<i64>) -> i64 {
        let time = self.time();
        let mut world = self.world();
        let machine = &mut world.machines[at];
        machine.acceptances += 1;
        let now = known.unwrap_or(i64::MAX).min(time + machine.offset());
        machine.taken_back.push((time, now));
        machine.horizons.retain(|horizon| horizon.instant <= now);
        let taken_back = [(time, now)];
        for machine in &mut world.machines {
            machine.replayed.retain(|horizon| !horizon_that_was_taken_back(&taken_back, horizon));
        }
        now
    }
}

fn lost(row: &Row, horizon: &Horizon, server: char) -> String {
    let (by, slot) = row.by;
    let (asked, asker) = horizon.by;
    format!(
        "a row is lost: session {slot} of server {by} has inserted an ID whose tick ends at {}, session {asker} of server {asked} \
         was told the horizon {}, and only then does the row become visible on server {server}",
        time(row.end),
        time(horizon.instant)
    )
}
