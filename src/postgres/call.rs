//! Calls of SQL functions without pgrx's guard: arguments without copies, and memory of the call site.
#![allow(unsafe_code, reason = "handles calls and datums in PostgreSQL's own form")]

use std::marker::PhantomData;
use std::ptr;

use pgrx::{FromDatum, PgList, is_a, pg_sys, varlena};

use super::timestamptz::Timestamptz;

unsafe extern "C-unwind" {
    /// pgrx's own declaration is guarded.
    fn palloc(size: usize) -> *mut std::ffi::c_void;
}

/// A function as PostgreSQL calls it.
pub type Function = unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum;

/// The running call of a function.
#[derive(Clone, Copy)]
pub struct Call(pg_sys::FunctionCallInfo);

impl Call {
    /// # Safety The running function must have been called by this. The caller must not read an argument that is NULL; a STRICT
    /// function has none.
    pub unsafe fn new(call: pg_sys::FunctionCallInfo) -> Self {
        Self(call)
    }

    /// Returns the call as PostgreSQL knows it.
    pub fn raw(self) -> pg_sys::FunctionCallInfo {
        self.0
    }

    /// Returns the first argument that is NULL.
    pub fn first_null(self) -> Option<usize> {
        // SAFETY: PostgreSQL has filled in this many.
        let arguments = unsafe { (*self.0).args.as_slice((*self.0).nargs as usize) };
        arguments.iter().position(|argument| argument.isnull)
    }

    /// Returns whether an argument is NULL.
    pub fn is_null(self, number: usize) -> bool {
        // SAFETY: PostgreSQL has filled in this many.
        let arguments = unsafe { (*self.0).args.as_slice((*self.0).nargs as usize) };
        arguments.get(number).is_none_or(|argument| argument.isnull)
    }

    /// Returns an argument.
    ///
    /// # Safety
    /// SQL must declare the function with that many arguments, and this one with a type that `T` reads.
    #[inline]
    pub unsafe fn argument<'a, T: Argument<'a>>(&'a self, number: usize) -> T {
        // SAFETY: as the caller promises; by `new`, an argument that is read is not NULL. It lives as long as the call.
        unsafe { T::from_datum((*(*self.0).args.as_ptr().add(number)).value) }
    }

    /// Returns a result, or NULL. PostgreSQL clears the flag of NULL before each call, so a result leaves it alone.
    #[inline]
    pub fn or_null(self, result: Option<impl Into<pg_sys::Datum>>) -> pg_sys::Datum {
        result.map_or_else(
            || {
                // SAFETY: the call is running.
                unsafe { (*self.0).isnull = true };
                pg_sys::Datum::null()
            },
            Into::into,
        )
    }

    /// Returns what the call site of the function has cached. A call site is one mention of a function in a query.
    ///
    /// # Safety
    /// The function must cache nothing but values of type `T`.
    #[inline]
    pub unsafe fn cached<T: Copy>(self) -> Option<T> {
        // SAFETY: `cache` has put it there; it lives as long as the call site.
        unsafe { (*self.0).flinfo.as_ref()?.fn_extra.cast::<T>().as_ref().copied() }
    }

    /// Caches a value in memory of the call site. Does nothing if the call does not belong to a query. May raise an error.
    ///
    /// # Safety As for [`Self::cached`].
    pub unsafe fn cache<T: Copy>(self, value: T) {
        // SAFETY: as the caller promises; memory of the call site lives as long as the call site.
        unsafe {
            let Some(call_site) = (*self.0).flinfo.as_mut() else { return };
            if call_site.fn_extra.is_null() {
                call_site.fn_extra = pg_sys::MemoryContextAlloc(call_site.fn_mcxt, size_of::<T>());
            }
            ptr::write(call_site.fn_extra.cast(), value);
        }
    }

