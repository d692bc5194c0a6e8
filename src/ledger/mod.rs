//! The ledger as the sessions of this server share it: who may use which time, and what ended sessions have used.
#![allow(unsafe_code, reason = "PostgreSQL's locks, and memory that they guard")]

mod control;
mod mark_file;

use std::cell::Cell;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::record::Left;
use flake_core::session::{Beginning, Grant, Shared};
use flake_core::timeline::AHEAD;
use flake_core::{Error, Ledger, Node, Start, Trace, Traces, Window};
use pgrx::pg_sys::panic::ErrorReport;
use pgrx::prelude::*;
use pgrx::{PgLogLevel, function_name};

pub use self::control::Control;
use self::control::{Guarded, VERSION};
use crate::error::OrRaise;
use crate::clock;
use crate::session::generators as generate;
use crate::ledger::mark_file as mark;
use crate::postgres::shared_memory as memory;
use crate::postgres::slot as place;
use crate::postgres::recovery;
use crate::postgres::settings;
use crate::sno;

/// The mark is moved when less than this is left, by one session while the others go on. In microseconds.
const RESERVE: i64 = 1_000_000;

/// What this session has of the shared memory.
#[derive(Clone, Copy)]
enum Attached {
    Not,
    /// The control block, and the traces of this slot where there is memory for them.
    Ledger(&'static Control, *mut Traces),
    /// The control block of another version of the library.
    Foreign(&'static Control),
    /// Nothing.
    Alone,
}

thread_local! {
    static ATTACHED: Cell<Attached> = const { Cell::new(Attached::Not) };
    /// Whether this session counts as one that has generators.
    static JOINED: Cell<bool> = const { Cell::new(false) };
}

/// Where the library is preloaded, the ledger is born with the server.
pub fn preload() {
    memory::reserve(|| {
        if let Ok(control) = memory::control(Control::new) {
            control.guard(|guarded| guarded.born = clock::now());
        }
    });
}

/// The control block; none where this session has to do without.
pub fn control() -> Option<&'static Control> {
    match attached(false) {
        Attached::Ledger(control, _) => Some(control),
        _ => None,
    }
}

fn attached(with_traces: bool) -> Attached {
    let mut attached = ATTACHED.get();
    if let Attached::Not = attached {
        attached = match memory::control(Control::new) {
            Err(reason) => {
                warn(&format!("no shared memory: {reason}"));
                Attached::Alone
            }
            Ok(control) if control.version != VERSION => {
                warn("another version of the library is in use");
                Attached::Foreign(control)
            }
            Ok(control) => {
                // SAFETY: the lock was initialized with its number.
                unsafe { pg_sys::LWLockRegisterTranche((*control.lock.get()).tranche.into(), c"FlakeLedger".as_ptr()) };
                Attached::Ledger(control, std::ptr::null_mut())
            }
        };
        ATTACHED.set(attached);
    }
    if let Attached::Ledger(control, traces) = attached
        && traces.is_null()
        && with_traces
    {
        let (slot, slots) = place::numbers();
        match memory::traces(&control.segment, slot as usize, slots as usize) {
            Ok(traces) => attached = Attached::Ledger(control, traces),
            Err(reason) => warn(&format!("no shared memory for it: {reason}")),
        }
        ATTACHED.set(attached);
    }
    attached
}

fn warn(reason: &str) {
    ErrorReport::new(
        PgSqlErrorCode::ERRCODE_WARNING,
        format!("flake goes on without its ledger in this session: {reason}"),
        function_name!(),
    )
    .set_detail("IDs start above the present instant, and are unique as long as the clock is not set back.")
    .set_hint("Restart the server; see max_connections and shared memory limits when it happens again.")
    .report(PgLogLevel::WARNING);
}

/// Opens the ledger of this server start, which goes on from what is on disk.
fn open(control: &Control) -> Result<(), Error> {
    if control.guard(|guarded| guarded.ledger.is_some() && !guarded.opened_in_recovery) {
        return Ok(());
    }
    let in_recovery = recovery::is_in_progress();
    let replayed = recovery::replayed_until();
    control.guard(|guarded| {
        if let Some(ledger) = guarded.ledger {
            if guarded.opened_in_recovery && !in_recovery {
                // Promoted: the primary may have made IDs up to the last commit that was replayed.
                guarded.replace(control, replayed.map_or(ledger, |instant| ledger.above(instant)))?;
                guarded.opened_in_recovery = false;
            }
            return Ok(());
        }
        let (mut ledger, mut left) = match mark::load()? {
            None => (Ledger::born(if guarded.born > 0 { guarded.born } else { clock::now() }), None),
            Some((place, record)) => {
                guarded.number = record.number;
                guarded.forced_place = place;
                let left = record.left.clone().filter(|left| Some(&left.boot) == mark::boot().as_ref());
                let timeline = record.timeline().unwrap_or_else(|| unreachable!("a record was read with its timeline"));
                (Ledger::reopened(timeline, left.as_ref().map(|left| left.free_from)), left)
            }
        };
        if let Some(instant) = replayed {
            ledger = ledger.above(instant);
            left = None;
        }
        guarded.store(&ledger, left, true)?;
        guarded.opened_at = ledger.low();
        guarded.opened_in_recovery = in_recovery;
        guarded.ledger = Some(ledger);
        guarded.clock_step();
        control.published.set(&ledger);
        Ok(())
    })
}

/// This session is about to have a generator: the ledger is opened, and will hear of its end.
pub fn join() -> Result<(), Error> {
    let joined = JOINED.get();
    let Attached::Ledger(control, _) = attached(!joined) else {
        leave_at_exit();
        return Ok(());
    };
    open(control)?;
    if joined {
        return Ok(());
    }
    control.guard(|guarded| {
        if let Some(ledger) = guarded.ledger
            && guarded.has_note
        {
            guarded.store(&ledger, None, false)?;
        }
        control.sessions.fetch_add(1, Ordering::AcqRel);
        Ok(())
    })?;
    leave_at_exit();
    Ok(())
}

fn leave_at_exit() {
    #[pg_guard]
    unsafe extern "C-unwind" fn leaving(_code: i32, _argument: pg_sys::Datum) {
        leave();
    }
    if !JOINED.replace(true) {
        // SAFETY: the callback lives as long as the library, which is never unloaded.
        unsafe { pg_sys::before_shmem_exit(Some(leaving), pg_sys::Datum::from(0)) };
    }
}

/// This session ends, its slot still its own: what its generators have used is left to those after it.
fn leave() {
    let traces: Option<Vec<(u64, u64, Trace)>> =
        generate::traces().and_then(|own| Some(own.into_iter().chain(sno::traces()?).collect()));
    let used = |mark: i64| match &traces {
        Some(traces) => traces.iter().map(|(_, _, trace)| trace.free_from()).max().unwrap_or(i64::MIN),
        // Ended in the middle of an ID; it cannot have been beyond the mark.
        None => mark,
    };
    match ATTACHED.get() {
        Attached::Ledger(control, place) => {
            control.guard(|guarded| {
                let Some(ledger) = guarded.ledger else { return };
                let free_from = used(ledger.mark());
                // SAFETY: the traces of this session's slot, which nobody else uses while it lives.
                match (unsafe { place.as_mut() }, &traces) {
                    (None, _) => {
                        control.unkept.fetch_max(free_from, Ordering::AcqRel);
                    }
                    (Some(place), None) => place.abandon(ledger.era(), free_from),
                    (Some(place), Some(traces)) => {
                        traces.iter().for_each(|(key, era, trace)| place.leave(*era, *key, *trace));
                    }
                }
                let of_this_era = traces.iter().flatten().filter(|(_, era, _)| *era == ledger.era());
                let present = of_this_era.map(|(_, _, trace)| trace.start).max().unwrap_or(i64::MIN);
                if present <= clock::now() {
                    control.seen.fetch_max(present, Ordering::AcqRel);
                }
                guarded.free_from = guarded.free_from.max(free_from);
                let is_last = control.sessions.fetch_sub(1, Ordering::AcqRel) == 1;
                if is_last && let Some(boot) = mark::boot() {
                    let unkept = control.unkept.load(Ordering::Acquire);
                    let free_from = ledger.low().max(guarded.free_from).max(unkept);
                    // Without the note the next start is above the mark.
                    let _ = guarded.store(&ledger, Some(Left { boot, free_from }), false);
                }
            });
        }
        Attached::Foreign(control) => {
            control.unkept.fetch_max(used(clock::now()), Ordering::AcqRel);
        }
        Attached::Not | Attached::Alone => {}
    }
}

/// This server's number. Sessions with different ones could make the same IDs, so the settings are pinned by the first
/// session that asks; later changes are a WARNING until the next start.
pub fn node() -> Result<Node, Error> {
    let (id, count) = settings::node();
    let Some(control) = control() else { return Node::new(id, count) };
    let node = Node::new(id, count);
    let (pinned_id, pinned_count) = control.guard(|guarded| {
        // An impossible pair is not pinned, so that it can be corrected by a reload.
        if guarded.node.1 == 0 && node.is_ok() {
            guarded.node = (id, count);
        }
        guarded.node
    });
    if pinned_count == 0 {
        return node;
    }
    if (pinned_id, pinned_count) != (id, count) {
        let message = format!(
            "flake.node_id = {id} and flake.node_count = {count} are not in force; this server is node {pinned_id} of \
             {pinned_count}",
        );
        ErrorReport::new(PgSqlErrorCode::ERRCODE_WARNING, message, function_name!())
            .set_hint("Restart the server to bring the new settings into force.")
            .report(PgLogLevel::WARNING);
    }
    Node::new(pinned_id, pinned_count)
}

/// How long a wait until this instant is owed to a restart and not to the clock.
pub fn restart_wait(until: i64) -> Duration {
    let owed = control().is_some_and(|control| control.guard(|guarded| until <= guarded.opened_at));
    Duration::from_micros(if owed { AHEAD as u64 } else { 0 })
}

/// Writes to the log when the clock was set, once for each time.
pub fn watch_clock(control: &Control) {
    let step = control.locked(false, Guarded::clock_step).unwrap_or(0);
    report_step(control, step);
}

fn report_step(control: &Control, step: i64) {
    if step == 0 {
        return;
    }
    control.counters.clock_steps.fetch_add(1, Ordering::Relaxed);
    let by = Duration::from_micros(step.unsigned_abs());
    let direction = if step < 0 { "back" } else { "ahead" };
    log(format!("flake: the clock was set {direction} by {by:?}"));
}

/// Goes on at the present clock, though IDs of later times have been made; returns from when.
pub fn accept() -> Result<i64, Error> {
    let Some(control) = control() else { return Ok(clock::now()) };
    open(control)?;
    let now = clock::now();
    let (from, is_new) = control.guard(|guarded| {
        let Some(ledger) = guarded.ledger else { return Ok((now, false)) };
        let (new, from) = ledger.accepted(now);
        if new != ledger {
            guarded.replace(control, new)?;
            guarded.opened_at = i64::MIN;
        }
        control.seen.fetch_min(from, Ordering::AcqRel);
        Ok((from, new != ledger))
    })?;
    if is_new {
        log("flake: the present clock was accepted, though IDs of later times have been made".to_owned());
    }
    Ok(from)
}

fn log(message: String) {
    ErrorReport::new(PgSqlErrorCode::ERRCODE_SUCCESSFUL_COMPLETION, message, function_name!()).report(PgLogLevel::LOG);
}

/// What flake_stats shows of the ledger.
pub struct View {
    pub node: (u32, u32),
    pub ledger: Option<Ledger>,
    pub sessions: u32,
}

/// The ledger as it is.
pub fn view(control: &Control) -> View {
    control.guard(|guarded| View {
        node: guarded.node,
        ledger: guarded.ledger,
        sessions: control.sessions.load(Ordering::Relaxed),
    })
}

/// The ledger, for this session's generators.
pub struct Own;

impl Shared for Own {
    fn begin(&self, key: u64) -> Beginning {
        let above_now = |control: Option<&Control>, low: i64| {
            let unkept = control.map_or(i64::MIN, |control| control.unkept.load(Ordering::Acquire));
            Start { free_from: clock::now().saturating_add(1).max(unkept).max(low), resumed: None }
        };
        let alone =
            |control| Beginning { start: above_now(control, i64::MIN), seen: i64::MIN, era: 0, window: Window::ALL };
        match ATTACHED.get() {
            Attached::Not | Attached::Alone => alone(None),
            Attached::Foreign(control) => alone(Some(control)),
            Attached::Ledger(control, traces) => {
                open(control).or_raise();
                let ledger = control.guard(|guarded| guarded.ledger);
                let Some(ledger) = ledger else { return alone(Some(control)) };
                // SAFETY: the traces of this session's slot, which nobody else uses while it lives.
                let start = match unsafe { traces.as_ref() } {
                    None => above_now(Some(control), ledger.low()),
                    Some(traces) => traces.start(&ledger, key, control.unkept.load(Ordering::Acquire)),
                };
                let seen = control.seen.load(Ordering::Acquire);
                Beginning { start, seen, era: ledger.era(), window: soft(ledger.window()) }
            }
        }
    }

