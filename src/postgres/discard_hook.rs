//! The hook by which a session learns of DISCARD ALL and DISCARD SEQUENCES.
#![allow(unsafe_code, reason = "a hook of PostgreSQL")]

use std::cell::Cell;
use std::ffi::c_char;

use pgrx::{is_a, pg_sys};

unsafe extern "C-unwind" {
    /// pgrx's own declaration is guarded: it would copy each error of a statement.
    fn standard_ProcessUtility(
        statement: *mut pg_sys::PlannedStmt,
        text: *const c_char,
        is_read_only: bool,
        context: pg_sys::ProcessUtilityContext::Type,
        parameters: pg_sys::ParamListInfo,
        environment: *mut pg_sys::QueryEnvironment,
        receiver: *mut pg_sys::DestReceiver,
        completion: *mut pg_sys::QueryCompletion,
    );
}

thread_local! {
    static SUBSCRIBER: Cell<Option<fn()>> = const { Cell::new(None) };
    static PREVIOUS: Cell<pg_sys::ProcessUtility_hook_type> = const { Cell::new(None) };
}

/// Calls `act`, which must not panic, when this session has forgotten its sequences, from now on.
pub fn subscribe(act: fn()) {
    if SUBSCRIBER.replace(Some(act)).is_none() {
        // SAFETY: a variable of this process; the library is never unloaded.
        unsafe {
            PREVIOUS.set(pg_sys::ProcessUtility_hook);
            pg_sys::ProcessUtility_hook = Some(at_statement);
        }
    }
}

/// An error of the statement jumps over this frame, which holds nothing.
unsafe extern "C-unwind" fn at_statement(
    statement: *mut pg_sys::PlannedStmt,
    text: *const c_char,
    is_read_only: bool,
    context: pg_sys::ProcessUtilityContext::Type,
    parameters: pg_sys::ParamListInfo,
    environment: *mut pg_sys::QueryEnvironment,
    receiver: *mut pg_sys::DestReceiver,
    completion: *mut pg_sys::QueryCompletion,
) {
    // SAFETY: PostgreSQL makes the call, with a complete statement, whose tag tells its type. Executing it may free it.
    unsafe {
        let node = (*statement).utilityStmt;
        let forgets = is_a(node, pg_sys::NodeTag::T_DiscardStmt)
            && matches!(
                (*node.cast::<pg_sys::DiscardStmt>()).target,
                pg_sys::DiscardMode::DISCARD_ALL | pg_sys::DiscardMode::DISCARD_SEQUENCES
            );
        let execute = PREVIOUS.get().unwrap_or(standard_ProcessUtility);
        execute(statement, text, is_read_only, context, parameters, environment, receiver, completion);
        if let Some(act) = SUBSCRIBER.get().filter(|_| forgets) {
            act();
        }
    }
}
