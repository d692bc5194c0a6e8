//! The exit note.
//!
//! The problem: sessions reserve time in the file some seconds ahead, so a server that is stopped and started again would first
//! have to wait for the end of that time. The last session to exit therefore writes a note after the halves of the file: the rest
//! of the window was not used. Neither the exit nor the next start then writes a record.

use twox_hash::XxHash3_64;

/// The size of a note: three numbers and a checksum, which depends on the record that the note belongs to.
pub const NOTE: usize = 32;
/// The bytes if there is no note.
pub const WITHDRAWN: [u8; NOTE] = [0; NOTE];

/// An exit note. It is not flushed, so it counts only for the run of the operating system that wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitNote {
    /// Identifies the run of the operating system.
    pub boot: u64,
    /// Unused time of the window begins here ...
    pub free_from: i64,
    /// ... and ends here.
    pub until: i64,
}

impl ExitNote {
    /// Encodes a note for the record with this checksum. A later record invalidates the note, and so does another file.
    pub fn encode(&self, record: u64) -> [u8; NOTE] {
        let mut bytes = WITHDRAWN;
        let (numbers, checksum) = bytes.split_at_mut(24);
        for (place, number) in numbers.chunks_exact_mut(8).zip([self.boot, self.free_from as u64, self.until as u64]) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        checksum.copy_from_slice(&XxHash3_64::oneshot_with_seed(record, numbers).to_le_bytes());
        bytes
    }

    /// Decodes a note for this record; None if the bytes are anything else.
    pub fn decode(bytes: &[u8], record: u64) -> Option<Self> {
        let number = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let is_whole = number(24)? == XxHash3_64::oneshot_with_seed(record, &bytes[..24]);
        let (free_from, until) = (number(8)? as i64, number(16)? as i64);
        is_whole.then_some(Self { boot: number(0)?, free_from, until })
    }
}
