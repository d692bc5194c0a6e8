//! setval: an adopted sequence has no next number that could be set. Programs call it after they have loaded rows with keys of their own,
//! and then may read currval and lastval.
#![allow(unsafe_code, reason = "calls PostgreSQL's functions of sequences")]

use pgrx::PgSqlErrorCode::ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE;
use pgrx::prelude::*;

use super::memory::Check;
use super::{access, memory, native_last, registry};
use crate::error::{Error, OrRaise};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::recovery;
use crate::postgres::sequence::{self, Privilege};

#[pg_extern(sql = "")]
fn flake_setval(sequence: pg_sys::Oid, value: i64) -> i64 {
    set(sequence, value, None)
}

#[pg_extern(sql = "")]
fn flake_setval_called(sequence: pg_sys::Oid, value: i64, is_called: bool) -> i64 {
    set(sequence, value, Some(is_called))
}

fn set(sequence: pg_sys::Oid, value: i64, is_called: Option<bool>) -> i64 {
    let Some(code) = access::adopted(sequence, Privilege::Set) else {
        // SAFETY: nothing is held that must be dropped.
        unsafe { sequence::native_set(sequence, value, is_called) };
        return value;
    };
    recovery::forbid_if_read_only(c"setval()");
    // SAFETY: nothing is held that must be dropped.
    unsafe { sequence::forbid_in_parallel(c"setval()") };
    let is_called = is_called.unwrap_or(true);
    // A program that has emptied a table sets its sequence to the least number, and asks the catalog for it.
    if value < 1 && (is_called || value != registry::range(code)[0]) {
        out_of_bounds(sequence, value).raise();
    }
    if is_called {
        let layout = registry::layout(sequence, code).or_raise().name();
        // The privilege to make IDs was not checked, so the next call of nextval has to.
        memory::learn(sequence, code, layout, Check::never());
        memory::set(sequence, value);
        if memory::last().is_some_and(|last| last.sequence == sequence) {
            native_last::correct(value);
            memory::keep(sequence, value, Some(value));
        }
    }
    value
}

fn out_of_bounds(sequence: pg_sys::Oid, value: i64) -> Error {
    let name = sequence::name(sequence);
    Error::of(
        ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE,
        format!("setval: value {value} is out of bounds for sequence \"{name}\" (1..{})", i64::MAX),
    )
    .detail("The sequence was adopted, and its keys are positive.")
}

c_symbol!(flake_setval, flake_setval_called);
