//! Failures: an ID that is made twice, or below the instant that flake_start_above was given. The cases that the guarantee does
//! not cover are in `exemptions.rs`, and nowhere else.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::exemptions;
use crate::layouts::{self, HOUR, Id, MORNING, SECOND};

/// Sentences on what has gone wrong.
#[derive(Debug, Clone)]
pub struct Failure(pub String);

/// Who has made an ID, and when.
#[derive(Debug, Clone)]
pub struct Made {
    pub server: usize,
    pub name: char,
    pub slot: usize,
    pub kind: usize,
    pub database: usize,
    /// The number of the database, which does not come again.
    pub number: usize,
    pub node: (u32, u32),
    /// A number that lasts as long as nobody but the server changes its file.
    pub life: u64,
    pub branch: usize,
    /// The record of the log that it committed with; the greatest number before it has, or if it never does.
    pub record: usize,
    /// When the clock was read for it, really and by the clock.
    pub time: i64,
    pub clock: i64,
    /// Its transaction has created the extension.
    pub of_creator: bool,
    /// It is a lease: the ticks that begin from the start of its ID to before the end.
    pub is_lease: bool,
    pub id: Id,
}

/// How one history of WAL came out of another.
#[derive(Debug, Clone)]
pub struct Branch {
    /// The history that it continues, and its last record there.
    pub parent: Option<(usize, usize)>,
    /// When that happened, and when its last record was written.
    pub promoted: i64,
    pub last: i64,
    /// How long records had been waiting.
    pub lag: i64,
    /// How far apart the clocks were.
    pub delay: i64,
    /// In which databases the old primary's mark was above its clock.
    pub is_active: [bool; crate::wal::DATABASES],
    /// In which databases the old primary's number was known.
    pub is_known: [bool; crate::wal::DATABASES],
    /// The number of the old primary's node, and when its clock had been set.
    pub node: (u32, u32),
    pub stepped: i64,
}

/// A lease, and the worker in the layout's bits.
#[derive(Debug, Clone)]
pub struct Leased {
    pub made: Made,
    pub worker: u64,
}

#[derive(Default)]
pub struct Oracle {
    pub made: Vec<Made>,
    pub leased: Vec<Leased>,
    of_bits: HashMap<u128, Vec<u32>, BuildHasherDefault<Mixed>>,
    pub branches: Vec<Branch>,
    /// Which database was the template of another, in which history, and at which record.
    pub databases: Vec<(usize, usize, usize)>,
    pub forgiven: [u64; exemptions::ALL.len()],
}

/// The instants of stories, as times of a day that begins with them.
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
        write!(f, "session {} of server {}, node {id} of {count}, of {kind} ", self.slot, self.name)?;
        if self.is_lease {
            write!(f, "leased from {} until {} ", time(self.id.start), time(self.id.end))?;
        }
        write!(f, "in database {} when its clock said {clock} at {}", self.database, time(self.time))
    }
}

impl Oracle {
    /// Takes down an ID; returns what is wrong with it.
    pub fn made(&mut self, made: Made, last_steps: &[i64]) -> Option<String> {
        let number = self.made.len() as u32;
        let same = self.of_bits.entry(made.id.bits).or_default();
        let mut wrong = None;
        for &other in same.iter() {
            let other = &self.made[other as usize];
            match exemptions::of((&self.branches, &self.databases), last_steps, other, &made) {
                Some(which) => self.forgiven[which] += 1,
                None => wrong = Some(format!("the same ID was made by\n  {other}\nand by\n  {made}")),
            }
        }
        same.push(number);
        let worker = layouts::worker(made.kind, made.id.bits);
        let leases = self.leased.iter().filter(|lease| Some(lease.worker) == worker).map(|lease| &lease.made);
        let leased = overlap((&self.branches, &self.databases), &mut self.forgiven, leases, &made, last_steps);
        self.made.push(made);
        wrong.or(leased)
    }

    /// Takes down a lease; returns what is wrong with it.
    pub fn leased(&mut self, lease: Leased, last_steps: &[i64]) -> Option<String> {
        let others = self.leased.iter().filter(|other| other.worker == lease.worker).map(|other| &other.made);
        let of_worker = |made: &&Made| layouts::worker(made.kind, made.id.bits) == Some(lease.worker);
        let others = others.chain(self.made.iter().filter(of_worker));
        let known = (&self.branches[..], &self.databases[..]);
        let wrong = overlap(known, &mut self.forgiven, others, &lease.made, last_steps);
        self.leased.push(lease);
        wrong
    }
}

/// Returns what is wrong if any of these shares a tick with a new ID or lease of the same worker, one of them being a lease.
fn overlap<'a>(
    known: (&[Branch], &[(usize, usize, usize)]),
    forgiven: &mut [u64],
    others: impl Iterator<Item = &'a Made>,
    new: &Made,
    last_steps: &[i64],
) -> Option<String> {
    let mut wrong = None;
    let last_start = |made: &Made| if made.is_lease { made.id.end } else { made.id.start + 1 };
    for other in others.filter(|other| other.kind == new.kind) {
        if other.id.start.max(new.id.start) >= last_start(other).min(last_start(new)) {
            continue;
        }
        match exemptions::of(known, last_steps, other, new) {
            Some(which) => forgiven[which] += 1,
            None => wrong = Some(format!("ticks were leased that were used by\n  {other}\nand by\n  {new}")),
        }
    }
    wrong
}

/// IDs are bits enough.
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
