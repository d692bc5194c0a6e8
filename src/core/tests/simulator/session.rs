//! Sessions: the calls of users, and the ends of transactions and sessions.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use flake_core::ledger::durable::file::newest;
use flake_core::ledger::host::{Fault, Server};
use flake_core::ledger::time::begin;
use flake_core::ledger::time::shared::generation_of;
use flake_core::watermark::transactions::SessionTransactions;
use flake_core::{Answer, Node};

use crate::host::{Dead, Hosted, Terminated, Trouble};
use crate::layouts::{self, Id, KINDS, Own, SECOND, SNO};
use crate::machine::{Machine, Promise};
use crate::oracle::{Made, time};
use crate::play::{Play, tell};
use crate::procs::Look;

/// A session between its calls.
pub struct Session {
    pub database: usize,
    pub has_joined: bool,
    pub own: [Option<Own>; KINDS],
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
    /// Its last watermark by that snapshot, and the era.
    pub last: Option<(u64, i64)>,
    /// The page as only this transaction sees it, which has dropped and created the extension.
    pub private: Option<Arc<flake_core::ledger::host::Page>>,
    pub is_creator: bool,
}

/// How far ahead of flake's time a tick may be for which sessions wait.
const PATIENCE: i64 = 8 * SECOND;

impl Session {
    fn new(database: usize) -> Self {
        Self {
            database,
            has_joined: false,
            own: Default::default(),
            transaction: None,
            past: SessionTransactions::before_joining(),
        }
    }
}

impl Play {
    /// Runs a call of a session, which may stop in the middle. Does nothing if the session cannot be used.
    pub fn act(
        self: &Arc<Self>,
        (at, proc): (usize, usize),
        stop: Option<u16>,
        act: impl FnOnce(&mut Hosted, &mut Session) -> Result<(), Trouble>,
    ) -> Option<Result<(), Trouble>> {
        let (mut session, mut host) = {
            let mut world = self.world();
            let machine = &mut world.machines[at];
            let is_read_only = machine.recovers();
            let mut session = machine.sessions[proc].take().or_else(|| {
                let database = machine.database[proc];
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
                proc,
                database: session.database,
                node: Node::new(machine.node.0, machine.node.1).unwrap(),
                memory: Arc::clone(&machine.memory),
                offset: Arc::clone(&machine.offset),
                control: Arc::default(),
                private: transaction.private.take(),
                xid: None,
                has_looked_in: None,
                has_lock: Cell::default(),
            };
            (session, host)
        };
        host.control = self.runs(at, proc, stop);
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
                machine.sessions[proc] = Some(session);
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
        if let Some(Err(Trouble::Fault(fault))) = result
            && !matches!(fault, Fault::Lead(..) | Fault::BothLead(..))
        {
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
                begin::leave(host);
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
        (at, proc): (usize, usize),
        (kind, count): (usize, usize),
        waits: bool,
        stop: Option<u16>,
    ) -> usize {
        {
            let world = self.world();
            let machine = &world.machines[at];
            if !machine.makes_ids() || machine.wal.databases[machine.database[proc]].0.is_none() {
                return 0;
            }
        }
        let (made, until) = (Cell::new(0), Cell::new(i64::MIN));
        let result = self.act((at, proc), stop, |host, session| {
            while made.get() < count {
                let answer = self.make_one(host, session, kind)?;
                if let Some((instant, _)) = answer.wait() {
                    let left = instant.saturating_sub(host.time(host.memory.shared.era(), kind >= SNO));
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
        tell!(world, "server {name}: session {proc} makes {made} IDs of {kind}{and}");
        made
    }

    fn make_one(
        self: &Arc<Self>,
        host: &mut Hosted,
        session: &mut Session,
        kind: usize,
    ) -> Result<Answer<Id>, Trouble> {
        self.join(host, session)?;
        let proc = host.proc as u32;
        let own = session.own[kind].take().map_or_else(|| Own::begin(host, kind, proc), Ok);
        let mut own = own?;
        let past = &session.past;
        let read = Cell::new((0, 0));
        let outcome = own.next(host, kind, |host, era, now| {
            host.interruptible();
            read.set((self.time(), now));
            past.admit(host, era, now)
        });
        session.own[kind] = Some(own);
        if let Ok(Answer::Issue(id)) = outcome {
            let mut world = self.world();
            let acceptances = world.acceptances(host.at);
            let machine = &world.machines[host.at];
            let maker = (host.proc, session.database);
            let (time, clock) = read.get();
            let is_below = machine.promises.iter().find_map(|promise| promise.broken_by(maker, id.start));
            // The tick in which that instant is may be in use.
            let in_force = |(_, known): &&(Promise, u64)| *known == acceptances;
            let is_below = is_below.or_else(|| machine.start.as_ref().filter(in_force)?.0.broken_by(maker, id.end - 1));
            let unreserved = self.unreserved(host, machine, clock);
            let is_creator = session.transaction.as_ref().is_some_and(|transaction| transaction.is_creator);
            let made = Made {
                server: host.at,
                name: machine.name,
                proc: host.proc,
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
            if let Some(wrong) = is_below.or(wrong).or(unreserved) {
                world.fail(wrong);
            }
            drop(world);
            self.insert(host, session, id.end, Some(number));
        }
        outcome
    }

    /// Rule 2: says whether an instant at which an ID was made is not reserved in the file and in the page.
    fn unreserved(&self, host: &Hosted, machine: &Machine, instant: i64) -> Option<String> {
        let generation = generation_of(host.memory.shared.era());
        let of_file = newest(machine.file.as_ref()?.bytes()).ok()?.0.reserved.until[generation];
        let of_page = machine.wal.reserved_in(host.database).until[generation];
        let until = if host.private.is_some() { of_file } else { of_file.min(of_page) };
        (until <= instant).then(|| format!("an ID of {} is made before its time is reserved", time(instant)))
    }

    /// A session begins a transaction.
    pub fn begin_transaction(&self, at: usize, proc: usize) {
        let mut world = self.world();
        let machine = &mut world.machines[at];
        let database = machine.database[proc];
        if !machine.is_up {
            return;
        }
        let is_read_only = machine.recovers();
        let session = machine.sessions[proc].get_or_insert_with(|| Box::new(Session::new(database)));
        if session.transaction.is_none() {
            session.transaction = Some(Transaction { is_read_only, ..Transaction::default() });
            tell!(world, "server {}: session {proc} begins a transaction", world.name(at));
        }
    }

    /// The session in a proc exits.
    pub fn exit(self: &Arc<Self>, at: usize, proc: usize, stop: Option<u16>) {
        {
            let mut world = self.world();
            if world.machines[at].sessions[proc].is_none() {
                return;
            }
            tell!(world, "server {}: session {proc} exits", world.name(at));
        }
        self.act((at, proc), stop, |host, session| {
            self.leave(host, session);
            session.has_joined = false;
            Ok(())
        });
        self.world().machines[at].sessions[proc] = None;
    }
}
