//! The ledger as this session's generators reach it.
#![allow(unsafe_code, reason = "the progress of this session's slot in shared memory")]

use std::ffi::CStr;
use std::sync::atomic::Ordering;

use flake_core::resume::{Beginning, Grant, LedgerAccess};
use flake_core::{Start, Window};

use super::attach::{Attachment, attached, control};
use super::control::Header;
use super::open::{open, report_clock_step};
use crate::clock;
use crate::error::{Error, OrRaise};
use crate::postgres::recovery;

/// When less than this remains until the mark, one session moves the mark while the others continue. In microseconds.
const RESERVE: i64 = 1_000_000;

/// The ledger that all sessions share.
pub struct SharedLedger {
    /// The SQL function that makes IDs, for error messages.
    pub function: &'static CStr,
}

impl LedgerAccess for SharedLedger {
    type Error = Error;

    fn begin(&self, key: u64) -> Beginning {
        match attached() {
            Attachment::Unknown => unreachable!("generators begin after the session has joined the ledger"),
            Attachment::Foreign(header) => without_ledger(header),
            Attachment::Ledger(control, progress) => {
                open(control).or_raise();
                let Some(ledger) = control.with_lock(|guarded| guarded.ledger) else {
                    return without_ledger(&control.header);
                };
                // SAFETY: it belongs to this session's slot, so nobody else uses it while the session lives.
                let start = match unsafe { progress.as_ref() } {
                    None => above_now(&control.header, ledger.floor()),
                    Some(progress) => {
                        progress.start(&ledger, key, control.header.unstored_floor.load(Ordering::Acquire))
                    }
                };
                let last_seen = control.last_seen.load(Ordering::Acquire);
                Beginning { start, last_seen, era: ledger.era(), window: without_reserve(ledger.window()) }
            }
        }
    }

    fn era(&self) -> u64 {
        control().map_or(0, |control| control.window.read().1)
    }

    fn grant(&self, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, Error> {
        let Some(control) = control() else { return Ok(Grant::Window(Window::ALL, 0)) };
        let is_in = |window: Window| now >= window.from && now < window.until && tick_end <= window.skip;
        let (window, era) = control.window.read();
        if is_in(without_reserve(window)) {
            return Ok(Grant::Window(without_reserve(window), era));
        }
        recovery::refuse(self.function);
        let extend = |guarded: &mut super::control::Guarded| {
            let Some(ledger) = guarded.ledger else { return Ok((Grant::Window(Window::ALL, 0), 0)) };
            if is_in(without_reserve(ledger.window())) {
                return Ok((Grant::Window(without_reserve(ledger.window()), ledger.era()), 0));
            }
            let granted = if goes_back && now < ledger.window().from {
                ledger.covered(now, tick_end)
            } else {
                ledger.extended(now, tick_end).map(|new| (new, without_reserve(new.window())))
            };
            let (new, window) = match granted {
                Ok(granted) => granted,
                Err(until) => return Ok((Grant::After(until), guarded.clock_step())),
            };
            guarded.replace(control, new)?;
            control.last_seen.fetch_max(now, Ordering::AcqRel);
            Ok((Grant::Window(window, new.era()), guarded.clock_step()))
        };
        // While time remains until the mark, nobody waits for the session that moves it.
        let extended = if is_in(window) { control.try_with_lock(extend) } else { Some(control.with_lock(extend)) };
        match extended {
            None => Ok(Grant::Window(window, era)),
            Some(Ok((grant, step))) => {
                report_clock_step(control, step);
                Ok(grant)
            }
            // Time remains until the mark, and the next attempt may succeed.
            Some(Err(_)) if is_in(window) => Ok(Grant::Window(window, era)),
            Some(Err(error)) => Err(error),
        }
    }
}

/// How a generator begins in a session that does without the ledger.
fn without_ledger(header: &Header) -> Beginning {
    Beginning { start: above_now(header, i64::MIN), last_seen: i64::MIN, era: 0, window: Window::ALL }
}

fn above_now(header: &Header, floor: i64) -> Start {
    let unstored_floor = header.unstored_floor.load(Ordering::Acquire);
    Start { free_from: clock::now().saturating_add(1).max(unstored_floor).max(floor), resumed: None }
}

/// Returns the window without its end, in which sessions ask for more time if there is any.
fn without_reserve(window: Window) -> Window {
    if window.until >= window.skip { window } else { Window { until: window.until - RESERVE, ..window } }
}
