//! The transactions of this session: each holds horizons from its first ID to its end.

use crate::{clock, ledger};

/// The session waits at once for an instant that is this close, in microseconds.
const SOON: i64 = 50;
/// The most readings in such a wait. This many take longer than [`SOON`].
const READINGS: usize = 5000;

/// Reads the clock. Returns the reading, and whether the current transaction may make IDs of ticks that end after it; the error is
/// the instant to wait for.
pub fn admit() -> (i64, Result<(), i64>) {
    let mut readings = 0;
    loop {
        let now = clock::now();
        match ledger::admit(now) {
            // Another session has announced a later instant in the meantime.
            Err(until) if until.saturating_sub(now) < SOON && readings < READINGS => readings += 1,
            admitted => return (now, admitted),
        }
    }
}
