//! Public IDs: flake_seal, flake_unseal.

use flake_core::seal::{LONGEST_NAME, read, write};
use pgrx::PgSqlErrorCode::*;
use pgrx::Uuid;
use pgrx::prelude::*;

use crate::error::Error;
use crate::postgres::encoding::escape_non_ascii;
use crate::postgres::entry_point::c_symbol;
use crate::seal::keyring;

/// The longest text that an error shows: a public ID with the longest name.
const LONGEST_TEXT: usize = LONGEST_NAME + 27;

#[pg_extern(sql = "")]
fn flake_seal(id: i64, key: &[u8]) -> String {
    keyring::with(key, |name, ranges| write(name, ranges.seal(id)))
}

#[pg_extern(sql = "")]
fn flake_seal_uuid(id: i64, key: &[u8]) -> Uuid {
    Uuid::from_bytes(keyring::with(key, |_, ranges| ranges.seal(id)).to_be_bytes())
}

/// Returns NULL for a text that was not sealed with this key, so that it can be used in a WHERE clause.
#[pg_extern(sql = "")]
fn flake_unseal(sealed: &[u8], key: &[u8]) -> Option<i64> {
    keyring::with(key, |name, ranges| ranges.open(read(name, sealed)?))
}

#[pg_extern(sql = "")]
fn flake_unseal_uuid(sealed: Uuid, key: &[u8]) -> Option<i64> {
    keyring::with(key, |_, ranges| ranges.open(u128::from_be_bytes(*sealed.as_bytes())))
}

/// For statements that write: if a forged ID became NULL in a foreign key, nobody would notice.
#[pg_extern(sql = "")]
fn flake_unseal_or_error(sealed: &[u8], key: &[u8]) -> i64 {
    flake_unseal(sealed, key).unwrap_or_else(|| refuse_unsealed(escape_non_ascii(sealed, LONGEST_TEXT), key))
}

#[pg_extern(sql = "")]
fn flake_unseal_or_error_uuid(sealed: Uuid, key: &[u8]) -> i64 {
    flake_unseal_uuid(sealed, key).unwrap_or_else(|| refuse_unsealed(sealed.to_string(), key))
}

fn refuse_unsealed(text: String, key: &[u8]) -> ! {
    let message = format!("invalid public ID of key \"{}\": \"{text}\"", escape_non_ascii(key, LONGEST_NAME));
    Error::of(ERRCODE_INVALID_TEXT_REPRESENTATION, message)
        .detail("It was not made by flake_seal with this key, or has been changed since.")
        .hint("Use flake_unseal, which returns NULL instead, in conditions.")
        .raise()
}

c_symbol!(
    flake_seal,
    flake_seal_uuid,
    flake_unseal,
    flake_unseal_uuid,
    flake_unseal_or_error,
    flake_unseal_or_error_uuid,
);
