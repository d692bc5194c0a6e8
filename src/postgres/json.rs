//! JSON that is given as `jsonb` or as text, in a database of any encoding.

use std::borrow::Cow;
use std::ffi::CStr;

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::datum::FromDatum;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{direct_function_call, pg_sys};
use serde_json::Value;

/// A `jsonb` as a value. Names of fields, and all that definitions hold, are ASCII, so [`readable`] is enough.
pub struct Json(pub Value);

/// Text in the database's encoding. What is not ASCII becomes question marks where it is not UTF-8.
pub fn readable(text: &[u8]) -> Cow<'_, str> {
    let ascii = |&byte: &u8| if byte.is_ascii() { char::from(byte) } else { '?' };
    str::from_utf8(text).map_or_else(|_| text.iter().map(ascii).collect(), Cow::Borrowed)
}

#[allow(unsafe_code, reason = "pgrx reads jsonb as UTF-8 only")]
mod glue {
    use super::*;

    // SAFETY: jsonb is PostgreSQL's.
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
            // SAFETY: jsonb_out takes a jsonb and returns a C string.
            let text: &CStr = unsafe { direct_function_call(pg_sys::jsonb_out, &[Some(datum)]) }?;
            Some(Self(serde_json::from_str(&readable(text.to_bytes())).unwrap_or_default()))
        }
    }

    // SAFETY: as FromDatum.
    unsafe impl<'f> ArgAbi<'f> for Json {
        unsafe fn unbox_arg_unchecked(argument: Arg<'_, 'f>) -> Self {
            // SAFETY: the functions that take one are STRICT, so there is one.
            unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self(Value::Null))
        }
    }
}
