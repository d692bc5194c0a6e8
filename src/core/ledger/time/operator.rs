//! The functions for superusers: flake_accept_clock changes to the other generation, flake_start_above makes time unusable, and
//! flake_accept_turn begins a ledger whose turn is not known.

use std::sync::atomic::{Ordering, fence};

use super::begin::{begin_ledger, turns};
use super::change::change;
use super::grant::RESERVE_AHEAD_MICROS;
use super::shared::Shared;
use super::state::{Ledger, in_force};
use crate::Turns;
use crate::ledger::durable::page::{ensure_page_current, read_page, record_mark, update_page};
use crate::ledger::host::{Fault, Host, Server};

/// The result of accepting the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acceptance {
    /// From when on IDs are made.
    pub from: i64,
    /// Whether anything has changed.
    pub is_new: bool,
    /// The highest watermark that had been announced before.
    pub announced: i64,
}

/// Returns up to where IDs lead a reading of the clock, or the reading if they do not.
pub fn led_to(shared: &Shared, ledger: &Ledger, clock: i64, monotonic: i64) -> i64 {
    let announced = shared.announced(shared.era()).load(Ordering::SeqCst);
    let [layouts, snos] = times(shared, clock, monotonic);
    layouts.max(snos).max(ledger.floor).max(announced)
}

/// Returns from when on IDs are made. Layouts and snos can lead the clock by different times.
fn made_from(shared: &Shared, ledger: &Ledger, clock: i64, monotonic: i64) -> i64 {
    let [layouts, snos] = times(shared, clock, monotonic);
    layouts.min(snos).max(ledger.floor)
}

/// Returns flake's time, of layouts and of snos.
fn times(shared: &Shared, clock: i64, monotonic: i64) -> [i64; 2] {
    [false, true].map(|of_snos| shared.time(shared.era(), of_snos, clock, || monotonic))
}

/// Lets IDs be made at the current clock although later IDs exist, in the other generation.
///
/// # Errors
/// [`Fault::BothLead`] if the other generation is far ahead of the clock too; the server's errors.
pub fn accept<H: Host>(host: &mut H) -> Result<Acceptance, H::Error> {
    let page = read_page(host)?;
    let max_lead = host.max_lead();
    let done = {
        let writer = host.writer();
        let Some(ledger) = writer.lock(in_force) else { unreachable!("the page was read") };
        // The clock is read here, because another session may announce a later instant while this one waits for the writer.
        let (clock, monotonic, shared) = (writer.clock(), writer.monotonic(), writer.shared());
        let end = ledger.reserved.end();
        let led_to = led_to(shared, &ledger, clock, monotonic)
            .max(if end > clock.saturating_add(RESERVE_AHEAD_MICROS) { end } else { clock });
        let announced = shared.announced(shared.era()).load(Ordering::SeqCst);
        let new = ledger.accepting();
        let is_too_far = led_to.saturating_sub(clock) > max_lead;
        // Called in each database, this would otherwise change to a generation that leads further.
        let is_new = led_to > clock && (is_too_far || new.floor < led_to);
        if is_new {
            let other = new.reserved.generation();
            if new.floor.saturating_sub(clock) > max_lead {
                return Err(Fault::BothLead(led_to.min(new.floor).saturating_sub(clock), max_lead).into());
            }
            // Before this start, watermarks may have been returned up to the floor.
            let announced = announced.max(ledger.floor);
            // If the write fails halfway, a crash may bring the acceptance back.
            writer.lock(|state| state.file.is_in_doubt = true);
            writer.lock(|_| shared.clear_anchors(other));
            writer.point("accepts");
            change(&writer, new)?;
            debug_assert!(
                writer.lock(in_force).is_some_and(|ledger| ledger.reserved.acceptances > page.reserved.acceptances),
                "an acceptance is in force before a page has it"
            );
            Acceptance { from: new.floor.max(clock), is_new, announced }
        } else {
            Acceptance { from: made_from(shared, &ledger, clock, monotonic), is_new, announced }
        }
    };
    update_page(host, page)?;
    Ok(done)
}

/// Raises an instant: transactions that begin from now on use no tick that begins before it, on this server or on another one that
/// gets the data. Returns from when on IDs are made, and whether anything has changed.
pub fn start_above<H: Host>(host: &mut H, instant: i64) -> Result<(i64, bool), H::Error> {
    let page = read_page(host)?;
    let (new, is_new) = {
        let writer = host.writer();
        let Some(ledger) = writer.lock(in_force) else { unreachable!("the page was read") };
        let new = ledger.starting_above(instant);
        // A write that failed before this start may have left a later instant in the file, where a crash can still lose it.
        if new != ledger || writer.lock(|state| state.file.is_old || state.file.is_in_doubt) {
            change(&writer, new)?;
        }
        (new, new != ledger)
    };
    fence(Ordering::SeqCst);
    update_page(host, page)?;
    Ok((made_from(host.shared(), &new, host.clock(), host.monotonic()), is_new))
}

/// Begins the ledger although the turn of the timeline before this one is not known, with a turn that nothing recorded has. Returns
/// the turn in force.
pub fn accept_turn<H: Host>(host: &mut H) -> Result<u32, H::Error> {
    let ledger = begin_ledger(host, |timeline, recorded| {
        Ok(turns(timeline, recorded).unwrap_or_else(|_| Turns::accepted(timeline.number, recorded)))
    })?;
    record_mark(host)?;
    Ok(ledger.turn())
}

/// Returns the end of all time that may be used in any generation, as far as this server and the page of the database know.
///
/// # Errors
/// The server's errors.
pub fn unused<H: Host>(host: &mut H) -> Result<i64, H::Error> {
    ensure_page_current(host)?;
    let ledger = host.lock(in_force);
    Ok(ledger.map_or(i64::MIN, |ledger| ledger.reserved.until[0].max(ledger.reserved.until[1])))
}