    fn era(&self) -> u64 {
        control().map_or(0, |control| control.published.get().1)
    }

    fn grant(&self, now: i64, tick_end: i64, back: bool) -> Result<Grant, Error> {
        let Some(control) = control() else { return Ok(Grant::Window(Window::ALL, 0)) };
        let is_in = |window: Window| now >= window.from && now < window.until && tick_end <= window.skip;
        let (window, era) = control.published.get();
        if is_in(soft(window)) {
            return Ok(Grant::Window(soft(window), era));
        }
        recovery::refuse_or_raise(c"flake_next()");
        // Somebody else may be moving the mark; until the old one is reached nobody has to wait for that.
        let extended = control.locked(!is_in(window), |guarded| {
            let Some(ledger) = guarded.ledger else { return Ok((Grant::Window(Window::ALL, 0), 0)) };
            if is_in(soft(ledger.window())) {
                return Ok((Grant::Window(soft(ledger.window()), ledger.era()), 0));
            }
            let granted = if back && now < ledger.window().from {
                ledger.covered(now, tick_end)
            } else {
                ledger.extended(now, tick_end).map(|new| (new, soft(new.window())))
            };
            let (new, window) = match granted {
                Ok(granted) => granted,
                Err(until) => return Ok((Grant::After(until), guarded.clock_step())),
            };
            guarded.replace(control, new)?;
            control.seen.fetch_max(now, Ordering::AcqRel);
            Ok((Grant::Window(window, new.era()), guarded.clock_step()))
        });
        match extended {
            None => Ok(Grant::Window(window, era)),
            Some(Ok((grant, step))) => {
                report_step(control, step);
                Ok(grant)
            }
            // There is time until the mark, and maybe the next attempt succeeds.
            Some(Err(_)) if is_in(window) => Ok(Grant::Window(window, era)),
            Some(Err(error)) => Err(error),
        }
    }
}

/// The window without its last part, in which more is asked for where there is more.
fn soft(window: Window) -> Window {
    if window.until >= window.skip { window } else { Window { until: window.until - RESERVE, ..window } }
}
