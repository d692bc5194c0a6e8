//! The second oracle: it reports a lost row. Such a row has an ID below a watermark, and becomes visible after the snapshot for which
//! the watermark was returned.

use crate::oracle::time;
use crate::play::World;
use crate::procs::Procs;
use crate::wal::Record;

/// The rows of a transaction.
pub struct Row {
    /// The number of the database, which is never used again.
    number: usize,
    /// The ends of the ticks of their IDs, each with how often the clock had been accepted by then.
    ends: Vec<(i64, u64)>,
    /// Which IDs the transaction has made.
    pub made: Vec<usize>,
    /// When they first became visible on any server.
    seen: Option<u64>,
    /// The session that inserted them.
    by: (char, usize),
}

/// A watermark that was returned.
#[derive(Clone)]
pub struct Watermark {
    pub instant: i64,
    /// How often the clock had been accepted by then. IDs of a later generation may be below it.
    pub acceptances: u64,
    number: usize,
    /// The last WAL record on disk when it was returned; the greatest number if its page is not visible to others.
    pub record: usize,
    /// The place of its snapshot in the order of snapshots and commits.
    order: u64,
    by: (char, usize),
}

impl Row {
    /// Whether an ID of it is below a watermark.
    fn is_below(&self, watermark: &Watermark) -> bool {
        let is_below =
            |&(end, acceptances): &(i64, u64)| end <= watermark.instant && acceptances <= watermark.acceptances;
        self.number == watermark.number && self.ends.iter().any(is_below)
    }
}

impl World {
    /// How often the clock of a server was accepted.
    pub fn acceptances(&self, at: usize) -> u64 {
        let state = self.machines[at].memory.state.lock().unwrap();
        state.ledger.map_or(0, |ledger| ledger.reserved.acceptances)
    }

    /// The next place in that order.
    pub fn moment(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    /// Adds a row to a transaction. The tick of its ID ends at an instant. Returns the transaction's rows.
    pub fn insert(&mut self, (at, proc): (usize, usize), rows: Option<usize>, database: usize, end: i64) -> usize {
        let (number, by) = (self.machines[at].wal.numbers[database], (self.name(at), proc));
        let rows = rows.unwrap_or_else(|| {
            self.rows.push(Row { number, ends: Vec::new(), made: Vec::new(), seen: None, by });
            self.rows.len() - 1
        });
        let acceptances = self.acceptances(at);
        self.rows[rows].ends.push((end, acceptances));
        rows
    }

    /// A row becomes visible on a server that, as a standby, has returned watermarks for earlier snapshots.
    pub fn come_after(&mut self, at: usize, row: usize) {
        let rows = &self.rows[row];
        let is_lost = |watermark: &&Watermark| rows.is_below(watermark);
        if let Some(watermark) = self.machines[at].replayed.iter().find(is_lost) {
            let sentence = lost(rows, watermark, self.name(at));
            self.fail(sentence);
        }
    }

    /// A session gets a watermark for a snapshot on a standby that had replayed so many records.
    pub fn returned_replayed(
        &mut self,
        (at, proc): (usize, usize),
        database: usize,
        (instant, acceptances): (i64, u64),
        replayed: usize,
    ) {
        let (number, by) = (self.machines[at].wal.numbers[database], (self.name(at), proc));
        let watermark = Watermark { instant, acceptances, number, record: 0, order: 0, by };
        let commits = self.machines[at].wal.records[replayed..].iter();
        let rows = commits.filter_map(|(_, record)| if let Record::Commit(_, row) = record { *row } else { None });
        let mut rows = rows.map(|row| &self.rows[row]);
        let lost_row = rows.find(|row| row.is_below(&watermark));
        let sentence = lost_row.map(|row| lost(row, &watermark, by.0));
        self.machines[at].replayed.push(watermark);
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
        let is_lost = |watermark: &&Watermark| rows.is_below(watermark) && watermark.order < seen;
        if let Some(watermark) = self.machines[at].watermarks.iter().find(is_lost) {
            let sentence = lost(rows, watermark, self.name(at));
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

    /// A session gets a watermark for a snapshot that sees so many of the rows.
    pub fn returned(
        &mut self,
        (at, proc): (usize, usize),
        database: usize,
        (instant, acceptances): (i64, u64),
        look: (usize, u64),
        record: usize,
    ) {
        let by = (self.name(at), proc);
        let machine = &mut self.machines[at];
        let number = machine.wal.numbers[database];
        let watermark = Watermark { instant, acceptances, number, record, order: look.1, by };
        let since = &machine.procs.seen[look.0..];
        let rows = since.iter().map(|&row| &self.rows[row]);
        let lost_rows = rows.filter(|row| row.is_below(&watermark) && row.seen > Some(look.1));
        let sentence = lost_rows.map(|row| lost(row, &watermark, by.0)).next();
        let is_known = |known: &Watermark| {
            known.number == watermark.number && known.instant >= instant && known.acceptances >= acceptances
        };
        if !machine.watermarks.iter().any(is_known) {
            machine.watermarks.push(watermark);
        }
        if let Some(sentence) = sentence {
            self.fail(sentence);
        }
    }
}

fn lost(row: &Row, watermark: &Watermark, server: char) -> String {
    let (by, proc) = row.by;
    let (asked, asker) = watermark.by;
    format!(
        "a row is lost: session {proc} of server {by} has inserted IDs whose ticks end at {:?}, session {asker} of server {asked} \
         was told the watermark {}, and only then does the row become visible on server {server}",
        row.ends.iter().map(|&(end, acceptances)| (time(end), acceptances)).collect::<Vec<_>>(),
        time(watermark.instant)
    )
}
