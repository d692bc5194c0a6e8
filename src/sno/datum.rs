//! A sno as PostgreSQL passes it: a pointer to its ten bytes.
#![allow(unsafe_code, reason = "conversions of a type that is passed by reference")]

use flake_core::Sno;
use pgrx::callconv::{Arg, ArgAbi, BoxRet, FcInfo};
use pgrx::datum::{Datum, FromDatum, IntoDatum};
use pgrx::pg_sys;
use pgrx::pgrx_sql_entity_graph::metadata::{
    ArgumentError, ReturnsError, ReturnsRef, SqlMappingRef, SqlTranslatable, TypeOrigin,
};

use crate::postgres::call::{Argument, by_reference};

/// A sno as an argument or a result.
#[derive(Clone, Copy)]
pub struct SnoDatum(pub Sno);

/// Returns the sno that a datum points to.
///
/// # Safety
/// The datum must be a sno, not NULL.
#[inline]
pub unsafe fn read(datum: pg_sys::Datum) -> Sno {
    // SAFETY: it points to ten bytes, which need no alignment.
    Sno::from_bytes(unsafe { *datum.cast_mut_ptr::<[u8; size_of::<Sno>()]>() })
}

impl Argument<'_> for SnoDatum {
    #[inline]
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        // SAFETY: as the caller promises.
        Self(unsafe { read(datum) })
    }
}

impl SnoDatum {
    /// Returns the sno as the result of an entry point.
    ///
    /// # Safety As for [`by_reference`].
    #[inline]
    pub unsafe fn to_result(self) -> pg_sys::Datum {
        // SAFETY: as the caller promises.
        unsafe { by_reference(*self.0.bytes()) }
    }
}

// SAFETY: sql/sno.sql creates the type.
unsafe impl SqlTranslatable for SnoDatum {
    const TYPE_IDENT: &'static str = "flake::sno";
    const TYPE_ORIGIN: TypeOrigin = TypeOrigin::External;
    const ARGUMENT_SQL: Result<SqlMappingRef, ArgumentError> = Ok(SqlMappingRef::literal("sno"));
    const RETURN_SQL: Result<ReturnsRef, ReturnsError> = Ok(ReturnsRef::One(SqlMappingRef::literal("sno")));
}

impl FromDatum for SnoDatum {
    unsafe fn from_polymorphic_datum(datum: pg_sys::Datum, is_null: bool, _: pg_sys::Oid) -> Option<Self> {
        // SAFETY: the datum is a sno.
        (!is_null).then(|| Self(unsafe { read(datum) }))
    }
}

impl IntoDatum for SnoDatum {
    fn into_datum(self) -> Option<pg_sys::Datum> {
        // SAFETY: palloc returns this many bytes, or raises an error.
        unsafe {
            let bytes = pg_sys::palloc(size_of::<Sno>()).cast::<[u8; size_of::<Sno>()]>();
            *bytes = *self.0.bytes();
            Some(pg_sys::Datum::from(bytes))
        }
    }

    fn type_oid() -> pg_sys::Oid {
        pgrx::rust_regtypein::<Self>()
    }
}

// SAFETY: as for FromDatum.
unsafe impl<'f> ArgAbi<'f> for SnoDatum {
    unsafe fn unbox_arg_unchecked(argument: Arg<'_, 'f>) -> Self {
        // SAFETY: the functions that take a sno are STRICT, so it is not NULL.
        unsafe { argument.unbox_arg_using_from_datum() }.unwrap_or(Self(Sno::ZERO))
    }
}

// SAFETY: as for IntoDatum.
unsafe impl BoxRet for SnoDatum {
    unsafe fn box_into<'f>(self, call: &mut FcInfo<'f>) -> Datum<'f> {
        match self.into_datum() {
            // SAFETY: the datum is a sno.
            Some(datum) => unsafe { call.return_raw_datum(datum) },
            None => call.return_null(),
        }
    }
}
