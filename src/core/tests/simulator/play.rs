//! Plays a story: decides which session runs next.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::baton::{Seat, hand_on};
use crate::draw::Chance;
use crate::host::{Control, Lock};
use crate::layouts::MORNING;
use crate::machine::Machine;
use crate::oracle::{Failure, Oracle};
use crate::rows::Row;
use crate::story::{Act, Event, Needs, Story};

pub const SERVERS: usize = 3;

/// A session that is running.
pub struct Running {
    pub at: usize,
    pub proc: usize,
    pub control: Arc<Control>,
    /// Where its thread waits, if it does.
    seat: Option<Arc<Seat>>,
    /// The lock that it waits for.
    lock: Option<Lock>,
}

/// The state of everything.
#[derive(Default)]
pub struct World {
    pub machines: Vec<Machine>,
    pub oracle: Oracle,
    pub running: Vec<Running>,
    pub events: Vec<(usize, Event)>,
    pub next_event: usize,
    /// The sentences of the story, if it is to be printed.
    pub told: Option<Vec<String>>,
    pub failure: Option<Failure>,
    /// How often the baton was passed on.
    pub switches: u64,
    /// How often a session was stopped at a point.
    pub stops: usize,
    /// The rows that transactions have inserted.
    pub rows: Vec<Row>,
    /// Counts snapshots, and commits that become visible.
    pub order: u64,
    numbers: u64,
    is_over: bool,
}

pub struct Play {
    world: Mutex<World>,
    time: AtomicI64,
    /// From which the next number for flake's time follows; 0 if it is not replaced.
    any_time: AtomicU64,
    /// Where the thread that waits for the end sits.
    ended: Arc<Seat>,
}

/// Adds a sentence to the story.
macro_rules! tell {
    ($world:expr, $($sentence:tt)+) => {
        let sentence = $world.told.is_some().then(|| format!($($sentence)+));
        if let Some(told) = &mut $world.told {
            told.extend(sentence);
        }
    };
}
pub(crate) use tell;

enum Next {
    Resume(Arc<Seat>),
    Event(usize, Event),
    /// All events have happened, and it remains to see that every server makes IDs again.
    Epilogue,
    End,
}

impl World {
    /// A number that is not used elsewhere.
    pub fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    pub fn name(&self, at: usize) -> char {
        self.machines[at].name
    }

    pub fn fail(&mut self, sentence: String) {
        self.failure.get_or_insert(Failure(sentence));
    }

    fn call(&mut self, which: usize) -> Next {
        let running = &mut self.running[which];
        running.lock = None;
        self.switches += 1;
        Next::Resume(running.seat.take().expect("a session that waits has a seat"))
    }

    fn is_free(&self, at: usize, lock: Lock) -> bool {
        let memory = &self.machines[at].memory;
        match lock {
            Lock::State => memory.state.try_lock().is_ok(),
            Lock::Writer => memory.writer.try_lock().is_ok(),
            Lock::Page(database) => memory.pages[database].try_lock().is_ok(),
        }
    }

    /// A stopped session that continues without an event.
    fn next_by_itself(&self) -> Option<usize> {
        let is_dead = |running: &Running| running.control.is_dead.load(Ordering::Relaxed);
        let has_lock = |running: &Running| running.lock.is_some_and(|lock| self.is_free(running.at, lock));
        self.running.iter().position(is_dead).or_else(|| self.running.iter().position(has_lock))
    }

    fn next(&mut self) -> Next {
        if self.failure.is_some() {
            self.running.iter().for_each(|running| running.control.is_dead.store(true, Ordering::Relaxed));
        }
        if let Some(which) = self.next_by_itself() {
            return self.call(which);
        }
        if self.failure.is_some() {
            return Next::End;
        }
        while let Some(&(at, event)) = self.events.get(self.next_event) {
            let needed = match event.needs() {
                Needs::Nothing => None,
                Needs::Session(proc) => self.running.iter().position(|one| (one.at, one.proc) == (at, proc)),
                Needs::AllSessions => self.running.iter().position(|one| one.at == at && one.lock.is_none()),
            };
            let Some(which) = needed else {
                self.next_event += 1;
                return Next::Event(at, event);
            };
            let control = &self.running[which].control;
            if let Event::Session(_, Act::GoOn, stop) = event {
                let stops_at = stop.map_or(0, |stop| control.points.load(Ordering::Relaxed) + u64::from(stop));
                control.stops_at.store(stops_at, Ordering::Relaxed);
                self.next_event += 1;
            } else {
                control.stops_at.store(0, Ordering::Relaxed);
                if matches!(event, Event::Session(_, Act::Kill, _) | Event::Restart(_)) {
                    control.is_terminated.store(true, Ordering::Relaxed);
                }
            }
            if self.running[which].lock.is_some() {
                // It could not continue.
                self.next_event += usize::from(!matches!(event, Event::Session(_, Act::GoOn, _)));
                continue;
            }
            let (proc, name) = (self.running[which].proc, self.name(at));
            tell!(self, "server {name}: session {proc} goes on");
            return self.call(which);
        }
        if let Some(which) = self.running.iter().position(|one| one.lock.is_none()) {
            self.running[which].control.stops_at.store(0, Ordering::Relaxed);
            let (at, proc) = (self.running[which].at, self.running[which].proc);
            tell!(self, "server {}: session {proc} goes on", self.name(at));
            return self.call(which);
        }
        if let Some(running) = self.running.first() {
            let sentence = format!("session {} of server {} waits for ever", running.proc, self.name(running.at));
            self.fail(sentence);
            return self.next();
        }
        if std::mem::replace(&mut self.is_over, true) { Next::End } else { Next::Epilogue }
    }
}

