//! The transactions of this session: with the first ID of each, horizons are held, until its end.

use crate::{clock, ledger};

/// Nearer instants are waited for at once, in microseconds.
const SOON: i64 = 50;
/// The most readings of one spin: so many take longer than an instant that is [`SOON`].
const READINGS: usize = 5000;

/// Reads the clock, and says whether IDs of ticks that end after that may be made in the current transaction, or else the
/// instant to wait for.
pub fn admit() -> (i64, Result<(), i64>) {
    let mut readings = 0;
    loop {
        let now = clock::now();
        match ledger::admit(now) {
            // Somebody has announced the clock meanwhile.
            Err(until) if until.saturating_sub(now) < SOON && readings < READINGS => readings += 1,
            admitted => return (now, admitted),
        }
    }
}