    /// Returns whether the query passes a constant as an argument. A parameter or variable is not a constant: it may have another
    /// value in the next call from this call site, which in PL/pgSQL lives as long as the transaction.
    pub fn is_constant(self, number: usize) -> bool {
        // SAFETY: a call site has a node or no expression, and the node's tag tells its type.
        unsafe {
            let Some(call_site) = (*self.0).flinfo.as_ref() else { return false };
            let expression = call_site.fn_expr.cast::<pg_sys::Node>();
            if expression.is_null() || !is_a(expression, pg_sys::NodeTag::T_FuncExpr) {
                return false;
            }
            let arguments = PgList::<pg_sys::Node>::from_pg((*expression.cast::<pg_sys::FuncExpr>()).args);
            arguments.get_ptr(number).is_some_and(|argument| is_a(argument, pg_sys::NodeTag::T_Const))
        }
    }
}

/// A type that an entry point takes as an argument, which lives as long as the call.
pub trait Argument<'a> {
    /// # Safety
    /// The datum must be a value of the SQL type that `Self` reads, not NULL, and it must live for `'a`.
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self;
}

impl Argument<'_> for i64 {
    #[inline]
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        datum.value() as i64
    }
}

impl Argument<'_> for i32 {
    #[inline]
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        datum.value() as i32
    }
}

impl Argument<'_> for bool {
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        datum.value() & 0xff != 0
    }
}

impl Argument<'_> for pg_sys::Oid {
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        Self::from(datum.value() as u32)
    }
}

/// A value in PostgreSQL's own form.
impl Argument<'_> for pg_sys::Datum {
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        datum
    }
}

impl Argument<'_> for Timestamptz {
    #[inline]
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        Self::from_raw(datum.value() as i64)
    }
}

/// A node of a plan, as support functions take it.
impl Argument<'_> for *mut pg_sys::Node {
    #[inline]
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        datum.cast_mut_ptr()
    }
}

/// A `text` argument.
#[derive(Clone, Copy)]
pub struct Text<'a> {
    varlena: *mut pg_sys::varlena,
    call: PhantomData<&'a [u8]>,
}

impl<'a> Argument<'a> for Text<'a> {
    #[inline]
    unsafe fn from_datum(datum: pg_sys::Datum) -> Self {
        Self { varlena: datum.cast_mut_ptr(), call: PhantomData }
    }
}

impl<'a> Text<'a> {
    /// Returns its bytes, unless they are compressed or stored out of line.
    #[inline]
    pub fn inline_bytes(self) -> Option<&'a [u8]> {
        // SAFETY: by `from_datum`, this is a varlena that lives for `'a`.
        unsafe {
            if varlena::varatt_is_1b_e(self.varlena) || varlena::varatt_is_4b_c(self.varlena) {
                return None;
            }
            let length = varlena::varsize_any_exhdr(self.varlena);
            Some(std::slice::from_raw_parts(varlena::vardata_any(self.varlena).cast(), length))
        }
    }

    /// Returns the value's bytes, even if they are compressed or stored out of line. It may raise an error.
    pub fn bytes(self) -> &'a [u8] {
        // SAFETY: as for `inline_bytes`.
        unsafe { <&[u8]>::from_datum(self.varlena.into(), false) }.unwrap_or_default()
    }
}

/// Returns a value that PostgreSQL passes by reference.
///
/// # Safety If memory is short, PostgreSQL raises an error, which jumps over all frames up to the entry point. So none of these
/// frames may hold anything that must be dropped.
#[inline]
pub unsafe fn by_reference<T: Copy>(value: T) -> pg_sys::Datum {
    // SAFETY: palloc returns as many bytes as requested, aligned for any type.
    unsafe {
        let memory = palloc(size_of::<T>()).cast::<T>();
        memory.write(value);
        pg_sys::Datum::from(memory)
    }
}

/// Returns a text as PostgreSQL passes it.
///
/// # Safety
/// As for [`by_reference`].
#[inline]
pub unsafe fn text_datum(text: &[u8]) -> pg_sys::Datum {
    let size = pg_sys::VARHDRSZ + text.len();
    // SAFETY: palloc returns as many bytes as requested, aligned for the length at the beginning of a varlena.
    unsafe {
        let memory = palloc(size).cast::<pg_sys::varlena>();
        varlena::set_varsize_4b(memory, size as i32);
        ptr::copy_nonoverlapping(text.as_ptr(), varlena::vardata_4b(memory).cast_mut().cast(), text.len());
        pg_sys::Datum::from(memory)
    }
}
