//! The keys of public IDs: flake_create_key, flake_import_key, flake_rotate_key, flake_drop_key.

use std::ffi::CStr;

use flake_core::seal::{LONGEST_NAME, MOST_RANGES, Range, Secret, fingerprint, is_name};
use pgrx::prelude::*;
use pgrx::spi::{quote_identifier, quote_literal};

use super::layout_uses;
use crate::error::{Error, OrRaise, owner_only, raise};
use crate::postgres::encoding::escape_non_ascii;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::foreign_servers::{is_name_taken, lock};
use crate::postgres::recovery::forbid_if_read_only;
use crate::postgres::role::{act_as, present};
use crate::seal::{self, Key, mapping, option_name, read_options, read_ranges, read_secret};

#[pg_extern(sql = "")]
fn flake_create_key(name: &[u8]) {
    let owner = writer("flake_create_key", c"flake_create_key()");
    create(owner, name, &mapping::random());
}

/// Stores a secret that was made elsewhere. If a key has its fingerprint and lacks the secret, the key gets it back.
#[pg_extern(sql = "")]
fn flake_import_key(name: &[u8], secret: &[u8]) {
    let owner = writer("flake_import_key", c"flake_import_key()");
    let Ok(secret) = Secret::try_from(secret) else { raise(Error::SecretLength { length: secret.len() }) };
    let fingerprint = fingerprint(&secret);
    for key in seal::names().iter().filter_map(|name| seal::find(name)) {
        let Ok(shown) = key.shown() else { continue };
        let Some(number) = shown.iter().position(|range| range.fingerprint == fingerprint) else { continue };
        // Another session may be storing the same secret, or dropping the key.
        lock(key.server);
        let Some(key) = seal::find(&key.name) else { continue };
        // Under another name, all public IDs of the key would get another prefix.
        if key.name.as_bytes() != name || key.secret(number) == Some(secret) {
            raise(Error::SecretTaken { key: key.name });
        }
        return act_as(key.owner, || mapping::store(&key.name, number, &secret));
    }
    create(owner, name, &secret);
}

fn create(owner: pg_sys::Oid, name: &[u8], secret: &Secret) {
    let shown = escape_non_ascii(name, LONGEST_NAME);
    if !is_name(name) {
        raise(Error::KeyName { key: shown });
    }
    if is_name_taken(&shown) {
        raise(Error::KeyTaken { key: shown });
    }
    let (server, range) = (quote_identifier(&shown), quote_literal(Range::new(i64::MIN, secret).to_string()));
    let (first, name) = (option_name(0), shown);
    act_as(owner, || {
        execute(&format!("CREATE SERVER {server} FOREIGN DATA WRAPPER flake_key OPTIONS ({first} {range})"));
        mapping::store(&name, 0, secret);
    });
}

/// Gives the key a new secret for IDs from `from_id` on. Lower IDs keep their secret, so an ID has the same public name for ever.
#[pg_extern(sql = "")]
fn flake_rotate_key(name: &[u8], from_id: i64) {
    writer("flake_rotate_key", c"flake_rotate_key()");
    let key = locked(name);
    key.ranges().or_raise();
    let shown = key.shown().or_raise();
    let number = shown.len();
    if let Some(last) = shown.last().filter(|last| from_id <= last.from) {
        raise(Error::RotatedBelow { key: key.name, from: from_id, last: last.from });
    }
    if number == MOST_RANGES {
        raise(Error::TooManyRotations { key: key.name });
    }
    let secret = mapping::random();
    let (server, option) = (quote_identifier(&key.name), option_name(number));
    let range = quote_literal(Range::new(from_id, &secret).to_string());
    act_as(key.owner, || {
        execute(&format!("ALTER SERVER {server} OPTIONS (ADD {option} {range})"));
        mapping::store(&key.name, number, &secret);
    });
}

#[pg_extern(sql = "")]
fn flake_drop_key(name: &[u8]) {
    writer("flake_drop_key", c"flake_drop_key()");
    let key = locked(name);
    let uses = layout_uses::of(&key.name);
    if !uses.is_empty() {
        raise(Error::KeyInUse { key: key.name, uses });
    }
    let server = quote_identifier(&key.name);
    act_as(key.owner, || {
        execute(&format!("DROP USER MAPPING IF EXISTS FOR PUBLIC SERVER {server}"));
        execute(&format!("DROP SERVER {server}"));
    });
}

/// Returns the owner of the extension, as whom keys are written.
fn writer(function: &'static str, command: &CStr) -> pg_sys::Oid {
    let owner = owner_only(function).or_raise();
    // A change of a mapping alone is not checked elsewhere.
    forbid_if_read_only(command);
    owner.unwrap_or_else(present)
}

fn execute(command: &str) {
    Spi::run(command).unwrap_or_else(|error| pgrx::error!("{error}"));
}

fn known(name: &[u8]) -> Key {
    str::from_utf8(name).ok().and_then(seal::find).unwrap_or_else(|| raise(seal::unknown(name)))
}

/// Returns a key that no other session changes or drops by these functions before the transaction ends.
fn locked(name: &[u8]) -> Key {
    lock(known(name).server);
    known(name)
}

/// PostgreSQL calls this with the options of servers and mappings, including those in a dump. Any role may use the wrapper, so that
/// a dump can be restored, but only the owner of the extension may make keys. In a dump by a role that may not read secrets,
/// mappings have no options.
#[pg_extern(sql = "")]
fn flake_key_validator(options: Array<&[u8]>, catalog: pg_sys::Oid) {
    let options = read_options(options.iter().flatten());
    let is_fine = if catalog == pg_sys::ForeignServerRelationId {
        owner_only("flake_key_validator").or_raise();
        read_ranges(&options).is_some()
    } else if catalog == pg_sys::UserMappingRelationId && !options.is_empty() {
        owner_only("flake_key_validator").or_raise();
        let names: Vec<_> = (0..MOST_RANGES).map(option_name).collect();
        options.iter().all(|(name, secret)| names.contains(name) && read_secret(secret).is_some())
    } else {
        options.is_empty()
    };
    if !is_fine {
        raise(Error::NotAKey);
    }
}

c_symbol!(flake_create_key, flake_import_key, flake_rotate_key, flake_drop_key, flake_key_validator);
