//! What must never happen: an ID that is made twice, and a row that appears where nothing can appear any more. What the
//! guarantee does not cover is in `exemptions.rs`, and nowhere else.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use flake_core::Node;

use crate::exemptions;
use crate::layouts::{self, MORNING, Made, SECOND};
use crate::server::Server;
use crate::session::Session;
use crate::wal::World;

/// A transaction that has written, and when the earliest tick of its IDs ends.
#[derive(Clone, Copy)]
pub struct Row {
    pub xid: u64,
    pub database: usize,
    pub earliest: i64,
}

/// What has gone wrong, as sentences.
#[derive(Debug)]
pub struct Failure(pub String);

/// IDs that were made by the same server, in the same state.
pub struct Batch {
    pub server: char,
    pub slot: usize,
    pub database: usize,
    pub kind: usize,
    pub node: Node,
    pub history: u32,
    pub was_rewound: bool,
    life: u32,
    /// How far its log was.
    pub end: usize,
    /// When the last of them was made, really and by the server's clock.
    pub at: i64,
    pub clock: i64,
    /// When the last tick ends in which it has made one of them.
    pub until: i64,
    /// What the clock was when the ledger was first opened, since the promotion or since the file was replaced.
    pub opened: i64,
    /// They were made in time that was granted in recovery.
    pub in_recovery: bool,
}

/// The instants of stories, as times of a day that begins with them.
pub fn time(instant: i64) -> String {
    let since = instant - MORNING + 36_000 * SECOND;
    let (seconds, micros) = (since.div_euclid(SECOND), since.rem_euclid(SECOND));
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let day = if day == 0 { String::new() } else { format!(" of day {}", day + 1) };
    format!("{:02}:{:02}:{:02}.{micros:06}{day}", second / 3600, second / 60 % 60, second % 60)
}

impl std::fmt::Display for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { server, slot, database, node, .. } = self;
        let recovery = if self.in_recovery { ", in time that was granted in recovery" } else { "" };
        let (kind, clock) = (layouts::name(self.kind), time(self.clock));
        write!(f, "session {slot} of server {server}, node {} of {}, ", node.id(), node.count())?;
        write!(f, "of {kind} in database {database} when its clock said {clock}{recovery}")
    }
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
        self.0 ^ self.0 >> 32
    }
}

#[derive(Default)]
pub struct Oracle {
    made: HashMap<u128, usize, BuildHasherDefault<Mixed>>,
    batches: Vec<Batch>,
    /// How many IDs that were made twice each exemption has forgiven.
    pub forgiven: [usize; exemptions::ALL.len()],
    pub horizons: usize,
    pub rows: usize,
    /// When the last tick ends in which any server has made an ID.
    pub latest: i64,
}

impl Oracle {
    pub fn ids(&self) -> usize {
        self.made.len()
    }

    /// Notes an ID that a session has been given.
    pub fn made(
        &mut self,
        world: &World,
        server: &Server,
        (slot, session): (usize, &Session),
        kind: usize,
        made: Made,
    ) -> Result<(), Failure> {
        let (at, clock, end, life) = (world.time.get(), server.clock(), server.wal.end, server.life);
        let in_recovery = session.granted_in_recovery[kind];
        let same = self.batches.last().is_some_and(|last| {
            (last.life, last.slot, last.kind, last.end, last.in_recovery) == (life, slot, kind, end, in_recovery)
        });
        if !same {
            self.batches.push(Batch {
                server: server.name,
                slot,
                database: session.database,
                kind,
                node: server.node,
                history: server.history,
                was_rewound: server.was_rewound,
                life,
                end,
                at,
                clock,
                until: i64::MIN,
                opened: server.opened.unwrap_or(clock),
                in_recovery,
            });
        }
        let this = self.batches.len() - 1;
        let batch = &mut self.batches[this];
        (batch.at, batch.clock, batch.until) = (at, clock, batch.until.max(made.start + made.length));
        self.latest = self.latest.max(batch.until);
        let Some(other) = self.made.insert(made.id, this) else { return Ok(()) };
        let (one, two) = (&self.batches[other], &self.batches[this]);
        match exemptions::of(world, one, two) {
            Some(exemption) => {
                self.forgiven[exemption] += 1;
                Ok(())
            }
            None => Err(Failure(format!(
                "ID {:#x} was made twice: by {one}; and then by {two}, which has {}replayed all that the first one had written.",
                made.id >> 8,
                if exemptions::has_replayed(world, two, one) { "" } else { "not " },
            ))),
        }
    }

    /// A row appears.
    pub fn committed(&mut self, server: &Server, row: Row) -> Result<(), Failure> {
        self.rows += 1;
        let promised = server.wal.promised[row.database];
        if row.earliest > promised {
            return Ok(());
        }
        Err(Failure(format!(
            "transaction {} commits a row whose tick ends at {}, below a horizon of {} in database {}.",
            row.xid,
            time(row.earliest),
            time(promised),
            row.database
        )))
    }
}
