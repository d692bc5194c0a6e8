//! Sessions: the calls of users, and the ends of transactions and sessions.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flake_core::horizon::transactions::SessionTransactions;
use flake_core::ledger::protocol;
use flake_core::{Answer, FinalProgress, Node, Slot};

use crate::host::{Dead, Hosted, Terminated, Trouble};
use crate::layouts::{self, Id, KINDS, Own, SECOND, SNO};
use crate::machine::SLOTS;
use crate::oracle::{Made, time};
use crate::play::{Play, tell};
use crate::procs::Look;

/// A session between its calls.
pub struct Session {
    pub database: usize,
    pub has_joined: bool,
    pub own: [Option<Own>; KINDS],
    /// The session stopped in the middle of making a sno.
    is_making: bool,
    pub transaction: Option<Transaction>,
    pub past: SessionTransactions,
}

/// A transaction.
#[derive(Default)]
pub struct Transaction {
    /// It ends with the statement that began it.
    pub ends_by_itself: bool,
    /// Its transaction ID, once it has written.
    pub xid: Option<u64>,
    /// The rows that it has inserted.
    pub rows: Option<usize>,
    /// It began on a standby.
    pub is_read_only: bool,
    /// The snapshot of all its statements, if they share one.
    pub look: Option<Look>,
    /// Its last horizon by that snapshot, and how often the clock had been accepted by then.
    pub last: Option<(u64, i64)>,
    /// The page as only this transaction sees it, which has dropped and created the extension.
    pub private: Option<Arc<flake_core::ledger::host::Page>>,
    pub is_creator: bool,
}

/// How long sessions wait for the clock: as long as a server may have to wait for another one.
const PATIENCE: i64 = 8 * SECOND;

impl Session {
    fn new(database: usize) -> Self {
        Self {
            database,
            has_joined: false,
            own: Default::default(),
            is_making: false,
            transaction: None,
            past: SessionTransactions::before_joining(),
        }
    }

    fn final_progress(&self) -> Option<Vec<FinalProgress>> {
        (!self.is_making).then(|| self.own.iter().flatten().filter_map(Own::final_progress).collect())
    }
}

impl Hosted {
    /// Reads the clock, and makes the transaction hold horizons.
    fn admit(&self, past: &SessionTransactions) -> (i64, Result<(), i64>) {
        use flake_core::ledger::host::Server;
        self.interruptible();
        let now = self.now();
        (now, past.admit(self, now))
    }
}

