//! The oracle: it reports an ID that is made twice, or below the argument of flake_start_above. `exemptions.rs` has the cases that
//! the guarantee does not cover.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::exemptions::{self, Known};
use crate::layouts::{self, HOUR, Id, MORNING, SECOND};

/// A failure of the story, in sentences.
#[derive(Debug, Clone)]
pub struct Failure(pub String);

/// An ID with its maker and time.
#[derive(Debug, Clone)]
pub struct Made {
    pub server: usize,
    pub name: char,
    pub proc: usize,
    pub kind: usize,
    pub database: usize,
    /// The number of the database, which is never used again.
    pub number: usize,
    pub node: (u32, u32),
    /// A number that changes when anybody but the server changes its file.
    pub life: u64,
    pub branch: usize,
    /// The WAL record of its commit; the greatest number before the commit, or if there is none.
    pub record: usize,
    /// When the clock was read for it: the real time, then the clock's reading.
    pub time: i64,
    pub clock: i64,
    /// Which upgrade of its server was the last one; 0 if there was none.
    pub upgrade: usize,
    /// Whether its transaction has created the extension.
    pub of_creator: bool,
    pub id: Id,
}

/// Where one history of WAL left another.
#[derive(Debug, Clone)]
pub struct Branch {
    /// The history that it continues, and the last record that it has of it.
    pub parent: Option<(usize, usize)>,
    /// When it was promoted.
    pub promoted: i64,
}

/// An upgrade by `pg_upgrade`. The first one has number 1.
#[derive(Debug)]
pub struct Upgrade {
    /// The number of the upgrade before it; 0 if there was none.
    pub before: usize,
    /// Whether a database was not used since the server was promoted or upgraded.
    pub forgets: bool,
}

#[derive(Default)]
pub struct Oracle {
    pub made: Vec<Made>,
    of_bits: HashMap<u128, Vec<u32>, BuildHasherDefault<Mixed>>,
    pub branches: Vec<Branch>,
    /// For each database that was created from a template: the template, the history, and the record.
    pub databases: Vec<(usize, usize, usize)>,
    pub upgrades: Vec<Upgrade>,
    pub forgiven: [u64; exemptions::ALL.len()],
}

/// An instant as a time of day.
pub fn time(instant: i64) -> String {
    if instant.abs_diff(MORNING) > 1000 * 24 * HOUR as u64 {
        return if instant < MORNING { "long ago" } else { "the end of time" }.to_owned();
    }
    let since = instant - MORNING + 10 * HOUR;
    let (seconds, micros) = (since.div_euclid(SECOND), since.rem_euclid(SECOND));
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let day = if day == 0 { String::new() } else { format!(" of day {}", day + 1) };
    format!("{:02}:{:02}:{:02}.{micros:06}{day}", second / 3600, second / 60 % 60, second % 60)
}

impl std::fmt::Display for Made {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, clock, (id, count)) = (layouts::name(self.kind), time(self.clock), self.node);
        write!(f, "session {} of server {}, node {id} of {count}, of {kind} ", self.proc, self.name)?;
        write!(f, "in database {} when its clock said {clock} at {}", self.database, time(self.time))
    }
}

impl Oracle {
    /// Adds an ID. Returns what is wrong with it, if anything is.
    pub fn made(&mut self, made: Made) -> Option<String> {
        let number = self.made.len() as u32;
        let known = Known { branches: &self.branches, databases: &self.databases, upgrades: &self.upgrades };
        let same = self.of_bits.entry(made.id.bits).or_default();
        let mut wrong = None;
        for &other in same.iter() {
            let other = &self.made[other as usize];
            match exemptions::of(&known, other, &made) {
                Some(which) => self.forgiven[which] += 1,
                None => wrong = Some(format!("the same ID was made by\n  {other}\nand by\n  {made}")),
            }
        }
        same.push(number);
        self.made.push(made);
        wrong
    }
}

impl Oracle {
    /// Whether a history has the record of an ID.
    pub fn has_replayed(&self, mut branch: usize, made: &Made) -> bool {
        let mut end = usize::MAX;
        while branch != made.branch {
            let Some((parent, last)) = self.branches[branch].parent else { return false };
            (branch, end) = (parent, last);
        }
        made.record <= end
    }
}

/// A hash that uses the bits of an ID as they are.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u128(&mut self, number: u128) {
        self.write_u64(number as u64);
        self.write_u64((number >> 64) as u64);
    }
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }
}
