//! The ledger as this session's generators reach it.
#![allow(unsafe_code, reason = "the progress of this session's slot in shared memory")]

use std::cell::Cell;
use std::ffi::CStr;
use std::sync::atomic::Ordering;

use flake_core::resume::{Beginning, Grant, LedgerAccess};
use flake_core::timeline::{AHEAD, MARGIN};
use flake_core::{Node, Start, Window, absent};

use super::attach::{Attachment, attached, control};
use super::control::{Control, Guarded};
use super::mark_page;
use super::open::{open, report_clock_step};
use super::writer::Writer;
use crate::clock;
use crate::error::{Error, OrRaise};
use crate::postgres::recovery;

/// When less than this remains of the time that was granted, one session asks for more while the others continue. In
/// microseconds.
const RESERVE: i64 = 1_000_000;

thread_local! {
    /// Until when time was granted to this session without a ledger.
    static GRANTED_UNTIL: Cell<i64> = const { Cell::new(i64::MIN) };
}

/// Returns until when time was granted to this session without a ledger.
pub fn granted_without_ledger() -> i64 {
    GRANTED_UNTIL.get()
}

/// The ledger that all sessions share.
pub struct SharedLedger {
    /// The SQL function that makes IDs, for error messages.
    pub function: &'static CStr,
    /// The node that IDs are made for.
    pub node: Node,
}

impl LedgerAccess for SharedLedger {
    type Error = Error;

    fn begin(&self, key: u64) -> Beginning {
        match attached() {
            Attachment::Unknown => unreachable!("generators begin after the session has joined the ledger"),
            Attachment::Foreign(header) => Beginning {
                start: above_now(header.foreign_floor.load(Ordering::Acquire)),
                last_seen: i64::MIN,
                era: 0,
                window: NONE,
            },
            Attachment::Ledger(control, progress) => {
                open(control, self.node).or_raise();
                let Some(ledger) = control.ledger() else { unreachable!("the ledger has just been opened") };
                let floor = control.untraced_floor();
                // SAFETY: it belongs to this session's slot, so nobody else uses it while the session lives.
                let start = match unsafe { progress.as_ref() } {
                    // Without its slot's progress, it begins above whatever was used.
                    None => {
                        let of_exited =
                            control.with_lock(|guarded| if absent!(MemoryFree) { i64::MIN } else { guarded.free_from });
                        above_now(ledger.floor().max(floor).max(of_exited))
                    }
                    Some(progress) => progress.start(&ledger, key, floor),
                };
                // A generator that resumes may go on in its tick without asking for it.
                let is_covered = if start.resumed.is_some() && !absent!(PageOfResumed) {
                    mark_page::cover(Some(control), self.node, ledger.mark()).or_raise();
                    true
                } else {
                    mark_page::is_covered(Some(control), self.node, ledger.mark()).or_raise()
                };
                Beginning {
                    start,
                    last_seen: control.last_seen.load(Ordering::Acquire),
                    era: ledger.era(),
                    window: if is_covered || absent!(PageOfNew) { without_reserve(ledger.window()) } else { NONE },
                }
            }
        }
    }

    fn era(&self) -> u64 {
        control().map_or(0, |control| control.window().1)
    }

    fn grant(&self, now: i64, tick_end: i64, goes_back: bool) -> Result<Grant, Error> {
        let control = match attached() {
            Attachment::Ledger(control, _) => control,
            Attachment::Foreign(_) => return self.grant_without_ledger(now),
            Attachment::Unknown => unreachable!("generators begin after the session has joined the ledger"),
        };
        let is_in = |window: Window| now >= window.from && now < window.until && tick_end <= window.skip;
        let (window, era) = control.window();
        let (grant, mark) = if is_in(without_reserve(window)) {
            (Grant::Window(without_reserve(window), era), mark_of(window))
        } else {
            recovery::refuse(self.function);
            // The server may have been promoted since this session began.
            open(control, self.node)?;
            // While granted time remains, nobody waits for the session that asks for more.
            let writer = if is_in(window) { control.try_writer() } else { Some(control.writer()) };
            let extended = writer.map(|writer| extend(control, &writer, now, tick_end, goes_back));
            report_clock_step(control, control.with_lock(Guarded::clock_step));
            match extended {
                Some(Ok(extended)) => extended,
                Some(Err(error)) if !is_in(window) => return Err(error),
                // The next attempt may succeed.
                _ => (Grant::Window(window, era), mark_of(window)),
            }
        };
        if let Grant::Window(..) = grant {
            mark_page::cover(Some(control), self.node, mark)?;
        }
        Ok(grant)
    }
}

impl SharedLedger {
    /// Grants time to a session that met the control block of another version, which it cannot read: only the page of the
    /// database knows of this time. So its mark has to be above any that a ledger knows of.
    fn grant_without_ledger(&self, now: i64) -> Result<Grant, Error> {
        recovery::refuse(self.function);
        if GRANTED_UNTIL.get() <= now {
            let known = mark_page::known(self.node)?.own.map_or(i64::MIN, |(instant, _)| instant.saturating_add(1));
            let known = if absent!(ForeignMark) { i64::MIN } else { known };
            let mark = now.saturating_add(AHEAD + MARGIN).max(known);
            mark_page::cover(None, self.node, mark)?;
            GRANTED_UNTIL.set(mark - MARGIN);
        }
        let until = if recovery::is_in_progress() { now.saturating_add(AHEAD) } else { GRANTED_UNTIL.get() };
        Ok(Grant::Window(Window { until, ..Window::ALL }, 0))
    }
}

/// Extends the ledger for a tick. Returns the answer, and the mark that the page needs before anybody acts on it.
fn extend(control: &Control, writer: &Writer, now: i64, tick_end: i64, goes_back: bool) -> Result<(Grant, i64), Error> {
    let Some(ledger) = control.ledger() else { unreachable!("generators begin after the ledger was opened") };
    let window = without_reserve(ledger.window());
    if now >= window.from && now < window.until && tick_end <= window.skip {
        // Another session was faster.
        return Ok((Grant::Window(window, ledger.era()), ledger.mark()));
    }
    let granted = if goes_back && now < ledger.window().from {
        ledger.covered(now, tick_end)
    } else {
        ledger.extended(now, tick_end).map(|new| (new, without_reserve(new.window())))
    };
    let (new, window) = match granted {
        Ok(granted) => granted,
        Err(until) => return Ok((Grant::After(until), i64::MIN)),
    };
    writer.replace(new, None)?;
    control.last_seen.fetch_max(now, Ordering::AcqRel);
    Ok((Grant::Window(window, new.era()), new.mark()))
}

/// No time at all.
const NONE: Window = Window { from: i64::MIN, until: i64::MIN, skip: i64::MAX };

fn above_now(floor: i64) -> Start {
    let present = if absent!(MemoryPresent) { i64::MIN } else { clock::now().saturating_add(1) };
    Start { free_from: present.max(floor), resumed: None }
}

/// Returns the window without its end, in which sessions ask for more time if there is any.
fn without_reserve(window: Window) -> Window {
    if window.until >= window.skip { window } else { Window { until: window.until - RESERVE, ..window } }
}

/// Returns the mark that belongs to the end of a window.
fn mark_of(window: Window) -> i64 {
    window.until.saturating_add(MARGIN)
}
