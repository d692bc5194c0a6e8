//! Public IDs: an ID, sealed by a secret, is a UUID of version 8 that tells nothing without the secret.
//!
//! This is encode-then-encipher: the ID and 58 zeros are enciphered, and what was deciphered is an ID only if the zeros are there.

mod block;
mod ranges;
mod text;

pub use block::Cipher;
pub use ranges::{MOST_RANGES, Range, Ranges};
pub use text::{LONGEST_NAME, is_name, read, write};

/// The bytes that make a cipher.
pub type Secret = [u8; 16];

/// Returns what may be shown of a secret, so that another one is noticed.
pub fn fingerprint(secret: &Secret) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::new().chain_update(b"flake public IDs").chain_update(secret).finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
