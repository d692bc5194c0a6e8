//! Procedures, which CALL runs, and which may end their transactions.
#![allow(unsafe_code, reason = "PostgreSQL's server programming interface")]

use pgrx::{is_a, pg_sys};

use super::call::Call;

/// A procedure that runs.
pub struct Procedure {
    /// Whether it runs in a transaction block, or in a function, and so may not end the transaction.
    pub is_atomic: bool,
}

impl Procedure {
    /// Calls `act` with the procedure of a call.
    pub fn run<R>(call: Call, act: impl FnOnce(&Self) -> R) -> R {
        // SAFETY: PostgreSQL calls a procedure with this context, and its tag tells the type. The connection is closed unless an error
        // leaves from `act`.
        unsafe {
            let context = (*call.raw()).context;
            let may_commit = !context.is_null()
                && is_a(context, pg_sys::NodeTag::T_CallContext)
                && !(*context.cast::<pg_sys::CallContext>()).atomic;
            let options = if may_commit { pg_sys::SPI_OPT_NONATOMIC } else { 0 };
            pg_sys::SPI_connect_ext(options as i32);
            let result = act(&Self { is_atomic: !may_commit });
            pg_sys::SPI_finish();
            result
        }
    }

    /// Commits, and begins another transaction, if that is allowed.
    pub fn commit(&self) {
        if !self.is_atomic {
            // SAFETY: there is a connection that may do it, and no subtransaction.
            unsafe { pg_sys::SPI_commit() };
        }
    }
}
