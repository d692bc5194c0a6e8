//! Calls of functions that answer at once: their arguments without copies, and no guard against errors, as there are none.
//!
//! pgrx guards each call, and within it each call of PostgreSQL, against errors on either side: some 200 instructions.
//! An entry point made here asks a function that can raise no error and does not panic; where that has no answer it
//! calls the function that pgrx has made.
#![allow(unsafe_code, reason = "the raw form of a call")]

use std::ptr;

use flake_core::{Layout, Sno};
use pgrx::{FromDatum, pg_sys, varlena};

use crate::layouts::custom;
use crate::layouts;

unsafe extern "C-unwind" {
    /// pgrx's is guarded.
    fn palloc(size: usize) -> *mut std::ffi::c_void;
}

/// The call of a STRICT function, while it runs.
#[derive(Clone, Copy)]
pub struct Call(pg_sys::FunctionCallInfo);

/// The layout that an argument names in all calls of one place of a query, if it is the same in all, and since how many
/// changes of layouts.
struct Known {
    layout: Option<&'static Layout>,
    since: u64,
}

impl Call {
    /// # Safety
    /// The call must be that of the running function, and none of its arguments NULL.
    pub unsafe fn new(call: pg_sys::FunctionCallInfo) -> Self {
        Self(call)
    }

    /// The call itself.
    pub fn raw(&self) -> pg_sys::FunctionCallInfo {
        self.0
    }

    /// An argument as it is.
    #[inline]
    pub fn datum(&self, number: usize) -> pg_sys::Datum {
        // SAFETY: by `new`, and PostgreSQL passes as many as the SQL declares.
        unsafe { (*(*self.0).args.as_ptr().add(number)).value }
    }

    /// A `bigint` or `timestamptz`.
    #[inline]
    pub fn bigint(&self, number: usize) -> i64 {
        self.datum(number).value() as i64
    }

    /// An `integer`.
    #[inline]
    pub fn integer(&self, number: usize) -> i32 {
        self.datum(number).value() as i32
    }

    /// The bytes of a `text`, unless they are stored elsewhere or compressed.
    #[inline]
    pub fn text(&self, number: usize) -> Option<&[u8]> {
        let text = self.datum(number).cast_mut_ptr::<pg_sys::varlena>();
        // SAFETY: a text that is not NULL is a varlena, which lives as long as the call.
        unsafe {
            if varlena::varatt_is_1b_e(text) || varlena::varatt_is_4b_c(text) {
                return None;
            }
            let length = varlena::varsize_any_exhdr(text);
            Some(std::slice::from_raw_parts(varlena::vardata_any(text).cast(), length))
        }
    }

    /// The bytes of a `text` in any case; may raise an error.
    pub fn whole_text(&self, number: usize) -> &[u8] {
        // SAFETY: as `text`.
        unsafe { <&[u8]>::from_datum(self.datum(number), false) }.unwrap_or_default()
    }

    /// The ten bytes of a sno.
    #[inline]
    pub fn sno_at(&self, number: usize) -> Sno {
        // SAFETY: the datum of a sno points to ten bytes, of any alignment.
        Sno::from_bytes(unsafe { *self.datum(number).cast_mut_ptr::<[u8; size_of::<Sno>()]>() })
    }

    /// A sno as the result.
    #[inline]
    pub fn sno(&self, sno: &Sno) -> pg_sys::Datum {
        // SAFETY: PostgreSQL gives as many bytes as asked for. When it has none it raises an error, which jumps over this
        // frame and the entry point's; they hold nothing that would have to be dropped.
        unsafe {
            let bytes = palloc(size_of::<Sno>()).cast::<[u8; size_of::<Sno>()]>();
            *bytes = *sno.bytes();
            pg_sys::Datum::from(bytes)
        }
    }

    /// The layout that an argument names, if it is known.
    #[inline]
    pub fn layout(&self, number: usize) -> Option<&'static Layout> {
        // SAFETY: what `keep_layout` has put there lives as long as the place of the query.
        let known = unsafe { (*self.0).flinfo.as_ref()?.fn_extra.cast::<Known>().as_ref()? };
        match known.layout {
            Some(layout) => (known.since == custom::changes()).then_some(layout),
            None => layouts::used_last(self.text(number)?),
        }
    }

    /// Looks a layout up for all calls of this place of the query, where the argument is the same in all of them.
    fn keep_layout(&self, number: usize) {
        // SAFETY: in a call of a STRICT function; memory of the place lives as long as the place.
        unsafe {
            let place = (*self.0).flinfo;
            let since = custom::changes();
            let is_constant = pg_sys::get_fn_expr_arg_stable(place, number as i32);
            let layout = is_constant.then(|| layouts::by_name(self.whole_text(number)));
            if (*place).fn_extra.is_null() {
                (*place).fn_extra = pg_sys::MemoryContextAlloc((*place).fn_mcxt, size_of::<Known>());
            }
            ptr::write((*place).fn_extra.cast(), Known { layout, since });
        }
    }

    /// Calls a function that pgrx has made.
    #[cold]
    pub fn otherwise(&self, function: Function) -> pg_sys::Datum {
        // SAFETY: the same call.
        unsafe { function(self.0) }
    }

    /// As [`Self::otherwise`]; the layout which this argument names will be known in the next call.
    #[cold]
    pub fn otherwise_keeping_layout(&self, number: usize, function: Function) -> pg_sys::Datum {
        // SAFETY: the same call; nothing is borrowed that an error could leave behind.
        unsafe {
            if !(*self.0).flinfo.is_null() {
                pg_sys::panic::pgrx_extern_c_guard(|| self.keep_layout(number));
            }
        }
        self.otherwise(function)
    }
}

/// A function as PostgreSQL calls it.
pub type Function = unsafe extern "C-unwind" fn(pg_sys::FunctionCallInfo) -> pg_sys::Datum;

/// Makes a function that PostgreSQL can call, which must neither panic nor call PostgreSQL outside of a guard.
macro_rules! entry_point {
    ($info:ident, $name:ident, $answer:expr) => {
        #[unsafe(no_mangle)]
        #[doc(hidden)]
        #[allow(unsafe_code, reason = "a name for PostgreSQL")]
        pub extern "C" fn $info() -> &'static pgrx::pg_sys::Pg_finfo_record {
            &pgrx::pg_sys::Pg_finfo_record { api_version: 1 }
        }

        #[unsafe(no_mangle)]
        #[doc(hidden)]
        #[allow(unsafe_code, reason = "a name for PostgreSQL")]
        pub unsafe extern "C-unwind" fn $name(call: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
            // SAFETY: PostgreSQL calls it so; it is declared STRICT.
            let call = unsafe { $crate::postgres::call::Call::new(call) };
            let answer: fn($crate::postgres::call::Call) -> pgrx::pg_sys::Datum = $answer;
            answer(call)
        }
    };
}
pub(crate) use entry_point;
