//! This session: its generators, and how it waits.

mod delays;
mod generator_map;
mod generators;
pub mod layout_source;
pub mod stores;
mod tick_clock;
mod wait;

use std::ffi::CStr;
use std::fmt::Display;
use std::ops::Range;
use std::time::Duration;

use flake_core::IdSource;
use flake_core::ledger::host::Server;
use flake_core::ledger::time::grant::MAX_AHEAD_MICROS;
use pgrx::PgSqlErrorCode::*;

use self::stores::{StoreKey, forget_readings, join, with_generator};
use self::wait::Wait;
use crate::error::{Error, listed};
use crate::ledger;
use crate::postgres::local_settings::lock_timeout;
use crate::postgres::timestamptz::to_text;
use crate::postgres::transaction::is_in_worker;
use crate::postgres::{recovery, report};

/// Makes an ID. If necessary, waits for the next tick.
#[cold]
pub fn next_id<S: IdSource>(store: StoreKey<S>, source: S, argument: S::Argument) -> Result<S::Id, Error> {
    let mut wait = Wait::default();
    loop {
        // Another session can lock the page for long. No generator is borrowed while this one waits for the lock.
        let held = ledger::hold_page();
        let attempt = with_generator(store, source, |own| own.attempt(argument, &mut wait))?;
        drop(held);
        if let Some(id) = attempt {
            return Ok(id);
        }
        // No generator is borrowed during a pause, because the session may exit in it.
        wait.pause();
    }
}

/// Returns a watermark: neither this query nor a later one can find a new row with an ID below it.
pub fn watermark() -> Result<i64, Error> {
    let snapshot = ledger::snapshot()?;
    if snapshot.is_of_recovery() {
        ledger::replayed_watermark(&snapshot)
    } else {
        ledger::watermark(join()?, &snapshot)
    }
}

/// Publishes the current watermark for standbys, and returns it.
pub fn publish_watermark() -> Result<i64, Error> {
    recovery::refuse(c"flake_publish_watermark()");
    recovery::forbid_if_read_only(c"flake_publish_watermark()");
    ledger::snapshot()?;
    ledger::publish_watermark(join()?)
}

/// Makes the current transaction hold watermarks at an ID that it has not made itself, for the SQL function that errors name. `tick` is when the ID's tick begins and ends.
/// Raises an error if the tick is further ahead of flake's time than any reserved time: then the layout is wrong, and watermarks would
/// pass the ID.
pub fn cover(function: &'static CStr, id: impl Display, tick: Range<i64>) -> Result<(), Error> {
    recovery::refuse(function);
    if is_in_worker() {
        return Err(Error::of(ERRCODE_INVALID_TRANSACTION_STATE, "cannot cover an ID in a parallel worker")
            .detail("A worker ends before its transaction does, so watermarks would not wait for the ID.")
            .hint(format!("Declare functions that call {} PARALLEL RESTRICTED.", function.to_string_lossy())));
    }
    let mut own = join()?;
    let ahead = tick.start.saturating_sub(own.time(own.era(), false));
    if ahead > MAX_AHEAD_MICROS {
        let by = Duration::from_micros(ahead.unsigned_abs());
        return Err(Error::not_ready("ID is too far ahead of the clock")
            .detail(format!(
                "By this layout, ID {id} belongs to a time that is {by:?} from now. Watermarks would not wait for it."
            ))
            .hint("Check the ID, its layout, and the clock."));
    }
    match ledger::cover(&mut own, tick.end.saturating_sub(1))? {
        None => Ok(()),
        Some(announced) => Err(Error::not_ready("ID may be below a watermark")
            .detail(format!(
                "Watermarks up to {} may have been returned, and the tick of ID {id} has ended by then.",
                to_text(announced)
            ))
            .hint("Make a new ID in the transaction that inserts it.")),
    }
}

/// Raises the floor, so that this server uses no tick that begins before an instant. A session can still use time that was granted
/// before, so this waits until the transactions that have made IDs so far have ended. Returns the instant from which IDs are made.
pub fn start_above(function: &'static CStr, instant: i64, force: bool) -> Result<i64, Error> {
    let from = ledger::start_above(function, instant, force)?;
    // This session's own transaction continues, and could otherwise use an earlier reading of the clock.
    forget_readings();
    wait_for_transactions()?;
    Ok(from)
}

/// How often a session that waits for others checks them.
const POLL: Duration = Duration::from_millis(5);
/// How long it waits before it tells the client.
const TELL_AFTER: Duration = Duration::from_millis(500);
/// How long it waits if the caller has set no lock_timeout. Any role could otherwise keep an operator waiting.
const DEFAULT_LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits until the transactions that have made IDs so far have ended.
fn wait_for_transactions() -> Result<(), Error> {
    let mut busy = ledger::making_ids();
    let longest = match lock_timeout() {
        0 => DEFAULT_LOCK_TIMEOUT,
        set => Duration::from_millis(set.unsigned_abs().into()),
    };
    let mut has_told = false;
    let mut wait = Wait::default();
    while !busy.is_empty() {
        let processes = || {
            let each = busy
                .iter()
                .map(|one| format!("process {} in database \"{}\"", one.pid, recovery::name_of_database(one.database)));
            listed(each.collect::<Vec<_>>().iter(), "others")
        };
        if wait.lasted() > longest {
            return Err(Error::not_ready("transactions that have made IDs are still open")
                .detail(format!(
                    "New transactions make IDs above the given one, but these may still make lower ones: {}.",
                    processes()
                ))
                .hint(
                    "End them, as by pg_terminate_backend, or wait. Then call the function again; it waits for \
                     lock_timeout, or for 10 seconds if that is 0.",
                ));
        }
        if !has_told && wait.lasted() > TELL_AFTER {
            has_told = true;
            let detail = format!("They belong to {}.", processes());
            report::notice("waiting for transactions that have made IDs".to_owned(), &detail);
        }
        wait.begin(POLL.as_micros() as i64);
        wait.pause();
        let still = ledger::making_ids();
        busy.retain(|one| still.contains(one));
    }
    Ok(())
}
