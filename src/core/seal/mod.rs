//! Public IDs. An ID that a secret seals becomes a UUID of version 8, which tells nothing to whoever lacks the secret.
//!
//! This is encode-then-encipher: a secret enciphers the ID and 58 zeros. A deciphered block holds an ID only if the zeros are there.

mod block;
mod ranges;
mod text;

pub use block::Cipher;
pub use ranges::{MOST_RANGES, Range, Ranges};
pub use text::{LONGEST_NAME, is_name, read, write};

/// The bytes that make a cipher.
pub type Secret = [u8; 16];

/// Returns the fingerprint of a secret: it may be shown, and it tells two secrets apart.
pub fn fingerprint(secret: &Secret) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::new().chain_update(b"flake public IDs").chain_update(secret).finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