impl Play {
    /// Runs a call of a session, which may stop in the middle. Does nothing if the session cannot be used.
    pub fn act(
        self: &Arc<Self>,
        (at, slot): (usize, usize),
        stop: Option<u16>,
        act: impl FnOnce(&mut Hosted, &mut Session) -> Result<(), Trouble>,
    ) -> Option<Result<(), Trouble>> {
        let (mut session, mut host) = {
            let mut world = self.world();
            let machine = &mut world.machines[at];
            let is_read_only = machine.recovers();
            let mut session = machine.sessions[slot].take().or_else(|| {
                let database = machine.database[slot];
                Some(Box::new(Session::new(database)))
            })?;
            let transaction = session.transaction.get_or_insert_with(|| Transaction {
                ends_by_itself: true,
                is_read_only,
                ..Transaction::default()
            });
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
                xid: None,
                has_looked_in: None,
            };
            (session, host)
        };
        host.control = self.runs(at, slot, stop);
        let result = catch_unwind(AssertUnwindSafe(|| {
            let result = act(&mut host, &mut session);
            if let Some(transaction) = &mut session.transaction {
                transaction.private = host.private.take();
                if transaction.ends_by_itself || result.is_err() {
                    self.end_transaction(&host, &mut session, result.is_ok());
                }
            }
            result
        }));
        let result = match result {
            Ok(result) => {
                let machine = &mut self.world().machines[at];
                // The server knows the content of the page by now. After a promotion, it must read the page again.
                machine.has_looked[session.database] |= result.is_ok() && host.has_looked_in == Some(machine.branch);
                machine.sessions[slot] = Some(session);
                Some(result)
            }
            Err(payload) if payload.is::<Dead>() => None,
            Err(payload) if payload.is::<Terminated>() => {
                self.leave(&mut host, &mut session);
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

    /// A session leaves the ledger at exit.
    fn leave(self: &Arc<Self>, host: &mut Hosted, session: &mut Session) {
        let left = catch_unwind(AssertUnwindSafe(|| {
            self.end_transaction(host, session, false);
            if session.has_joined {
                protocol::leave(host, session.final_progress().as_deref());
            }
        }));
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
                let answer = self.make_one(host, session, kind)?;
                if let Some((instant, _)) = answer.wait() {
                    use flake_core::ledger::host::Server;
                    let left = instant.saturating_sub(host.now());
                    until.set(instant);
                    if !waits || left > PATIENCE {
                        break;
                    }
                    self.pass(left.max(0));
                    continue;
                }
                match answer {
                    Answer::Issue(_) => made.set(made.get() + 1),
                    Answer::Exhausted => break,
                    _ => panic!("the ledger was not asked"),
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

    fn make_one(
        self: &Arc<Self>,
        host: &mut Hosted,
        session: &mut Session,
        kind: usize,
    ) -> Result<Answer<Id>, Trouble> {
        self.join(host, session)?;
        session.is_making = kind >= SNO;
        let slot = Slot::new(host.slot as u32, SLOTS as u32).unwrap();
        let own = session.own[kind].take().map_or_else(|| Own::begin(host, kind, slot), Ok);
        let mut own = match own {
            Ok(own) => own,
            Err(trouble) => {
                session.is_making = false;
                return Err(trouble);
            }
        };
        let past = &session.past;
        let read = Cell::new((0, 0));
        let outcome = own.next(host, kind, |host| {
            let (now, admitted) = host.admit(past);
            read.set((self.time(), now));
            (now, admitted)
        });
        session.own[kind] = Some(own);
        session.is_making = false;
        if let Ok(Answer::Issue(id)) = outcome {
            let mut world = self.world();
            let machine = &world.machines[host.at];
            let maker = (host.slot, session.database);
            let (time, clock) = read.get();
            let is_below =
                machine.promises.iter().find_map(|promise| promise.broken_by(maker, id.start, id.end, clock));
            let is_creator = session.transaction.as_ref().is_some_and(|transaction| transaction.is_creator);
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
                time,
                clock,
                upgrade: machine.upgrade,
                of_creator: is_creator,
                id,
            };
            let number = world.oracle.made.len();
            let wrong = world.oracle.made(made);
            if let Some(wrong) = is_below.or(wrong) {
                world.fail(wrong);
            }
            drop(world);
            self.insert(host, session, id.end, Some(number));
        }
        outcome
    }

    /// A session begins a transaction.
    pub fn begin_transaction(&self, at: usize, slot: usize) {
        let mut world = self.world();
        let machine = &mut world.machines[at];
        let database = machine.database[slot];
        if !machine.is_up {
            return;
        }
        let is_read_only = machine.recovers();
        let session = machine.sessions[slot].get_or_insert_with(|| Box::new(Session::new(database)));
        if session.transaction.is_none() {
            session.transaction = Some(Transaction { is_read_only, ..Transaction::default() });
            tell!(world, "server {}: session {slot} begins a transaction", world.name(at));
        }
    }

    /// The session in a slot exits.
    pub fn exit(self: &Arc<Self>, at: usize, slot: usize, stop: Option<u16>) {
        {
            let mut world = self.world();
            if world.machines[at].sessions[slot].is_none() {
                return;
            }
            tell!(world, "server {}: session {slot} exits", world.name(at));
        }
        self.act((at, slot), stop, |host, session| {
            self.leave(host, session);
            session.has_joined = false;
            Ok(())
        });
        self.world().machines[at].sessions[slot] = None;
    }
}
