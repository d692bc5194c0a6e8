//! This session: its generators, how it waits, and what it leaves when it exits.

pub mod delays;
mod exit;
pub mod generators;
pub mod layout_source;
mod shelf;
pub mod sno_source;
mod tick_clock;
pub mod transaction;
mod wait;

use std::cell::Cell;
use std::fmt::Display;
use std::ops::Range;
use std::time::Duration;

use flake_core::timeline::{AHEAD, MARGIN};
use flake_core::{Node, absent};

use self::generators::{Attempt, Id, IdSource, with_generator};
use self::wait::{Reason, Wait};
use crate::error::Error;
use crate::postgres::recovery;
use crate::postgres::transaction::is_in_worker;
use crate::{clock, ledger};

thread_local! {
    /// The node in force when this session joined the ledger. It stays the same until the server stops.
    static NODE: Cell<Option<Node>> = const { Cell::new(None) };
}

/// Makes an ID, and waits for it if necessary: until the next tick, or until a clock that stepped back has caught up.
#[cold]
pub fn next_id<S: IdSource>(source: S, argument: S::Argument) -> Result<Id<S>, Error> {
    let mut wait = Wait::default();
    loop {
        // Others can lock the page for long. Who is terminated while waiting for it is not in the middle of making an ID.
        let held = ledger::hold_page();
        let attempt = with_generator(source, |own| own.attempt(argument, &mut wait))?;
        drop(held);
        match attempt {
            Attempt::Made(id) => return Ok(id),
            // No generator is borrowed during a pause, because the session may exit in it.
            Attempt::Pause { remaining, reason } => wait.pause(remaining, reason),
        }
    }
}

/// Returns an instant below which no ID can appear any more in what this query or a later one sees.
pub fn horizon() -> Result<i64, Error> {
    ledger::check_horizon()?;
    ledger::horizon(join()?)
}

/// Has this session count as one that uses the ledger, and returns the node that it belongs to.
fn join() -> Result<Node, Error> {
    if let Some(node) = NODE.get() {
        return Ok(node);
    }
    let node = ledger::join(0)?;
    exit::leave_at_exit(|| Some(Vec::new()));
    NODE.set(Some(node));
    Ok(node)
}

/// Has the present transaction hold horizons at an ID that it has not made itself, whose tick is this time. It fails if that is
/// further ahead of the clock than the time that is granted: a mistaken layout would have horizons pass the ID.
pub fn cover(id: impl Display, tick: Range<i64>) -> Result<(), Error> {
    recovery::refuse(c"flake_cover()");
    if is_in_worker() && !absent!(CoverInWorker) {
        return Err(Error::CoverInWorker);
    }
    ledger::notice_promotion(join()?)?;
    let ahead = tick.start.saturating_sub(clock::now());
    if ahead > AHEAD + MARGIN && !absent!(CoverAhead) {
        return Err(Error::CoverAhead { id: id.to_string(), by: Duration::from_micros(ahead.unsigned_abs()) });
    }
    let below = |announced| Error::BelowHorizon { id: id.to_string(), announced };
    ledger::cover(tick.end.saturating_sub(1)).map_err(below)
}

/// Has this server use no tick that starts before an instant, and waits until no session can use time that was granted to it
/// before. Returns the instant from which IDs are made.
pub fn start_above(instant: i64, force: bool) -> Result<i64, Error> {
    let beginning = ledger::start_above(instant, force)?;
    let mut wait = Wait::default();
    loop {
        let remaining = beginning.granted_until.saturating_sub(clock::now());
        if remaining <= 0 || absent!(StartWaits) {
            return Ok(beginning.floor);
        }
        wait.pause(remaining, Reason::NextTick);
    }
}
