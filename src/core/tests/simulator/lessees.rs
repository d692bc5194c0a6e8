//! Lessees: applications that lease workers of the pool from any of the servers.

use std::cell::Cell;
use std::sync::Arc;

use flake_core::Part;
use flake_core::ledger::pool::{Decision, Holder, Request};
use flake_core::ledger::protocol;

use crate::layouts::{self, Id, SECOND};
use crate::oracle::{Leased, Made, time};
use crate::play::{Play, tell};

/// A lease as its lessee knows it.
#[derive(Debug, Clone, Copy)]
pub struct Lessee {
    pub kind: usize,
    pub worker: u32,
    pub until: i64,
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
            let of_kind: Vec<_> = world.lessees.iter().filter(|lessee| lessee.kind == kind).collect();
            let last = renews.and_then(|which| of_kind.iter().rev().nth(which).map(|one| (one.worker, one.until)));
            (last, machine.promises.clone())
        };
        self.world().leases = true;
        let answer = Cell::new(None);
        let result = self.act((at, slot), stop, |host, session| {
            let part = protocol::part(host)?;
            let part = Part::of_lessees(part.node(), part.turn());
            let request = Request {
                key: kind as u64,
                ticks: layouts::layout(kind).ticks(),
                workers: part.numbers(layouts::layout(kind)).unwrap().0,
                database: session.database as u32,
                last,
                by: Holder { role: 0, application: [0; 64] },
            };
            let granted = protocol::lease(host, &request)?;
            answer.set(Some(granted));
            if let Decision::Granted { worker, from, to, until } = granted {
                let mut world = self.world();
                world.lessees.push(Lessee { kind, worker, until });
                let machine = &world.machines[host.at];
                let layout = layouts::layout(kind);
                let (start, end) = (layout.start_of(from), layout.start_of(to));
                let below = promises.iter().find(|promise| {
                    promise.database.is_none_or(|database| database == session.database) && start < promise.instant
                });
                let below =
                    below.map(|promise| format!("a lease from {} is below {}", time(start), time(promise.instant)));
                let now = self.time();
                let made = Made {
                    server: host.at,
                    name: machine.name,
                    slot: host.slot,
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
                let wrong = world.oracle.leased(Leased { made, worker: worker.into() });
                if let Some(wrong) = below.or(wrong) {
                    world.fail(wrong);
                }
            }
            Ok(())
        });
        let world = &mut *self.world();
        let (name, kind) = (world.name(at), layouts::name(kind));
        let what = if last.is_some() { "renews a lease" } else { "leases a worker" };
        let granted = match answer.get() {
            Some(Decision::Granted { worker, until, .. }) => format!("worker {worker} until {}", time(until)),
            other => format!("{other:?}"),
        };
        tell!(world, "server {name}: session {slot} {what} of {kind}: {result:?}, {granted}");
        answer.get()
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
                Some(Decision::Wait(by)) => self.pass(by),
                Some(Decision::Exhausted(_)) => self.pass(SECOND),
                _ => return,
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
