//! The keys of public IDs: flake_create_key, flake_import_key, flake_drop_key.

use flake_core::seal::{LONGEST_NAME, MOST_RANGES, Range, Secret, fingerprint, is_name};
use pgrx::PgSqlErrorCode::*;
use pgrx::prelude::*;
use pgrx::spi::{quote_identifier, quote_literal};

use super::layout_uses;
use super::statements::run;
use super::stored::{refuse_table, writer};
use crate::error::{Error, OrRaise, listed, must_own, owner_only};
use crate::layouts::by_name;
use crate::postgres::encoding::escape_non_ascii;
use crate::postgres::entry_point::c_symbol;
use crate::postgres::foreign_servers::{is_name_taken, lock};
use crate::postgres::report::warning;
use crate::postgres::role::act_as;
use crate::seal::{self, Key, LAYOUT, mapping, option_name, read_options, read_secret, read_shown};

#[pg_extern(sql = "")]
fn flake_create_key(name: &[u8], layout: &[u8]) {
    let owner = writer("flake_create_key", c"flake_create_key()");
    let name = create(owner, name, layout, &mapping::random());
    let uses = layout_uses::of(&name);
    if !uses.is_empty() {
        warning(
            format!("objects that name key \"{name}\" are older than its secret"),
            Some(&format!("It is named in {}.", listed(uses.iter(), "others"))),
            "If this database was restored without its keys, call flake_import_key with the old secret and force, because \
             the new secret opens no old public ID.",
        );
    }
}

/// Stores a secret that was made elsewhere. If a key has its fingerprint and lacks the secret, the key gets it back. With `force`, it
/// takes the place of all secrets of the key.
#[pg_extern(sql = "")]
fn flake_import_key(name: &[u8], layout: &[u8], secret: &[u8], force: bool) {
    let owner = writer("flake_import_key", c"flake_import_key()");
    let Ok(secret) = Secret::try_from(secret) else {
        let message = format!("secret of a key must have 16 bytes, not {}", secret.len());
        Error::invalid(message)
            .detail("It is an AES-128 key.")
            .hint("flake_create_key makes one from random numbers.")
            .raise()
    };
    let fingerprint = fingerprint(&secret);
    for key in seal::all() {
        let Ok(shown) = key.shown() else { continue };
        let Some(number) = shown.ranges.iter().position(|range| range.fingerprint == fingerprint) else { continue };
        // Another session may be storing the same secret, or dropping the key.
        lock(key.server);
        let Some(key) = seal::find(key.name.as_bytes()) else { continue };
        // Under another name, all public IDs of the key would get another prefix.
        if key.name.as_bytes() != name || key.secret(number) == Some(secret) {
            Error::of(ERRCODE_DUPLICATE_OBJECT, format!("secret belongs to key \"{}\" already", key.name))
                .detail("With another name, its public IDs would have two spellings.")
                .hint("Use that key, or create one with a secret of its own with flake_create_key.")
                .raise();
        }
        if shown.layout.as_bytes() != layout {
            Error::invalid(format!("key \"{}\" seals IDs of another layout", key.name))
                .detail(format!("Its layout is \"{}\".", shown.layout))
                .hint("Pass this layout.")
                .raise();
        }
        let key = owned(key);
        return act_as(key.owner, || mapping::store(&key.name, number, &secret));
    }
    if force && seal::find(name).is_some() {
        return replace(&locked(name), layout, &secret);
    }
    create(owner, name, layout, &secret);
}

/// Gives a key one secret in place of all that it has. Its grants stay.
fn replace(key: &Key, layout: &[u8], secret: &Secret) {
    let (server, layout) = (quote_identifier(&key.name), by_name(layout).name());
    let drops = key.options.keys().map(|option| format!("DROP {option}, ")).collect::<String>();
    act_as(key.owner, || {
        run(format!("DROP USER MAPPING IF EXISTS FOR PUBLIC SERVER {server}"));
        run(format!("ALTER SERVER {server} OPTIONS ({drops}{})", options(layout, secret, "ADD ")));
        mapping::store(&key.name, 0, secret);
    });
}

