//! flake_accept_clock, flake_start_above, flake_accept_turn and flake_record_mark: their checks, warnings and log messages. And what flake_rotate_key
//! asks for.

use std::ffi::CStr;
use std::time::Duration;

use flake_core::ledger::durable::page;
use flake_core::ledger::host::Server;
use flake_core::ledger::time::grant::MAX_AHEAD_MICROS;
use flake_core::ledger::time::operator::{self, Acceptance};

use super::backend::Backend;
use super::memory::memory;
use super::node::node;
use super::turn;
use crate::clock;
use crate::error::{Error, superuser_only};
use crate::postgres::timestamptz::to_text;
use crate::postgres::{recovery, report};

/// Lets IDs be made at the current clock although later IDs exist. Returns the instant from which IDs are made.
pub fn accept_clock() -> Result<i64, Error> {
    superuser_only("flake_accept_clock")?;
    recovery::refuse(c"flake_accept_clock()");
    let Acceptance { from, is_new, announced } = operator::accept(&mut Backend::new()?)?;
    if is_new {
        report::log("flake: the current clock was accepted although later IDs exist".to_owned());
        if announced > from {
            report::warning(
                "new IDs may fall below watermarks already returned".to_owned(),
                Some("Watermarks from before the call do not bind IDs that are made after it."),
                "Consumers have to read again from the time that this function returns.",
            );
        }
    }
    Ok(from)
}

/// Makes IDs of all transactions that begin from now on lie above an instant. An instant that a restart could not explain, because
/// it is too far ahead of flake's time, needs `force`. Returns the instant from which IDs are made. `function` is the SQL function
/// that errors name, which has checked that the role is a superuser.
pub fn start_above(function: &'static CStr, instant: i64, force: bool) -> Result<i64, Error> {
    recovery::refuse(function);
    let mut backend = Backend::new()?;
    let ahead = instant.saturating_sub(backend.time(backend.era(), false));
    if ahead > MAX_AHEAD_MICROS && !force {
        let by = Duration::from_micros(ahead.unsigned_abs());
        return Err(Error::not_ready("ID is too far ahead of the clock")
            .detail(format!(
                "It is of {}, which is {by:?} ahead. IDs of all layouts would lead the clock.",
                to_text(instant)
            ))
            .hint(
                "Check the ID, its layout, and the clock. If this is what you want, pass force => true: no restart, \
                 failover or other flake.node_id takes it back.",
            ));
    }
    let (from, is_new) = operator::start_above(&mut backend, instant)?;
    if is_new {
        report::log(format!(
            "flake: no IDs are made before {}, because {} was called",
            to_text(from),
            function.to_string_lossy()
        ));
    }
    Ok(from)
}

/// Begins to make IDs although the turn of an earlier primary is not known. Returns the turn in force.
pub fn accept_turn() -> Result<u32, Error> {
    superuser_only("flake_accept_turn")?;
    recovery::refuse(c"flake_accept_turn()");
    let is_unknown = turn::is_unknown()?;
    let turn = operator::accept_turn(&mut Backend::new()?)?;
    if is_unknown {
        report::log(format!("flake: turn {turn} was accepted although the turn of an earlier primary is not known"));
    }
    Ok(turn)
}

/// Returns the first instant, now or later, that no session can have used, as far as this server and the page know.
pub fn unused() -> Result<i64, Error> {
    Ok(operator::unused(&mut Backend::new()?)?.max(clock::now()))
}

/// Writes this server's record into the page of a database in which the extension has just been created.
pub fn record_mark() -> Result<(), Error> {
    superuser_only("flake_record_mark")?;
    // A ledger that begins on a standby would have no timeline, and no turn.
    recovery::refuse(c"flake_record_mark()");
    // The extension can be updated before the server restarts. The first session after the restart then writes the mark.
    // If the node number is not valid, no ID has been made since the start. The first session that makes one will write the mark.
    if memory().is_none() || node().is_err() {
        return Ok(());
    }
    // The extension must exist before a superuser can accept the turn.
    if turn::is_unknown()? {
        return Ok(());
    }
    page::record_mark(&mut Backend::new()?)
}
