//! Keys by which sessions find the cursors of a layout. All databases of a server share its memory, and the owner of each can define
//! layouts, so nobody must be able to define a layout that gets another layout's key.

use std::hash::{Hash, Hasher};

use sha2::{Digest, Sha256};

/// The keys of snos have this bit, the keys of layouts do not.
const SNO: u64 = 1 << 63;
/// This bit is set in the key of a layout that has the bits of a built-in one.
const BUILT_IN: u64 = 1 << 62;

/// Returns the key for the bits of the built-in layout with this number.
pub(crate) const fn of_built_in(number: usize) -> u64 {
    BUILT_IN | number as u64
}

/// Returns the key of any other layout, from all that identifies it.
pub(crate) fn of_layout(identity: &impl Hash) -> u64 {
    let mut hasher = Sha256Hasher(Sha256::new());
    identity.hash(&mut hasher);
    hasher.finish() & !(SNO | BUILT_IN)
}

/// Returns the key of snos in the caller's partition, or in the automatic ones.
pub(crate) fn of_sno(partition: Option<i32>) -> u64 {
    SNO | partition.map_or(0, |partition| 1 + u64::from(partition as u32))
}

/// Returns the first eight bytes of the SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> u64 {
    first_bytes(&Sha256::digest(bytes))
}

fn first_bytes(digest: &[u8]) -> u64 {
    digest.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
}

struct Sha256Hasher(Sha256);

impl Hasher for Sha256Hasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(&self) -> u64 {
        first_bytes(&self.0.clone().finalize())
    }
}
