//! A key in the catalog, read with one snapshot, because a rotation changes two rows.
#![allow(unsafe_code, reason = "scans PostgreSQL's catalogs")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};

use flake_core::seal::{Cipher, MOST_RANGES, Range, Ranges, Secret, fingerprint, is_name};
use pgrx::pg_sys::{self, AttrNumber, Oid, SysCacheIdentifier};
use pgrx::{Array, FromDatum};

use crate::error::Error;
use crate::postgres::foreign_servers;

const WRAPPER: &CStr = c"flake_key";

/// The option of a server that names the layout of the IDs that the key seals.
pub const LAYOUT: &str = "layout";

/// How many options there are at most, and how many bytes one of them has.
const MOST_OPTIONS: usize = MOST_RANGES + 1;
const LONGEST_OPTION: usize = 100;

/// Options by name: `key1`, `key2` and so on, and the server's `layout`.
pub type Options = BTreeMap<String, String>;

/// A key in the catalog. It does not implement `Debug`, so that no secret gets into a message.
pub struct Key {
    pub name: String,
    pub server: Oid,
    pub owner: Oid,
    /// The options of the server, which every role may read.
    pub options: Options,
    /// The secrets of PUBLIC's user mapping, if there is one.
    pub secrets: Option<Options>,
}

/// Returns the key with this name.
///
/// Only PUBLIC's mapping is used, because a mapping of another role is not the key's.
pub fn find(name: &[u8]) -> Option<Key> {
    if !is_name(name) {
        return None;
    }
    let name = str::from_utf8(name).ok()?;
    let key = CString::new(name).ok()?;
    // SAFETY: scans of catalogs by their unique indexes, with one snapshot; each row is of its catalog.
    unsafe {
        pg_sys::AcceptInvalidationMessages();
        let snapshot = pg_sys::RegisterSnapshot(pg_sys::GetCatalogSnapshot(pg_sys::ForeignServerRelationId));
        let by_name = [(pg_sys::Anum_pg_foreign_server_srvname, pg_sys::F_NAMEEQ, key.as_ptr().into())];
        let servers = (pg_sys::ForeignServerRelationId, pg_sys::ForeignServerNameIndexId);
        let found = row(servers, snapshot, by_name, |row| {
            let server = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_foreign_server>();
            let options = options(SysCacheIdentifier::FOREIGNSERVEROID, row, pg_sys::Anum_pg_foreign_server_srvoptions);
            (server.oid, server.srvowner, server.srvfdw, options)
        });
        let mapping = found.as_ref().and_then(|&(server, ..)| {
            let of_public = [
                (pg_sys::Anum_pg_user_mapping_umuser, pg_sys::F_OIDEQ, Oid::INVALID.into()),
                (pg_sys::Anum_pg_user_mapping_umserver, pg_sys::F_OIDEQ, server.into()),
            ];
            let mappings = (pg_sys::UserMappingRelationId, pg_sys::UserMappingUserServerIndexId);
            row(mappings, snapshot, of_public, |row| {
                options(SysCacheIdentifier::USERMAPPINGOID, row, pg_sys::Anum_pg_user_mapping_umoptions)
            })
        });
        pg_sys::UnregisterSnapshot(snapshot);
        let (server, owner, wrapper, options) = found?;
        let is_key = CStr::from_ptr((*pg_sys::GetForeignDataWrapper(wrapper)).fdwname) == WRAPPER;
        is_key.then_some(Key { name: name.to_owned(), server, owner, options, secrets: mapping })
    }
}

/// Returns the names of all keys, in order.
pub fn names() -> Vec<String> {
    foreign_servers::names(WRAPPER).into_iter().filter(|name| is_name(name.as_bytes())).collect()
}

/// Reads the row with these values in the columns of an index.
unsafe fn row<R, const N: usize>(
    (catalog, index): (Oid, u32),
    snapshot: pg_sys::Snapshot,
    columns: [(u32, u32, pg_sys::Datum); N],
    read: impl FnOnce(pg_sys::HeapTuple) -> R,
) -> Option<R> {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: as the caller promises.
    unsafe {
        let catalog = pg_sys::table_open(catalog, lock);
        let mut keys = columns.map(|(number, equals, value)| {
            let (mut key, strategy) = (pg_sys::ScanKeyData::default(), pg_sys::BTEqualStrategyNumber);
            pg_sys::ScanKeyInit(&raw mut key, number as AttrNumber, strategy as u16, equals.into(), value);
            key
        });
        let scan = pg_sys::systable_beginscan(catalog, index.into(), true, snapshot, N as i32, keys.as_mut_ptr());
        let found = pg_sys::systable_getnext(scan);
        let result = (!found.is_null()).then(|| read(found));
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
        result
    }
}

