//! A disk that tears writes, and that loses what was not flushed.

use flake_core::ledger::durable::file::{FILE, HALF};

const SECTOR: usize = 512;

/// A file of two halves: as programs see it, and as it is on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    seen: Vec<u8>,
    durable: Vec<u8>,
}

impl File {
    /// A file that is on the disk.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { seen: bytes.clone(), durable: bytes }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.seen
    }

    /// Writes bytes to the beginning of a half.
    pub fn write(&mut self, half: usize, bytes: &[u8]) {
        if self.seen.len() < FILE {
            self.seen.resize(FILE, 0);
        }
        self.seen[half * HALF..][..bytes.len()].copy_from_slice(bytes);
    }

    pub fn flush(&mut self) {
        self.durable.clone_from(&self.seen);
    }

    /// Lets the machine crash. Of the sectors that were not flushed, the ones whose bit is set are on the disk.
    pub fn crash(&mut self, sectors: u64) {
        self.durable.resize(self.seen.len(), 0);
        for (at, sector) in self.seen.chunks(SECTOR).enumerate() {
            if sectors >> (at % 64) & 1 == 1 {
                self.durable[at * SECTOR..][..sector.len()].copy_from_slice(sector);
            }
        }
        self.seen.clone_from(&self.durable);
    }
}
