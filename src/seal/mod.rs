//! The keys of public IDs.
//!
//! A key is a foreign server of the foreign-data wrapper `flake_key`. Its secrets are options of PUBLIC's user mapping, which
//! PostgreSQL hides. The server's own options, which every role sees, have the secrets' fingerprints and say which IDs each secret
//! is for. Roles with USAGE on the server may seal and open. A table would not do, because GRANT ON ALL TABLES and FOR ALL TABLES
//! would expose it.

mod catalog;
pub mod keyring;
pub mod mapping;

pub use self::catalog::{Key, LAYOUT, find, names, option_name, read_options, read_secret, read_shown};

use flake_core::seal::LONGEST_NAME;
use pgrx::PgSqlErrorCode::*;

use crate::error::Error;
use crate::postgres::encoding::escape_non_ascii;

/// The HINT for a key that does not exist. After a restore without the keys, a new secret would hide that old public IDs are lost.
pub const CREATE_OR_IMPORT: &str = "Create one with flake_create_key. If this database was restored without its keys, call \
                                    flake_import_key with the old secret instead: a new secret opens no old public ID.";

/// Returns all keys, in the order of their names.
pub fn all() -> impl Iterator<Item = Key> {
    names().into_iter().filter_map(|name| find(name.as_bytes()))
}

/// Returns the error for a name that no key has.
pub fn unknown(name: &[u8]) -> Error {
    Error::of(ERRCODE_UNDEFINED_OBJECT, format!("key \"{}\" does not exist", escape_non_ascii(name, LONGEST_NAME)))
        .detail("Keys are foreign servers of the foreign-data wrapper flake_key.")
        .hint(CREATE_OR_IMPORT)
}