/// Reads the options of a row whose catalog has this cache.
unsafe fn options(cache: SysCacheIdentifier::Type, row: pg_sys::HeapTuple, column: u32) -> Options {
    let mut is_null = false;
    // SAFETY: the column is one of texts.
    let options = unsafe {
        let value = pg_sys::SysCacheGetAttr(cache as _, row, column as AttrNumber, &raw mut is_null);
        Array::<&[u8]>::from_datum(value, is_null)
    };
    options.and_then(|options| read_options(&options)).unwrap_or_default()
}

/// Parses options as PostgreSQL stores them: a name, `=`, and a value. Returns None if there are more than a key has, or longer ones.
pub fn read_options(options: &Array<'_, &[u8]>) -> Option<Options> {
    if options.len() > MOST_OPTIONS || options.iter().flatten().any(|option| option.len() > LONGEST_OPTION) {
        return None;
    }
    let read = |option| {
        let (name, value) = str::from_utf8(option).ok()?.split_once('=')?;
        Some((name.to_owned(), value.to_owned()))
    };
    options.iter().flatten().map(read).collect()
}

/// Returns the name of the option for the range or the secret with this number.
pub fn option_name(number: usize) -> String {
    format!("key{}", number + 1)
}

/// The public part of a key.
pub struct Shown {
    /// The layout of the IDs that it seals.
    pub layout: String,
    pub ranges: Vec<Range>,
}

/// Parses the options of a server, or returns None if the server is not a key.
pub fn read_shown(options: &Options) -> Option<Shown> {
    let mut options = options.clone();
    let layout = options.remove(LAYOUT)?;
    let ranges: Vec<_> = options.values().map(|text| Range::read(text)).collect::<Option<_>>()?;
    let is_whole = ranges.first()?.from == i64::MIN && ranges.is_sorted_by(|one, other| one.from < other.from);
    let is_named = options.into_keys().eq((0..ranges.len()).map(option_name));
    (is_whole && is_named && ranges.len() <= MOST_RANGES).then_some(Shown { layout, ranges })
}

/// Reads a secret as an option of a mapping has it.
pub fn read_secret(text: &str) -> Option<Secret> {
    let is_one = text.len() == 2 * size_of::<Secret>() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_one.then(|| u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes))?
}

/// Writes a secret as an option of a mapping.
pub fn write_secret(secret: &Secret) -> String {
    format!("{:032x}", u128::from_be_bytes(*secret))
}

impl Key {
    /// Returns its layout, and the public part of its ranges.
    pub fn shown(&self) -> Result<Shown, Error> {
        read_shown(&self.options).ok_or_else(|| self.unreadable())
    }

    fn unreadable(&self) -> Error {
        Error::not_ready(format!("options of key \"{}\" have been changed", self.name))
            .detail("They say which secret belongs to which IDs, in a form that this version does not know.")
            .hint("Undo the change by ALTER SERVER, or install the version of flake that was in use.")
    }

    /// Returns the secret with this number.
    pub fn secret(&self, number: usize) -> Option<Secret> {
        self.secrets.as_ref()?.get(&option_name(number)).and_then(|text| read_secret(text))
    }

    /// Returns its ranges with their ciphers.
    pub fn ranges(&self) -> Result<Ranges, Error> {
        let cipher = |(number, shown): (usize, Range)| {
            let secret = self.secret(number);
            let found = secret.as_ref().map(fingerprint);
            if let Some(secret) = secret.filter(|_| found.as_ref() == Some(&shown.fingerprint)) {
                return Ok((shown.from, Cipher::new(&secret)));
            }
            let wanted = format!("The secret with the fingerprint {}", shown.fingerprint);
            Err(Error::not_ready(format!("secret of key \"{}\" is missing or has been changed", self.name))
                .detail(match found {
                    Some(found) => format!("{wanted} sealed its IDs; the one that is stored has {found}."),
                    None => format!("{wanted} is missing; a dump by a role that may not read it does not contain it."),
                })
                .hint(
                    "Restore the user mapping of PUBLIC from a dump by the key's owner or a superuser, or call \
                     flake_import_key with the secret.",
                ))
        };
        let ranges = self.shown()?.ranges.into_iter().enumerate().map(cipher).collect::<Result<_, _>>()?;
        Ranges::new(ranges).ok_or_else(|| self.unreadable())
    }
}