/// Returns the options of a server whose only secret is this one.
fn options(layout: &str, secret: &Secret, add: &str) -> String {
    let (layout, range) = (quote_literal(layout), quote_literal(Range::new(i64::MIN, secret).to_string()));
    format!("{add}{LAYOUT} {layout}, {add}{} {range}", option_name(0))
}

/// Creates a key. Returns its name.
fn create(owner: pg_sys::Oid, name: &[u8], layout: &[u8], secret: &Secret) -> String {
    let layout = by_name(layout).name();
    let shown = escape_non_ascii(name, LONGEST_NAME);
    if !is_name(name) {
        Error::invalid(format!("invalid name for a key: \"{shown}\""))
            .detail("A name has up to 63 of the letters a to z, and underscores between them.")
            .hint("Choose a short name, such as \"usr\": public IDs begin with it.")
            .raise();
    }
    if is_name_taken(&shown) {
        Error::of(ERRCODE_DUPLICATE_OBJECT, format!("key \"{shown}\" already exists"))
            .detail("Keys are foreign servers; a key, a layout or another foreign server has this name.")
            .hint(match seal::find(name) {
                Some(_) => "Choose another name. To replace the secret of a key, call flake_import_key with force.",
                None => "Choose another name.",
            })
            .raise();
    }
    let (server, options) = (quote_identifier(&shown), options(layout, secret, ""));
    act_as(owner, || {
        run(format!("CREATE SERVER {server} FOREIGN DATA WRAPPER flake_key OPTIONS ({options})"));
        mapping::store(&shown, 0, secret);
    });
    shown
}

#[pg_extern(sql = "")]
fn flake_drop_key(name: &[u8]) {
    writer("flake_drop_key", c"flake_drop_key()");
    let key = locked(name);
    let uses = layout_uses::of(&key.name);
    if !uses.is_empty() {
        let message = format!("cannot drop key \"{}\" because other objects name it", key.name);
        Error::of(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST, message)
            .detail(format!("It is named in {}.", listed(uses.iter(), "others")))
            .hint("Drop or change these objects first; DROP SERVER … CASCADE drops the key without this check.")
            .raise();
    }
    let server = quote_identifier(&key.name);
    act_as(key.owner, || {
        run(format!("DROP USER MAPPING IF EXISTS FOR PUBLIC SERVER {server}"));
        // Mappings of other roles have no effect, and are dropped too. PostgreSQL names them in a NOTICE.
        run(format!("DROP SERVER {server} CASCADE"));
    });
}

fn known(name: &[u8]) -> Key {
    seal::find(name).unwrap_or_else(|| seal::unknown(name).raise())
}

/// Returns a key of the caller's that no other session changes or drops by these functions before the transaction ends.
pub(super) fn locked(name: &[u8]) -> Key {
    lock(known(name).server);
    owned(known(name))
}

fn owned(key: Key) -> Key {
    must_own(key.owner, &format!("key \"{}\"", key.name)).or_raise();
    key
}

/// PostgreSQL calls this with the options of servers and mappings, including those in a dump. Any role may use the wrapper, so that
/// a dump can be restored, but only the owners of the extension and of the database may make keys. In a dump by a role that may not read secrets,
/// mappings have no options.
#[pg_extern(sql = "")]
fn flake_key_validator(options: Array<&[u8]>, catalog: pg_sys::Oid) {
    let (is_server, is_mapping) =
        (catalog == pg_sys::ForeignServerRelationId, catalog == pg_sys::UserMappingRelationId);
    // PostgreSQL lets a role with USAGE on the key make a mapping of its own. A session that drops the key would have to wait for that
    // role's transaction if it drops the mapping.
    if is_server || is_mapping {
        owner_only("create a key").or_raise();
    }
    refuse_table(catalog);
    let is_fine = read_options(&options).is_some_and(|options| {
        if is_server {
            return read_shown(&options).is_some();
        }
        let names: Vec<_> = (0..MOST_RANGES).map(option_name).collect();
        options.iter().all(|(name, secret)| is_mapping && names.contains(name) && read_secret(secret).is_some())
    });
    if !is_fine {
        Error::invalid("invalid options for a key")
            .detail("Foreign servers of the foreign-data wrapper flake_key are keys.")
            .hint("Create keys with flake_create_key.")
            .raise();
    }
}

c_symbol!(flake_create_key, flake_import_key, flake_drop_key, flake_key_validator);
