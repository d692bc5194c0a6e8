//! One ID and one block of AES-128.

use aes::Aes128;
use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};

use super::Secret;

/// Where a UUID has its version and its variant.
const MARKED: u128 = 0xf << 76 | 0b11 << 62;
/// Version 8, which is for what an application defines, and the variant of RFC 9562.
const MARKS: u128 = 8 << 76 | 0b10 << 62;
/// The bits below the ID, which are zero in every block that was sealed.
const ZEROS: u128 = (1 << 58) - 1;

/// A secret, expanded: AES in constant time, by the processor's instructions where it has them.
#[derive(Clone)]
pub struct Cipher(Aes128);

impl Cipher {
    /// Expands a secret.
    pub fn new(secret: &Secret) -> Self {
        Self(Aes128::new(&Array::from(*secret)))
    }

    /// Returns the UUID that stands for an ID.
    pub fn seal(&self, id: i64) -> u128 {
        walk(plain(id), |block| self.0.encrypt_block(block.into()))
    }

    /// Returns the ID that a UUID stands for, or None if it was not sealed by this secret.
    pub fn open(&self, sealed: u128) -> Option<i64> {
        // Without this, each block before the end of a walk would open as well.
        if !is_marked(sealed) {
            return None;
        }
        let opened = walk(sealed, |block| self.0.decrypt_block(block.into()));
        let id = (opened >> 80) << 16 | (opened >> 64 & 0xfff) << 4 | (opened >> 58 & 0xf);
        (opened & ZEROS == 0).then_some(id as i64)
    }
}

/// The UUID whose free bits are, from the most significant one, the bits of the ID and zeros.
fn plain(id: i64) -> u128 {
    let id = u128::from(id as u64);
    (id >> 16) << 80 | (id >> 4 & 0xfff) << 64 | (id & 0xf) << 58 | MARKS
}

fn is_marked(block: u128) -> bool {
    block & MARKED == MARKS
}

/// Cycle walking: calls `step` again and again, until the block is a UUID of version 8. It ends, because a permutation that begins in a
/// set comes back to it, after 64 times on average.
#[inline(always)]
fn walk(block: u128, step: impl Fn(&mut [u8; 16])) -> u128 {
    let mut block = block.to_be_bytes();
    loop {
        step(&mut block);
        let reached = u128::from_be_bytes(block);
        if is_marked(reached) {
            return reached;
        }
    }
}
