//! PostgreSQL's side of leases: which session asks, and which leases shared memory holds.

use std::sync::atomic::Ordering;

use flake_core::ledger::pool::{Claim, Decision, Holder, Lease, MOST_LEASES, Request};
use flake_core::ledger::protocol;
use flake_core::{IdSource, Layout, Lots, Part, Ticks};

use super::backend::Backend;
use super::control::Control;
use super::memory::memory;
use super::node::part_to_read;
use crate::error::Error;
use crate::postgres::memory::with_room;
use crate::postgres::{client, recovery, role};
use crate::settings;

/// Leases a lot of a layout, which it also returns, in these ticks. `token` is the one of the lease that is renewed.
pub fn lease(layout: &'static Layout, ticks: Ticks, token: Option<u64>) -> Result<(Decision, Lots), Error> {
    recovery::refuse(c"flake_lease()");
    let mut backend = Backend::new()?;
    let lots = lots_of(layout, protocol::part(&mut backend)?)?;
    let request = Request {
        key: layout.key(),
        ticks,
        lots,
        database: recovery::database(),
        most: settings::max_leases(),
        token,
        by: Holder {
            role: role::of_session().to_u32(),
            pid: client::pid(),
            address: client::padded(&client::address()),
            application: client::padded(client::application()),
        },
    };
    let decision = protocol::lease(&mut backend, &request)?;
    if let Some(control) = memory().map(|memory| memory.control) {
        let counter = match decision {
            Decision::Granted { .. } => &control.counters.lease_grants,
            Decision::Refused(refusal, _) => &control.counters.lease_refusals[refusal as usize],
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    Ok((decision, lots))
}

/// Ends the lease with a token at an instant, or where its last grant begins. Returns whether there was one.
pub fn release(layout: &'static Layout, token: u64, at: Option<i64>) -> Result<bool, Error> {
    recovery::refuse(c"flake_release()");
    let claim = Claim { key: layout.key(), database: recovery::database(), token };
    protocol::release(&mut Backend::new()?, claim, at)
}

/// Returns the lots of a layout on this server, as far as this session knows its node and turn.
pub fn lots(layout: &Layout) -> Result<Lots, Error> {
    lots_of(layout, part_to_read()?)
}

fn lots_of(layout: &Layout, of_sessions: Part) -> Result<Lots, Error> {
    Ok(Lots::new(layout, Part::of_lessees(of_sessions.node(), of_sessions.turn()))?)
}

/// Returns the leases in shared memory that have not ended.
pub fn leases(now: i64) -> Vec<Lease> {
    let Some(memory) = memory() else { return Vec::new() };
    let room = with_room(MOST_LEASES);
    lasting(memory.control, &memory.leases.lock()[..], now, room)
}

/// Returns them, or None while a session writes the file. Monitoring must not wait for a disk.
pub fn leases_at_once(now: i64) -> Option<Vec<Lease>> {
    let memory = memory()?;
    let room = with_room(MOST_LEASES);
    Some(lasting(memory.control, &memory.leases.try_lock()?[..], now, room))
}

/// Copies leases that a lock guards, to where there is room for all of them.
fn lasting(control: &Control, leases: &[Lease], now: i64, mut room: Vec<Lease>) -> Vec<Lease> {
    let ledger = control.with_state(|state| state.ledger);
    ledger.iter().for_each(|ledger| room.extend(ledger.pool.lasting(leases, now)));
    room
}
