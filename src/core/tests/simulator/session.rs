//! Sessions: what they do in the names of users, and how their transactions and they themselves end.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use flake_core::ledger::protocol;
use flake_core::{FinalProgress, Node, Slot};

use crate::host::{Dead, Hosted, Terminated, Trouble};
use crate::layouts::{self, KINDS, Outcome, Own, SECOND};
use crate::machine::{Promise, SLOTS};
use crate::oracle::{Made, time};
use crate::play::{Play, tell};
use crate::wal::Record;

/// A session while nothing happens in it.
pub struct Session {
    pub database: usize,
    pub has_joined: bool,
    own: [Option<Own>; KINDS],
    /// It is in the middle of making an ID.
    is_making: bool,
    pub transaction: Option<Transaction>,
}

/// A transaction.
#[derive(Default)]
pub struct Transaction {
    /// It ends by itself with the statement.
    pub ends_by_itself: bool,
    /// Which of the IDs it has made.
    made: Vec<usize>,
    /// It has dropped and created the extension, which it sees like this.
    private: Option<Arc<flake_core::ledger::host::Page>>,
    is_creator: bool,
}

/// How long sessions wait for the clock, as long as a server may have to wait for another one.
const PATIENCE: i64 = 8 * SECOND;

impl Session {
    fn new(database: usize) -> Self {
        Self { database, has_joined: false, own: Default::default(), is_making: false, transaction: None }
    }

    fn final_progress(&self) -> Option<Vec<FinalProgress>> {
        (!self.is_making).then(|| self.own.iter().flatten().map(Own::final_progress).collect())
    }
}

impl Hosted {
    /// Reads the clock, and has the transaction hold horizons.
    fn admit(&self) -> (i64, Result<(), i64>) {
        use flake_core::ledger::host::Server;
        self.interruptible();
        let now = self.now();
        (now, self.memory.transactions[self.slot].admit(&self.memory.shared.announced, now))
    }
}

impl Play {
    /// Has a session do something, which others may see the middle of. Does nothing where there is no session to do it.
    pub fn act(
        self: &Arc<Self>,
        (at, slot): (usize, usize),
        stop: Option<u16>,
        act: impl FnOnce(&mut Hosted, &mut Session) -> Result<(), Trouble>,
    ) -> Option<Result<(), Trouble>> {
        let (mut session, mut host) = {
            let mut world = self.world();
            let machine = &mut world.machines[at];
            let mut session = machine.sessions[slot].take().or_else(|| {
                let database = machine.database[slot];
                Some(Box::new(Session::new(database)))
            })?;
            let transaction = session
                .transaction
                .get_or_insert_with(|| Transaction { ends_by_itself: true, ..Transaction::default() });
            let host = Hosted {
                play: Arc::clone(self),
                at,
                slot,
                database: session.database,
                node: Node::new(machine.node.0, machine.node.1).unwrap(),
                boot: machine.boot,
                memory: Arc::clone(&machine.memory),
                offset: Arc::clone(&machine.offset),
                control: Arc::default(),
                private: transaction.private.take(),
            };
            (session, host)
        };
        host.control = self.runs(at, slot, stop);
        let result = catch_unwind(AssertUnwindSafe(|| act(&mut host, &mut session)));
        let result = match result {
            Ok(result) => {
                if let Some(transaction) = &mut session.transaction {
                    transaction.private = host.private.take();
                    match result {
                        Ok(()) if !transaction.ends_by_itself => {}
                        _ => self.end_transaction(at, slot, &mut session, result.is_ok()),
                    }
                }
                self.world().machines[at].sessions[slot] = Some(session);
                Some(result)
            }
            Err(payload) if payload.is::<Dead>() => None,
            Err(payload) if payload.is::<Terminated>() => {
                self.end_transaction(at, slot, &mut session, false);
                self.leave(&mut host, &session);
                None
            }
            Err(payload) => {
                let text = payload.downcast_ref::<String>().cloned();
                let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                self.world().fail(format!("the protocol panics: {}", text.unwrap_or_default()));
                None
            }
        };
        if let Some(Err(Trouble::Fault(fault))) = result {
            self.world().fail(format!("a session finds a fault: {fault:?}"));
        }
        self.rests(&host.control);
        result
    }

