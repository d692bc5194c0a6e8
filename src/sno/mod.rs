//! The type `sno`: ten bytes in a table, and the functions on them.

mod next;
mod io;
mod operators;
mod parts;

use flake_core::Sno;
use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::{Datum, FromDatum, IntoDatum};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

pub use next::{each, traces};

/// A sno as PostgreSQL passes it: a pointer to its ten bytes.
#[derive(Clone, Copy)]
pub struct SnoDatum(pub Sno);

#[allow(unsafe_code, reason = "how a value of a fixed length, passed by reference, comes in and goes out")]
mod glue {
    use super::*;

    // SAFETY: the type is made in sql/sno.sql.
    unsafe impl SqlTranslatable for SnoDatum {
        const TYPE_IDENT: &'static str = "flake::sno";
        const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
        const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("sno"));
        const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("sno")));
    }

    impl FromDatum for SnoDatum {
        unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
            if is_null {
                return None;
            }
            // SAFETY: the datum of a sno points to ten bytes, of any alignment.
            Some(Self(Sno::from_bytes(unsafe { *datum.cast_mut_ptr::<[u8; 10]>() })))
        }
    }

    impl IntoDatum for SnoDatum {
        fn into_datum(self) -> Option<pg_sys::Datum> {
            // SAFETY: palloc gives as many bytes as asked for, or raises an error.
            unsafe {
                let bytes = pg_sys::palloc(size_of::<Sno>()).cast::<[u8; 10]>();
                *bytes = *self.0.bytes();
                Some(pg_sys::Datum::from(bytes))
            }
        }

        fn type_oid() -> pg_sys::Oid {
            pgrx::rust_regtypein::<Self>()
        }
    }

    // SAFETY: as FromDatum.
    unsafe impl<'f> ArgAbi<'f> for SnoDatum {
        unsafe fn unbox_arg_unchecked(argument: Arg<'_, 'f>) -> Self {
            // SAFETY: the functions that take a sno are STRICT, so there is one.
            unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self(Sno::ZERO))
        }
    }

    // SAFETY: as IntoDatum.
    unsafe impl BoxRet for SnoDatum {
        unsafe fn box_into<'f>(self, call: &mut FcInfo<'f>) -> Datum<'f> {
            match self.into_datum() {
                // SAFETY: the datum is a sno's.
                Some(datum) => unsafe { call.return_raw_datum(datum) },
                None => call.return_null(),
            }
        }
    }
}
