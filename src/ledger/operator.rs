//! What an operator changes by hand: giving time back, and giving time up.

use std::sync::atomic::Ordering;
use std::time::Duration;

use flake_core::absent;
use flake_core::timeline::{AHEAD, MARGIN};

use super::attach::{Attachment, attach};
use super::control::Control;
use super::mark_page;
use super::node::node;
use super::open::open;
use crate::clock;
use crate::error::{Error, superuser_only};
use crate::postgres::timestamptz::Timestamptz;
use crate::postgres::{recovery, report};

/// Continues at the present clock although later IDs exist; returns the instant from which IDs can be made.
pub fn accept_clock() -> Result<i64, Error> {
    superuser_only("flake_accept_clock")?;
    recovery::refuse(c"flake_accept_clock()");
    let now = clock::now();
    let control = match attach()? {
        Attachment::Ledger(control, _) => control,
        Attachment::Foreign(header) => return Ok(now.max(header.foreign_floor.load(Ordering::Acquire))),
        Attachment::Unknown => unreachable!("the session has just attached"),
    };
    open(control, node()?)?;
    let writer = control.writer();
    let Some(ledger) = control.ledger() else { return Ok(now) };
    let (new, from) = ledger.accepted(now);
    let is_new = new != ledger;
    if is_new {
        // What sessions have used so far belongs to the stretches that are left behind; what they use from now on does not.
        writer.replace_and(new, None, |guarded| {
            (guarded.opened_at, guarded.free_from) = (i64::MIN, i64::MIN);
            control.unstored_floor.store(i64::MIN, Ordering::Release);
        })?;
    }
    drop(writer);
    let bound =
        if absent!(AcceptBound) { i64::MIN } else { control.bound.load(Ordering::Acquire).saturating_sub(MARGIN) };
    // Nothing else lowers it.
    if control.announced.fetch_min(from, Ordering::SeqCst).max(bound) > from && !absent!(AcceptWarned) {
        report::warning(
            "IDs can lie below horizons that were returned before".to_owned(),
            Some("The time that the clock was ahead by is given back, with the horizons in it."),
            "Have consumers read again from the time that this function returns.",
        );
    }
    // In this order: who sees the recall sees the lower instant.
    control.recalls.fetch_add(1, Ordering::SeqCst);
    control.last_seen.fetch_min(from, Ordering::AcqRel);
    if is_new {
        report::log("flake: the present clock was accepted although later IDs exist".to_owned());
    }
    let from = from.max(control.untraced_floor());
    if from.saturating_sub(now) > AHEAD + MARGIN {
        report::warning(
            format!("no IDs can be made before {}", Timestamptz::from_instant(from).to_text()),
            Some("The time until then may have been used without a break, as far as this server knows."),
            "Wait, or restart the server under a free flake.node_id.",
        );
    }
    Ok(from)
}

/// The beginning of what a server makes from now on.
pub struct Beginning {
    /// No tick that starts before this instant is used any more, once `granted_until` is over.
    pub floor: i64,
    /// Until this instant, sessions may use time that was granted to them before.
    pub granted_until: i64,
}

/// Has this server use no tick that starts before an instant. If that is further ahead of the clock than a restart may be,
/// it takes `force`.
pub fn start_above(instant: i64, force: bool) -> Result<Beginning, Error> {
    superuser_only("flake_start_above")?;
    recovery::refuse(c"flake_start_above()");
    let control = own_control()?;
    let node = node()?;
    open(control, node)?;
    let now = clock::now();
    let ahead = instant.saturating_sub(now);
    if ahead > AHEAD + MARGIN && !force && !absent!(StartForce) {
        return Err(Error::TooFarAhead { by: Duration::from_micros(ahead.unsigned_abs()), until: instant });
    }
    let writer = control.writer();
    let Some(ledger) = control.ledger() else { unreachable!("the ledger has just been opened") };
    if ledger.floor() >= instant {
        return Ok(Beginning { floor: now.max(ledger.floor()), granted_until: granted_before(control) });
    }
    let new = ledger.raised_to(instant);
    writer.replace(new, None)?;
    control.with_lock(|guarded| guarded.opened_at = guarded.opened_at.max(new.floor()));
    drop(writer);
    if !absent!(StartPage) {
        mark_page::cover(Some(control), node, new.mark())?;
    }
    report::log(format!(
        "flake: no IDs are made before {}, because flake_start_above was called",
        Timestamptz::from_instant(new.floor()).to_text()
    ));
    Ok(Beginning { floor: new.floor(), granted_until: granted_before(control) })
}

/// Sessions may use what was granted to them, and go on to the end of the tick that they are in.
fn granted_before(control: &Control) -> i64 {
    let longest_tick = if absent!(StartTick) { 0 } else { control.longest_tick.load(Ordering::Acquire) };
    control.with_lock(|guarded| guarded.granted_before).saturating_add(longest_tick)
}

fn own_control() -> Result<&'static Control, Error> {
    match attach()? {
        Attachment::Ledger(control, _) => Ok(control),
        Attachment::Foreign(header) => Err(Error::OtherVersion { found: header.version }),
        Attachment::Unknown => unreachable!("the session has just attached"),
    }
}
