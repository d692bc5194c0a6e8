//! jsonb arguments in a database of any encoding.
#![allow(unsafe_code, reason = "pgrx reads jsonb only in UTF-8")]

use std::ffi::CStr;

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::datum::FromDatum;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{PgSqlErrorCode, direct_function_call, ereport, pg_sys};

use super::encoding::to_utf8_lossy;

/// The text of a `jsonb`, which is valid JSON. Not every parser accepts it, because numbers may have thousands of digits, and
/// values may be nested to any depth. All keys and values that flake accepts are ASCII, so [`to_utf8_lossy`] does not change them.
pub struct Json(pub String);

/// The longest text that is read, in bytes. The longest definition of a layout has about half of that.
pub const MAX_BYTES: usize = 16_000;
/// A value takes no more than so many bytes for each byte of its text.
const WIDTH: usize = 8;

fn refuse(has: &str, length: usize) {
    let detail = format!("{has} {length} bytes; flake reads at most {MAX_BYTES} bytes of text.");
    ereport!(ERROR, PgSqlErrorCode::ERRCODE_PROGRAM_LIMIT_EXCEEDED, "JSON is too long", detail);
}

// SAFETY: jsonb is PostgreSQL's type.
unsafe impl SqlTranslatable for Json {
    const TYPE_IDENT: &'static str = "jsonb";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("jsonb"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("jsonb")));
}

impl FromDatum for Json {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        if is_null {
            return None;
        }
        // SAFETY: it reads the length of a varlena, which may be stored elsewhere.
        let length = unsafe { pg_sys::toast_raw_datum_size(datum) };
        if length > WIDTH * MAX_BYTES {
            refuse("It takes", length);
        }
        // SAFETY: jsonb_out takes a jsonb and returns a C string.
        let text: &CStr = unsafe { direct_function_call(pg_sys::jsonb_out, &[Some(datum)]) }?;
        if text.count_bytes() > MAX_BYTES {
            refuse("Its text has", text.count_bytes());
        }
        Some(Self(to_utf8_lossy(text.to_bytes()).into_owned()))
    }
}

// SAFETY: as FromDatum.
unsafe impl<'f> ArgAbi<'f> for Json {
    unsafe fn unbox_arg_unchecked(argument: Arg<'_, 'f>) -> Self {
        // SAFETY: the functions that take one are STRICT, so it is not NULL.
        unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self(String::new()))
    }
}