    /// A session leaves the ledger, as it exits.
    fn leave(self: &Arc<Self>, host: &mut Hosted, session: &Session) {
        if !session.has_joined {
            return;
        }
        let progress = session.final_progress();
        let left = catch_unwind(AssertUnwindSafe(|| protocol::leave(host, progress.as_deref(), true)));
        if let Err(payload) = left
            && !payload.is::<Dead>()
        {
            self.world().fail("the protocol panics when a session leaves".to_owned());
        }
    }

    /// A session makes IDs. Returns how many.
    pub fn make(
        self: &Arc<Self>,
        (at, slot): (usize, usize),
        (kind, count): (usize, usize),
        waits: bool,
        stop: Option<u16>,
    ) -> usize {
        {
            let world = self.world();
            let machine = &world.machines[at];
            if !machine.makes_ids() || machine.wal.databases[machine.database[slot]].0.is_none() {
                return 0;
            }
        }
        let (made, until) = (Cell::new(0), Cell::new(i64::MIN));
        let result = self.act((at, slot), stop, |host, session| {
            while made.get() < count {
                match self.make_one(host, session, kind)? {
                    Outcome::Made(_) => made.set(made.get() + 1),
                    Outcome::Over => break,
                    Outcome::After(instant) => {
                        use flake_core::ledger::host::Server;
                        let left = instant.saturating_sub(host.now());
                        until.set(instant);
                        if !waits || left > PATIENCE {
                            break;
                        }
                        self.pass(left.max(0));
                    }
                }
            }
            Ok(())
        });
        let mut world = self.world();
        let (name, made, kind) = (world.name(at), made.get(), layouts::name(kind));
        let and = match result {
            Some(Err(trouble)) => format!(", and then fails: {trouble:?}"),
            Some(Ok(())) if made < count => format!(", and would have to wait until {}", time(until.get())),
            None => ", and ends".to_owned(),
            _ => String::new(),
        };
        tell!(world, "server {name}: session {slot} makes {made} IDs of {kind}{and}");
        made
    }

    fn make_one(self: &Arc<Self>, host: &mut Hosted, session: &mut Session, kind: usize) -> Result<Outcome, Trouble> {
        use flake_core::ledger::host::Server;
        if !session.has_joined {
            protocol::join(host)?;
            session.has_joined = true;
        }
        session.is_making = true;
        let (node, slot) = (host.node, Slot::new(host.slot as u32, SLOTS as u32).unwrap());
        let own = session.own[kind].take().map_or_else(|| Own::begin(host, kind, node, slot), Ok);
        let mut own = match own {
            Ok(own) => own,
            Err(trouble) => {
                session.is_making = false;
                return Err(trouble);
            }
        };
        let (read, in_recovery) = (Cell::new((0, 0)), Cell::new(false));
        let outcome = own.next(host, kind, |host| {
            let (now, admitted) = host.admit();
            read.set((self.time(), now));
            in_recovery.set(host.lock(|state| state.ledger.is_some_and(|ledger| ledger.in_recovery())));
            (now, admitted)
        });
        session.own[kind] = Some(own);
        session.is_making = false;
        if let Ok(Outcome::Made(id)) = outcome {
            let mut world = self.world();
            let steps: Vec<i64> = world.machines.iter().map(|machine| machine.last_step).collect();
            let machine = &world.machines[host.at];
            let promise = machine.promises.iter().find(|promise| {
                promise.node == machine.node
                    && promise.database.is_none_or(|database| database == session.database)
                    && !promise.waits_for.contains(&host.slot)
                    && id.start < promise.instant
            });
            let is_below = promise.map(|promise| format!("an ID of {} is below {}", time(id.start), time(promise.instant)));
            let (time, clock) = read.get();
            let transaction = session.transaction.get_or_insert_default();
            let made = Made {
                server: host.at,
                name: machine.name,
                slot: host.slot,
                kind,
                database: session.database,
                number: machine.wal.numbers[session.database],
                node: machine.node,
                life: machine.life,
                in_recovery: in_recovery.get() || machine.recovers(),
                branch: machine.branch,
                record: usize::MAX,
                time,
                clock,
                of_creator: transaction.is_creator,
                id,
            };
            transaction.made.push(world.oracle.made.len());
            let wrong = world.oracle.made(made, &steps);
            if let Some(wrong) = is_below.or(wrong) {
                world.fail(wrong);
            }
        }
        outcome
    }

