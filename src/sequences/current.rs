//! currval and lastval: the last ID of this session.
#![allow(unsafe_code, reason = "calls PostgreSQL's functions of sequences")]

use pgrx::prelude::*;

use super::{access, memory};
use crate::error::{Error, OrRaise};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::sequence::{self, Privilege};

#[pg_extern(sql = "")]
fn flake_currval(sequence: pg_sys::Oid) -> i64 {
    if access::adopted(sequence, Privilege::Current).is_none() {
        // SAFETY: nothing is held that must be dropped.
        return unsafe { sequence::native_current(sequence) };
    }
    memory::last_of(sequence).ok_or_else(|| undefined(sequence)).or_raise()
}

/// If PostgreSQL would return an ID, more IDs may have been made since in the same statement.
#[pg_extern(sql = "")]
fn flake_lastval() -> i64 {
    // SAFETY: nothing is held that must be dropped.
    let native = unsafe { sequence::native_last() };
    memory::last().filter(|last| last.shown == native).map_or(native, |last| last.id)
}

fn undefined(sequence: pg_sys::Oid) -> Error {
    let name = sequence::name(sequence);
    Error::not_ready(format!("currval of sequence \"{name}\" is not yet defined in this session"))
        .detail("This session has made no ID for the sequence since it began, or since DISCARD.")
        .hint("Call nextval(), or insert a row without a key, first.")
}

c_symbol!(flake_currval, flake_lastval);
