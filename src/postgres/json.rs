//! jsonb arguments in a database of any encoding.

use std::ffi::CStr;

use pgrx::callconv::{Arg, ArgAbi};
use pgrx::datum::FromDatum;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};
use pgrx::{direct_function_call, pg_sys};
use serde_json::Value;

use super::encoding::to_utf8_lossy;

/// The value of a `jsonb`. All keys and values that flake accepts are ASCII, so [`to_utf8_lossy`] loses nothing of them.
pub struct Json(pub Value);

#[allow(unsafe_code, reason = "pgrx reads jsonb only in UTF-8")]
mod glue {
    use super::*;

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
            // SAFETY: jsonb_out takes a jsonb and returns a C string.
            let text: &CStr = unsafe { direct_function_call(pg_sys::jsonb_out, &[Some(datum)]) }?;
            Some(Self(serde_json::from_str(&to_utf8_lossy(text.to_bytes())).unwrap_or_default()))
        }
    }

    // SAFETY: as FromDatum.
    unsafe impl<'f> ArgAbi<'f> for Json {
        unsafe fn unbox_arg_unchecked(argument: Arg<'_, 'f>) -> Self {
            // SAFETY: the functions that take one are STRICT, so it is not NULL.
            unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self(Value::Null))
        }
    }
}