    /// A session's transaction ends.
    fn end_transaction(&self, at: usize, slot: usize, session: &mut Session, commits: bool) {
        let Some(transaction) = session.transaction.take() else { return };
        let time = self.time();
        let mut world = self.world();
        let world = &mut *world;
        let machine = &mut world.machines[at];
        if transaction.is_creator {
            machine.recreating = None;
        }
        if commits && !machine.recovers() && !(transaction.made.is_empty() && !transaction.is_creator) {
            if transaction.is_creator {
                machine.wal.write(time, Record::Extension(session.database, transaction.private));
            }
            let record = machine.wal.write(time, Record::Commit);
            machine.wal.flush(record);
            for &made in &transaction.made {
                world.oracle.made[made].record = record;
            }
        }
        machine.memory.transactions[slot].end(None);
        for promise in &mut machine.promises {
            promise.waits_for.retain(|&waits_for| waits_for != slot);
        }
    }

    /// A session begins a transaction.
    pub fn begin_transaction(&self, at: usize, slot: usize) {
        let mut world = self.world();
        let machine = &mut world.machines[at];
        let database = machine.database[slot];
        if !machine.is_up {
            return;
        }
        let session = machine.sessions[slot].get_or_insert_with(|| Box::new(Session::new(database)));
        if session.transaction.is_none() {
            session.transaction = Some(Transaction::default());
            tell!(world, "server {}: session {slot} begins a transaction", world.name(at));
        }
    }

    /// It ends it.
    pub fn commit_or_roll_back(&self, at: usize, slot: usize, commits: bool) {
        let session = self.world().machines[at].sessions[slot].take();
        let Some(mut session) = session else { return };
        if session.transaction.is_some() {
            self.end_transaction(at, slot, &mut session, commits);
            let mut world = self.world();
            let how = if commits { "commits" } else { "rolls back" };
            tell!(world, "server {}: session {slot} {how}", world.name(at));
        }
        self.world().machines[at].sessions[slot] = Some(session);
    }

    /// A session drops and creates the extension, or creates it where it does not exist, in a transaction.
    pub fn recreate(self: &Arc<Self>, at: usize, slot: usize, stop: Option<u16>) {
        {
            let mut world = self.world();
            let machine = &mut world.machines[at];
            let database = machine.database[slot];
            let exists = machine.wal.databases[database].0.is_some();
            let is_known = !exists || machine.has_looked[database];
            if !machine.is_up || machine.recovers() || machine.recreating.is_some() || !is_known {
                return;
            }
            machine.recreating = Some((slot, database));
        }
        self.begin_transaction(at, slot);
        let result = self.act((at, slot), stop, |host, session| {
            if let Some(transaction) = &mut session.transaction {
                transaction.is_creator = true;
            }
            host.private = Some(Arc::new(flake_core::ledger::host::Page { bytes: None, last_value: None }));
            protocol::record_mark(host)
        });
        let mut world = self.world();
        if result.is_none() {
            world.machines[at].recreating = None;
        }
        tell!(world, "server {}: session {slot} drops and creates the extension: {result:?}", world.name(at));
    }