impl Play {
    fn new(story: &Story, is_told: bool) -> Arc<Self> {
        let mut world = World { events: story.events.clone(), told: is_told.then(Vec::new), ..World::default() };
        for name in ('a'..).take(SERVERS) {
            let life = world.number();
            world.machines.push(Machine::new(name, life));
        }
        Arc::new(Self {
            world: Mutex::new(world),
            time: AtomicI64::new(MORNING),
            any_time: AtomicU64::new(story.any_time),
            ended: Seat::new(),
        })
    }

    /// Plays a story, and returns the state at its end.
    pub fn of(story: &Story, is_told: bool) -> World {
        let play = Self::new(story, is_told);
        play.begin();
        play.next_run();
        play.ended.wait();
        std::mem::take(&mut *play.world())
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The real time.
    pub fn time(&self) -> i64 {
        self.time.load(Ordering::Relaxed)
    }

    pub fn pass(&self, by: i64) {
        self.time.fetch_add(by, Ordering::Relaxed);
    }

    /// Returns flake's time, or any number in its place: no ID may come twice or below a promise whatever it is.
    pub fn any_time(&self, time: i64) -> i64 {
        let seed = self.any_time.load(Ordering::Relaxed);
        if seed == 0 {
            return time;
        }
        let mut chance = Chance(seed);
        let by = match chance.below(16) {
            0 => -(chance.below(5000) as i64),
            1 => chance.below(5000) as i64,
            2 => -chance.length(),
            3 => chance.length(),
            _ => 0,
        };
        self.any_time.store(chance.0 | 1, Ordering::Relaxed);
        time + by
    }

    /// Whether sessions get any number for flake's time.
    pub fn has_any_time(&self) -> bool {
        self.any_time.load(Ordering::Relaxed) != 0
    }

    /// Runs the next events on this thread until the baton is passed on.
    fn next_run(self: &Arc<Self>) {
        loop {
            let next = self.world().next();
            match next {
                Next::Resume(seat) => return seat.call(),
                Next::Event(at, event) => self.event(at, event),
                Next::Epilogue => self.epilogue(),
                Next::End => return self.ended.call(),
            }
        }
    }

    /// Stops a session at a point or at a lock, and lets others run.
    pub fn stop(self: &Arc<Self>, at: usize, proc: usize, point: Option<&str>, lock: Option<Lock>) {
        let seat = Seat::new();
        {
            let mut world = self.world();
            let name = world.name(at);
            match point {
                Some(point) => {
                    world.stops += 1;
                    tell!(world, "server {name}: session {proc} is stopped where it {point}");
                }
                None => {
                    tell!(world, "server {name}: session {proc} waits for the lock {lock:?}");
                }
            }
            let running = world.running.iter_mut().find(|one| (one.at, one.proc) == (at, proc)).expect("it runs");
            (running.seat, running.lock) = (Some(Arc::clone(&seat)), lock);
        }
        let play = Arc::clone(self);
        hand_on(move || play.next_run());
        seat.wait();
    }

    /// Registers a session as running. Returns what other threads need to control it.
    pub fn runs(&self, at: usize, proc: usize, stop: Option<u16>) -> Arc<Control> {
        let control = Arc::new(Control::default());
        control.stops_at.store(stop.map_or(0, u64::from), Ordering::Relaxed);
        let running = Running { at, proc, control: Arc::clone(&control), seat: None, lock: None };
        self.world().running.push(running);
        control
    }

    /// The session is not running any more.
    pub fn rests(&self, control: &Arc<Control>) {
        self.world().running.retain(|running| !Arc::ptr_eq(&running.control, control));
    }
}
