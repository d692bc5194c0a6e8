//! The exit note: what the last session to exit writes behind the halves of the file, so that neither it nor the first session that
//! comes then writes a record.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Bytes of a note: three numbers, and their checksum together with that of the record that it belongs to.
pub const NOTE: usize = 32;
/// The bytes of no note.
pub const WITHDRAWN: [u8; NOTE] = [0; NOTE];

/// A note that is not flushed to disk: it counts as long as the run of the operating system that took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitNote {
    /// Identifies the run of the operating system.
    pub boot: u64,
    /// Of the window, time from here on was not used ...
    pub free_from: i64,
    /// ... up to its end.
    pub until: i64,
}

impl ExitNote {
    /// Returns the bytes of a note that belongs to the record with this checksum: a later record, or another file, ends it.
    pub fn encode(&self, record: u64) -> [u8; NOTE] {
        let mut bytes = WITHDRAWN;
        let (numbers, checksum) = bytes.split_at_mut(24);
        for (place, number) in numbers.chunks_exact_mut(8).zip([self.boot, self.free_from as u64, self.until as u64]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        checksum.copy_from_slice(&xxh3_64_with_seed(numbers, record).to_le_bytes());
        bytes
    }

    /// Reads what [`Self::encode`] has written for this record; none if it is anything else.
    pub fn decode(bytes: &[u8], record: u64) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let is_whole = number(24)? == xxh3_64_with_seed(&bytes[..24], record);
        let (free_from, until) = (number(8)? as i64, number(16)? as i64);
        is_whole.then_some(Self { boot: number(0)?, free_from, until })
    }
}