    /// The session of a slot exits.
    pub fn exit(self: &Arc<Self>, at: usize, slot: usize, stop: Option<u16>) {
        let Some(mut session) = self.world().machines[at].sessions[slot].take() else { return };
        self.end_transaction(at, slot, &mut session, false);
        {
            let mut world = self.world();
            tell!(world, "server {}: session {slot} exits", world.name(at));
            world.machines[at].sessions[slot] = Some(session);
        }
        self.act((at, slot), stop, |host, session| {
            self.leave(host, session);
            session.has_joined = false;
            Ok(())
        });
        self.world().machines[at].sessions[slot] = None;
    }

    /// The clock is accepted.
    pub fn accept(self: &Arc<Self>, at: usize, slot: usize, stop: Option<u16>) {
        if !self.can_operate(at, slot) {
            return;
        }
        let from = Cell::new((0, false));
        let result = self.act((at, slot), stop, |host, _| {
            from.set(protocol::accept(host)?);
            Ok(())
        });
        let mut world = self.world();
        let machine = &mut world.machines[at];
        if from.get().1 {
            machine.last_step = self.time();
        }
        let (name, from) = (machine.name, time(from.get().0));
        tell!(world, "server {name}: session {slot} accepts the clock: {result:?}, IDs from {from} on");
    }

    /// flake_start_above is called.
    pub fn start_above(self: &Arc<Self>, at: usize, slot: usize, ahead: i64, stop: Option<u16>) {
        if !self.can_operate(at, slot) {
            return;
        }
        let instant = {
            let mut world = self.world();
            world.machines[at].may_wait = true;
            let instant = self.time() + world.machines[at].offset() + ahead;
            world.above = world.above.max(instant);
            instant
        };
        let result = self.act((at, slot), stop, |host, session| {
            protocol::start_above(host, instant)?;
            let mut world = self.world();
            let busy = world.running.iter().filter(|running| running.at == at).map(|running| running.slot);
            let busy: Vec<usize> = busy.filter(|&other| other != slot).collect();
            let machine = &mut world.machines[at];
            let is_open = |other: &usize| machine.sessions[*other].as_ref().is_some_and(|one| one.transaction.is_some());
            let waits_for: Vec<usize> =
                (0..SLOTS).filter(|other| *other != slot && (busy.contains(other) || is_open(other))).collect();
            let record = machine.wal.flushed;
            let is_private = session.transaction.as_ref().is_some_and(|transaction| transaction.is_creator);
            let of_database = (!is_private).then_some(Some(session.database));
            for database in [None].into_iter().chain(of_database) {
                let waits_for = waits_for.clone();
                machine.promises.push(Promise { instant, database, node: machine.node, record, waits_for });
            }
            Ok(())
        });
        let mut world = self.world();
        tell!(world, "server {}: session {slot} has IDs start above {}: {result:?}", world.name(at), time(instant));
    }

    /// A horizon is asked for.
    pub fn ask(self: &Arc<Self>, at: usize, slot: usize, stop: Option<u16>) {
        if !self.can_operate(at, slot) {
            return;
        }
        let horizon = Cell::new(i64::MIN);
        let result = self.act((at, slot), stop, |host, session| {
            if !session.has_joined {
                protocol::join(host)?;
                session.has_joined = true;
            }
            horizon.set(protocol::bind(host)?);
            host.memory.shared.announced.fetch_max(horizon.get(), Ordering::SeqCst);
            Ok(())
        });
        let mut world = self.world();
        let horizon = time(horizon.get());
        tell!(world, "server {}: session {slot} asks for a horizon: {result:?}, {horizon}", world.name(at));
    }

    /// Whether a session can call functions of operators, in a transaction of its own.
    fn can_operate(&self, at: usize, slot: usize) -> bool {
        let world = self.world();
        let machine = &world.machines[at];
        let exists = machine.wal.databases[machine.database[slot]].0.is_some();
        machine.is_up && !machine.recovers() && exists
    }
}
