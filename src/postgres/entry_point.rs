//! The C symbols of SQL functions.
//!
//! A C symbol has the name of its SQL function; sql/flake.sql states the rule. [`c_symbol!`] gives that name to a function made by
//! `#[pg_extern]`. [`entry_point!`] makes a function without pgrx's guard against errors, which takes about 200 instructions. It is
//! for functions that usually raise no error, and enter the guard for everything else.

/// Exports functions made by `#[pg_extern]` under their SQL names. pgrx appends `_wrapper` to its own symbols.
macro_rules! c_symbol {
    ($($name:ident),+ $(,)?) => { pastey::paste! { $(
        const _: () = {
            $crate::postgres::entry_point::finfo!($name);

            #[unsafe(no_mangle)]
            #[allow(unsafe_code, reason = "a C symbol")]
            pub unsafe extern "C-unwind" fn $name(call: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                // SAFETY: PostgreSQL makes the call.
                unsafe { $crate::postgres::guard::with_memory_reserve(|| [<$name _wrapper>](call)) }
            }
        };
    )+ } };
}

/// Makes a function that PostgreSQL calls without a guard.
///
/// `entry_point!(name(argument: Type, …), |call| answer)` returns the datum `answer`. The function must be declared STRICT, or check for
/// NULL arguments itself, and its SQL arguments must be of types that the Rust types read (see
/// [`Argument`](super::call::Argument)). `answer` must not panic, and must not call PostgreSQL without a guard.
macro_rules! entry_point {
    ($name:ident($($argument:ident: $type:ty),*), |$call:ident| $answer:expr) => {
        const _: () = {
            $crate::postgres::entry_point::finfo!($name);

            #[unsafe(no_mangle)]
            #[allow(unsafe_code, unused_variables, unused_assignments, reason = "a C symbol")]
            pub unsafe extern "C-unwind" fn $name(call: pgrx::pg_sys::FunctionCallInfo) -> pgrx::pg_sys::Datum {
                // SAFETY: PostgreSQL makes the call; no argument is read here.
                let $call = unsafe { $crate::postgres::call::Call::new(call) };
                let mut number = 0;
                $(
                    // SAFETY: SQL declares this argument.
                    let $argument = unsafe { $call.argument::<$type>(number) };
                    number += 1;
                )*
                $answer
            }
        };
    };
}

/// Tells PostgreSQL which calling convention a function has.
macro_rules! finfo {
    ($name:ident) => {
        pastey::paste! {
            #[unsafe(no_mangle)]
            #[allow(unsafe_code, reason = "a C symbol")]
            pub extern "C" fn [<pg_finfo_ $name>]() -> &'static pgrx::pg_sys::Pg_finfo_record {
                &pgrx::pg_sys::Pg_finfo_record { api_version: 1 }
            }
        }
    };
}

pub(crate) use {c_symbol, entry_point, finfo};
