//! Granting time to generators that begin, and to sessions that have reached the end of what they may use.

use super::change::change;
use super::shared::generation_of;
use super::state::{State, in_force};
use crate::instant::MIN_INSTANT;
use crate::ledger::durable::page::{read_page, update_page};
use crate::ledger::host::{Host, Server, Writer};

/// How far ahead of the clock time is reserved, in microseconds. IDs can lead the clock by that much after a crash.
pub const RESERVE_AHEAD_MICROS: i64 = 3_000_000;
/// How far ahead of flake's time it is reserved at least, in microseconds.
const LEAST_MICROS: i64 = 500_000;
/// When this part of the reserved time is left, one session asks for more, and the others continue meanwhile: a third.
const RESERVE_DIVISOR: i64 = 3;
/// How much time a session gets at most, in microseconds. While IDs lead, it lasts twice as long. So a lead that exceeds flake.max_lead is
/// noticed within 3 seconds.
const LONGEST_GRANT_MICROS: i64 = RESERVE_AHEAD_MICROS / 2;
/// How far ahead of flake's time nothing explains that a time was used, in microseconds. Also the longest wait for a tick.
pub const MAX_AHEAD_MICROS: i64 = RESERVE_AHEAD_MICROS + 2_000_000;

/// Where a generator begins.
#[derive(Debug, Clone, Copy)]
pub struct GeneratorStart {
    /// The era in which all this is valid.
    pub era: u64,
    /// The generator makes no ID in a tick that begins before this instant.
    pub floor: i64,
    /// The generator asks for time at this instant.
    pub limit: i64,
}

/// The answer to a request for time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// The session may use the time before this instant, and then asks again.
    Until(i64),
    /// The era has changed. Nothing is granted.
    Over,
    /// IDs would lead the clock by so many microseconds, more than flake.max_lead. Nothing is granted.
    TooFar(i64),
}

/// A request for time.
#[derive(Clone, Copy)]
struct Request {
    /// The era in which the session has read flake's time.
    era: u64,
    /// flake's time.
    now: i64,
    /// Where the reserved time should end.
    wanted: i64,
    /// How far ahead of the clock it may be, in microseconds.
    lead: i64,
    max_lead: i64,
}

impl Request {
    /// Returns the end of the reserved time, and whether that is enough for now. Returns None if the era has changed.
    fn look(&self, server: &(impl Server + ?Sized), state: &State) -> Option<(i64, bool)> {
        let ledger = state.ledger.filter(|_| server.shared().era() == self.era)?;
        let until = ledger.reserved.end();
        Some((until, until.saturating_sub(self.now) > self.reserve() && !state.file.is_in_doubt))
    }

    const fn reserve(&self) -> i64 {
        self.wanted.saturating_sub(self.now) / RESERVE_DIVISOR
    }
}

/// Grants the instant `now`, which is flake's time in an era, and some time after it.
///
/// # Errors
/// The server's errors; nothing is granted then.
pub fn grant<H: Host>(host: &mut H, era: u64, now: i64) -> Result<Grant, H::Error> {
    let page = read_page(host)?;
    let clock = host.clock();
    let wanted = clock.saturating_add(RESERVE_AHEAD_MICROS).max(now.saturating_add(LEAST_MICROS));
    let request = Request { era, now, wanted, lead: now.saturating_sub(clock), max_lead: host.max_lead() };
    let Some((mut until, mut is_enough)) = host.lock(|state| request.look(&*host, state)) else {
        return Ok(Grant::Over);
    };
    if request.lead > request.max_lead {
        return Ok(Grant::TooFar(request.lead));
    }
    if !is_enough {
        // As long as reserved time remains, no session waits for the one that asks for more.
        let remains = now < until && !host.lock(|state| state.file.is_in_doubt);
        let writer = if remains { host.try_writer() } else { Some(host.writer()) };
        match writer.map(|writer| reserve(&writer, &request)) {
            Some(Ok(Ok(new))) => (until, is_enough) = (new, true),
            Some(Ok(Err(refused))) => return Ok(refused),
            Some(Err(error)) if !remains => return Err(error),
            // The session continues in the reserved time, and asks again later.
            _ => {}
        }
    }
    update_page(host, page)?;
    debug_assert!(now < until, "an ID needs reserved time after it");
    let end = if is_enough { until.saturating_sub(request.reserve()) } else { until };
    debug_assert!(now < end && end <= until, "a session gets some time, and no more than is reserved");
    Ok(Grant::Until(end.min(now.saturating_add(LONGEST_GRANT_MICROS))))
}

/// Reserves time in the file and in memory. Returns the end of the reserved time, or why there is none.
fn reserve<W: Writer>(writer: &W, request: &Request) -> Result<Result<i64, Grant>, W::Error> {
    let Some((until, is_enough)) = writer.lock(|state| request.look(&**writer, state)) else {
        return Ok(Err(Grant::Over));
    };
    if is_enough {
        return Ok(Ok(until));
    }
    let Some(ledger) = writer.lock(in_force) else { return Ok(Err(Grant::Over)) };
    change(writer, ledger.granting(request.wanted))?;
    // An acceptance whose call has failed may have come into force.
    let granted = writer.lock(|state| request.look(&**writer, state));
    Ok(granted.map(|(until, _)| until).ok_or(Grant::Over))
}

/// Begins a generator.
pub fn begin<H: Host>(host: &mut H) -> Result<GeneratorStart, H::Error> {
    let page = read_page(host)?;
    let known = host.lock(|state| Some((state.ledger?, state.file.is_in_doubt, host.shared().era())));
    let Some((ledger, is_in_doubt, era)) = known else { unreachable!("the page was read") };
    debug_assert_eq!(generation_of(era), ledger.reserved.generation(), "the era's last bit is the generation");
    let is_ready = ledger.is_in(&page) && !is_in_doubt;
    let limit = ledger
        .reserved
        .end()
        .saturating_sub(RESERVE_AHEAD_MICROS / RESERVE_DIVISOR)
        .min(host.clock().saturating_add(LONGEST_GRANT_MICROS));
    let limit = if is_ready { limit } else { MIN_INSTANT };
    debug_assert!(limit <= ledger.reserved.end(), "a generator begins with no more time than is reserved");
    Ok(GeneratorStart { era, floor: ledger.floor, limit })
}
