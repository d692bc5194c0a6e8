//! PUBLIC's user mapping of a key's server, with its secrets. It is changed by PostgreSQL's internal functions, because the text of
//! a statement would appear in pg_stat_statements and in the CONTEXT of errors.
#![allow(unsafe_code, reason = "calls PostgreSQL's commands")]

use std::ffi::{CString, c_char};

use flake_core::seal::Secret;
use pgrx::PgList;
use pgrx::pg_sys::{self, DefElemAction, NodeTag, RoleSpecType};

use super::catalog::{option_name, write_secret};
use super::{Key, find};

/// Returns a new secret.
pub fn random() -> Secret {
    let mut secret = Secret::default();
    // SAFETY: it fills this many bytes.
    if !unsafe { pg_sys::pg_strong_random(secret.as_mut_ptr().cast(), secret.len()) } {
        pgrx::error!("could not generate random values");
    }
    secret
}

/// Stores the secret with this number. The current role must own the server.
pub fn store(key: &str, number: usize, secret: &Secret) {
    let Some(Key { secrets, .. }) = find(key.as_bytes()) else { return };
    // SAFETY: the statements are built as the parser builds them, of strings that live as long as the memory context of the call.
    unsafe {
        let option =
            pg_sys::makeDefElem(copy(&option_name(number)), pg_sys::makeString(copy(&write_secret(secret))).cast(), -1);
        let mut public = pg_sys::RoleSpec {
            type_: NodeTag::T_RoleSpec,
            roletype: RoleSpecType::ROLESPEC_PUBLIC,
            rolename: std::ptr::null_mut(),
            location: -1,
        };
        let (user, servername) = (&raw mut public, copy(key));
        let mut options = PgList::new();
        options.push(option);
        let options = options.into_pg();
        match secrets {
            None => {
                let mut statement = pg_sys::CreateUserMappingStmt {
                    type_: NodeTag::T_CreateUserMappingStmt,
                    user,
                    servername,
                    if_not_exists: false,
                    options,
                };
                pg_sys::CreateUserMapping(&raw mut statement);
            }
            Some(secrets) => {
                let is_there = secrets.contains_key(&option_name(number));
                (*option).defaction = if is_there { DefElemAction::DEFELEM_SET } else { DefElemAction::DEFELEM_ADD };
                let type_ = NodeTag::T_AlterUserMappingStmt;
                let mut statement = pg_sys::AlterUserMappingStmt { type_, user, servername, options };
                pg_sys::AlterUserMapping(&raw mut statement);
            }
        }
        pg_sys::CommandCounterIncrement();
    }
}

/// Copies a string for PostgreSQL.
fn copy(text: &str) -> *mut c_char {
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: it copies a C string.
    unsafe { pg_sys::pstrdup(text.as_ptr()) }
}
