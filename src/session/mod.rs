//! This session: its generators, how it waits, and what it leaves when it exits.

pub mod delays;
mod exit;
pub mod generators;
pub mod layout_source;
mod shelf;
pub mod sno_source;
mod tick_clock;
mod wait;

use self::generators::{Attempt, Id, IdSource, with_generator};
use self::wait::{Reason, Wait};
use crate::error::Error;
use crate::{clock, ledger};

/// Makes an ID, and waits for it if necessary: until the next tick, or until a clock that stepped back has caught up.
#[cold]
pub fn next_id<S: IdSource>(source: S, argument: S::Argument) -> Result<Id<S>, Error> {
    let mut wait = Wait::default();
    loop {
        match with_generator(source, |own| own.attempt(argument, &mut wait))? {
            Attempt::Made(id) => return Ok(id),
            // No generator is borrowed during a pause, because the session may exit in it.
            Attempt::Pause { remaining, reason } => wait.pause(remaining, reason),
        }
    }
}

/// Has this server use no tick that starts before an instant, and waits until no session can use time that was granted to it
/// before. Returns the instant from which IDs are made.
pub fn start_above(instant: i64, force: bool) -> Result<i64, Error> {
    let beginning = ledger::start_above(instant, force)?;
    let mut wait = Wait::default();
    loop {
        let remaining = beginning.granted_until.saturating_sub(clock::now());
        if remaining <= 0 {
            return Ok(beginning.floor);
        }
        wait.pause(remaining, Reason::NextTick);
    }
}
