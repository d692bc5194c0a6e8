//! Lessees: applications that lease workers of the pool from any of the servers.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use flake_core::ledger::pool::{Claim, Decision, Holder, Refusal, Request};
use flake_core::ledger::protocol;
use flake_core::{Lots, Numbers, Part};

use crate::layouts::{self, Id, SECOND};
use crate::machine::Promise;
use crate::oracle::{Leased, Made, time};
use crate::play::{Play, tell};
use crate::session::Session;

/// How many leases a database can have.
const MOST: usize = 3;

/// A lease as its lessee knows it: the last token, and which grants the oracle knows.
#[derive(Debug, Clone)]
pub struct Lessee {
    kind: usize,
    database: usize,
    token: u64,
    grants: Vec<usize>,
}

impl Play {
    /// A lessee asks a server for a lease in a session, or renews an earlier lease. Returns the answer.
    pub fn lease(
        self: &Arc<Self>,
        (at, slot): (usize, usize),
        kind: usize,
        renews: Option<usize>,
        stop: Option<u16>,
    ) -> Option<Decision> {
        let (last, promises) = {
            let world = self.world();
            let machine = &world.machines[at];
            let exists = machine.wal.databases[machine.database[slot]].0.is_some();
            if !machine.makes_ids() || !exists || !layouts::is_leasable(kind) {
                return None;
            }
            let of_kind = world.lessees.iter().filter(|lessee| lessee.kind == kind);
            let last = renews.and_then(|which| of_kind.rev().nth(which).cloned());
            (last, machine.promises.clone())
        };
        self.world().leases = true;
        let answer = Cell::new(None);
        let result = self.act((at, slot), stop, |host, session| {
            let part = protocol::part(host)?;
            let part = Part::of_lessees(part.node(), part.turn());
            let lots = Lots::new(layouts::layout(kind), part).unwrap();
            let request = Request {
                key: kind as u64,
                ticks: layouts::layout(kind).ticks(),
                lots,
                database: session.database as u32,
                most: MOST,
                token: last.as_ref().map(|last| last.token),
                by: Holder::NOBODY,
            };
            let granted = protocol::lease(host, &request)?;
            answer.set(Some(granted));
            if let Decision::Granted { lot, token, from, to, .. } = granted {
                let grants = last.map(|last| last.grants).unwrap_or_default();
                let lessee = Lessee { kind, database: session.database, token, grants };
                self.has_leased((host.at, host.slot), session, lessee, lots.lot(lot), from..to, &promises);
            }
            Ok(())
        });
        let world = &mut *self.world();
        let (name, kind) = (world.name(at), layouts::name(kind));
        let what = if renews.is_some() { "renews a lease" } else { "leases a worker" };
        let granted = match answer.get() {
            Some(Decision::Granted { lot, until, .. }) => format!("lot {lot} until {}", time(until)),
            other => format!("{other:?}"),
        };
        tell!(world, "server {name}: session {slot} {what} of {kind}: {result:?}, {granted}");
        answer.get()
    }

    /// Tells the oracle of a lease.
    fn has_leased(
        &self,
        (at, slot): (usize, usize),
        session: &Session,
        mut lessee: Lessee,
        lot: (u64, Numbers),
        ticks: Range<u64>,
        promises: &[Promise],
    ) {
        let (mut world, kind, now) = (self.world(), lessee.kind, self.time());
        lessee.grants.push(world.oracle.leased.len());
        world.lessees.push(lessee);
        let machine = &world.machines[at];
        let [start, end] = [ticks.start, ticks.end].map(|tick| layouts::layout(kind).start_of(tick));
        let is_below = |promise: &&Promise| {
            promise.database.is_none_or(|database| database == session.database) && start < promise.instant
        };
        let below = promises.iter().find(is_below);
        let below = below.map(|promise| format!("a lease from {} is below {}", time(start), time(promise.instant)));
        let made = Made {
            server: at,
            name: machine.name,
            slot,
            kind,
            database: session.database,
            number: machine.wal.numbers[session.database],
            node: machine.node,
            life: machine.life,
            branch: machine.branch,
            record: usize::MAX,
            time: now,
            clock: now + machine.offset(),
            upgrade: machine.upgrade,
            of_creator: session.transaction.as_ref().is_some_and(|transaction| transaction.is_creator),
            is_lease: true,
            id: Id { bits: 0, start, end },
        };
        let wrong = world.oracle.leased(Leased { made, lot });
        if let Some(wrong) = below.or(wrong) {
            world.fail(wrong);
        }
    }

    /// A lessee releases one of the last leases of a kind. It has made IDs up to the current instant, or none in the last grant.
    pub fn release(
        self: &Arc<Self>,
        (at, slot): (usize, usize),
        (kind, which): (usize, usize),
        is_unused: bool,
        stop: Option<u16>,
    ) {
        let lessee = {
            let world = self.world();
            let machine = &world.machines[at];
            let exists = machine.wal.databases[machine.database[slot]].0.is_some();
            let lessee = world.lessees.iter().filter(|lessee| lessee.kind == kind).rev().nth(which).cloned();
            let Some(lessee) = lessee.filter(|_| machine.makes_ids() && exists) else { return };
            lessee
        };
        // The lessee stops before it says so.
        let layout = layouts::layout(kind);
        let last = (!is_unused).then(|| layout.tick_at(self.time()).unwrap());
        let after = last.map(|last| layout.start_of(last + 1));
        for &grant in &lessee.grants {
            let mut world = self.world();
            let id = &mut world.oracle.leased[grant].made.id;
            id.end = id.end.min(after.unwrap_or(if Some(&grant) == lessee.grants.last() { id.start } else { id.end }));
        }
        let answer = Cell::new(None);
        let result = self.act((at, slot), stop, |host, _| {
            let claim = Claim { key: kind as u64, database: lessee.database as u32, token: lessee.token };
            answer.set(Some(protocol::release(host, claim, after)?));
            Ok(())
        });
        let world = &mut *self.world();
        let (name, kind) = (world.name(at), layouts::name(kind));
        tell!(world, "server {name}: session {slot} releases a lease of {kind}: {result:?}, {:?}", answer.get());
    }

    /// Checks that lessees soon get leases again on a server whose clock was never ahead.
    pub fn leases_come_back(self: &Arc<Self>, at: usize) {
        let is_of_interest = {
            let world = self.world();
            world.leases && !world.machines.iter().any(|machine| machine.may_wait)
        };
        if !is_of_interest || self.world().failure.is_some() {
            return;
        }
        let until = self.time() + 200 * SECOND;
        loop {
            match self.lease((at, 0), 1, None, None) {
                Some(Decision::Granted { .. }) => return,
                Some(Decision::Refused(Refusal::Lost, _)) | None => return,
                Some(Decision::Refused(_, by)) => self.pass(by),
            }
            let mut world = self.world();
            if world.failure.is_some() {
                return;
            }
            if self.time() > until {
                let name = world.name(at);
                return world.fail(format!("server {name} grants no leases"));
            }
        }
    }
}
