//! A thousand nodes. Their sessions connect and exit, their clocks are set, and they crash and fail over. No ID is made twice, and
//! no session waits longer than docs/how-to/plan-a-deployment.md says.
//!
//! `FLAKE_SCALE_EVENTS` is the number of events. Each cluster has its own time, because clusters share nothing but the numbers of
//! nodes.

use std::mem::{replace, take};

use flake_core::ledger::durable::page::record_mark;
use flake_core::ledger::host::{Page, Server};
use flake_core::ledger::time::begin::parts;
use flake_core::ledger::time::operator::accept;
use flake_core::{Answer, IdSource, Layout, Node, Place, Resumable, Sno, SnoSource, built_in, lanes_of};

mod alone;
use alone::{Alone, NOON, SECOND};

/// How many sessions a server has.
const SESSIONS: usize = 8;

const NODES: u32 = 1000;
/// The two servers of the first clusters have one number; the other clusters have a number for each server.
const OF_ONE_NUMBER: u32 = 500;
const CLUSTERS: u32 = OF_ONE_NUMBER + (NODES - OF_ONE_NUMBER) / 2;
/// A standby lags by less than this.
const LAG: i64 = 1_900_000;
/// By how much the clocks of a cluster differ.
const SKEW: i64 = 20_000;
/// The tick of the layout whose waits are measured.
const TICK: i64 = 1000;

/// Draws random numbers by Vigna's splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % limit
    }

    /// Draws a number from minus a limit up to the limit.
    fn around(&mut self, limit: i64) -> i64 {
        self.below(2 * limit as u64 + 1) as i64 - limit
    }
}

#[derive(Default)]
struct Session {
    milliseconds: Option<Resumable<&'static Layout>>,
    hundredths: Option<Resumable<&'static Layout>>,
    snos: Option<Resumable<SnoSource>>,
}

/// All IDs that were made.
#[derive(Default)]
struct Made {
    of_layouts: [Vec<u64>; 2],
    snos: Vec<Sno>,
    /// The longest wait of a session.
    longest: i64,
    promotions: u32,
}

/// A primary, and what its standby has.
struct Cluster {
    primary: Alone,
    sessions: [Option<Session>; SESSIONS],
    numbers: [u32; 2],
    /// The time that passes; by how much the primary's clock is ahead of it; and when the latter was set.
    time: i64,
    offset: i64,
    stepped: i64,
    /// The page as it was before the last write, and when that was.
    before: Page,
    written: i64,
    /// The file in the base backup of the standby.
    copied: Option<Vec<u8>>,
    /// Whether something has happened since its last ID.
    has_changed: bool,
}

impl Cluster {
    fn new(number: u32) -> Self {
        let numbers = match number.checked_sub(OF_ONE_NUMBER) {
            None => [number; 2],
            Some(more) => [0, 1].map(|server| OF_ONE_NUMBER + 2 * more + server),
        };
        let mut new = Self {
            primary: Alone::new(),
            sessions: Default::default(),
            numbers,
            time: NOON,
            offset: 0,
            stepped: NOON,
            before: Page::default(),
            written: NOON,
            copied: None,
            has_changed: false,
        };
        new.primary.node = Node::new(numbers[0], NODES).unwrap();
        // The extension was created some time before.
        record_mark(&mut new.primary).unwrap();
        new.before = new.primary.page.clone();
        new.pass(10 * SECOND);
        new
    }

    fn pass(&mut self, by: i64) {
        self.time += by;
        self.primary.now.set(self.time + self.offset);
        self.primary.monotonic.set(self.time);
    }

    fn step_clock(&mut self, by: i64) {
        self.offset += by;
        self.stepped = self.time;
        self.pass(0);
    }

    fn accept_clock(&mut self) {
        self.stepped = self.time;
        accept(&mut self.primary).unwrap();
    }

    fn restart(&mut self) {
        self.sessions = Default::default();
        self.primary = replace(&mut self.primary, Alone::new()).restarted();
    }

    /// The primary is lost, and the standby is promoted. It lacks the last page if it lagged and the clock was not set meanwhile.
    fn fail_over(&mut self, skew: i64, made: &mut Made) {
        let lags = self.time - self.written < LAG && self.time - self.stepped > 10 * SECOND;
        let page = if lags { self.before.clone() } else { self.primary.page.clone() };
        let file = self.copied.take();
        made.promotions += 1;
        self.numbers.swap(0, 1);
        self.primary = replace(&mut self.primary, Alone::new()).promoted();
        self.primary.page = page;
        self.primary.random.set(u64::from(made.promotions) << 8);
        self.primary.node = Node::new(self.numbers[0], NODES).unwrap();
        self.primary.file.replace(file);
        self.sessions = Default::default();
        self.offset += skew;
        self.stepped = self.time;
        self.pass(0);
    }

    /// Makes an ID as soon as that is possible, in a new session if there is none.
    fn make(&mut self, proc: usize, kind: u64, made: &mut Made) {
        // An event is over when the measured layout has made an ID.
        let kind = if self.has_changed { 2 } else { kind };
        let (began, page) = (self.time, self.primary.page.clone());
        let mut session = self.sessions[proc].take().unwrap_or_default();
        match kind {
            0 => {
                let sno = self.next(proc, &mut session.snos, SnoSource { partition: Some(7) }, 0);
                made.snos.push(sno);
            }
            1 => {
                let id = self.next(proc, &mut session.hundredths, built_in("sonyflake").unwrap(), || 0);
                made.of_layouts[1].push(id);
            }
            _ => {
                let id = self.next(proc, &mut session.milliseconds, built_in("twitter").unwrap(), || 0);
                made.of_layouts[0].push(id);
                made.longest = made.longest.max(self.time - began);
                self.has_changed = false;
            }
        }
        self.sessions[proc] = Some(session);
        if self.primary.page != page {
            (self.before, self.written) = (page, self.time);
        }
    }

    fn next<S: IdSource>(
        &mut self,
        proc: usize,
        own: &mut Option<Resumable<S>>,
        source: S,
        argument: S::Argument,
    ) -> S::Id {
        let mut generator = own.take().unwrap_or_else(|| {
            let lanes = lanes_of(&source, parts(&mut self.primary).unwrap()).unwrap();
            let place = Place::find(&self.primary, &source, lanes, lanes[0].of(proc as u32), 1).unwrap();
            Resumable::begin(&mut self.primary, source, &place).unwrap()
        });
        loop {
            let answer = generator.next(&mut self.primary, |_, _, _| Ok(()), argument).unwrap();
            if let Answer::Issue(id) = answer {
                *own = Some(generator);
                return id;
            }
            let Some((until, _)) = answer.wait() else { panic!("neither an ID nor a wait") };
            let left = until - self.primary.time(self.primary.shared().era(), source.goes_back());
            assert!(left < SECOND, "{left} microseconds to wait");
            self.pass(left.max(1));
        }
    }

    /// Lets an event happen from time to time, and sessions make IDs, some of them within a tick. Returns the number of events.
    fn live(&mut self, chance: &mut Chance, made: &mut Made) -> u64 {
        let what = chance.below(400);
        self.has_changed |= what < 16;
        match what {
            0..6 => self.step_clock(chance.around(3 * SECOND)),
            6 => self.step_clock(chance.around(60 * SECOND)),
            7 | 8 => self.step_clock(-self.offset),
            9 if self.numbers[0].is_multiple_of(8) => self.accept_clock(),
            10..14 => self.restart(),
            14 | 15 => self.fail_over(chance.around(SKEW), made),
            16 => self.copied = self.primary.file.borrow().clone(),
            _ => {}
        }
        self.primary.writes.take();
        let events = 1 + chance.below(60);
        for _ in 0..events {
            let proc = chance.below(SESSIONS as u64) as usize;
            if chance.below(4) == 0 {
                self.sessions[proc] = None;
            } else {
                self.make(proc, chance.below(16), made);
            }
            self.pass(chance.below(30) as i64);
        }
        self.pass(chance.below(40_000) as i64);
        1 + events
    }
}

/// Returns how many IDs occur more than once.
fn twice<I: Ord>(ids: &mut [I]) -> usize {
    ids.sort_unstable();
    ids.windows(2).filter(|pair| pair[0] == pair[1]).count()
}

#[test]
fn a_thousand_nodes_make_no_id_twice() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let wanted = number("FLAKE_SCALE_EVENTS").unwrap_or(2_000_000);
    let (mut chance, mut made, mut events) = (Chance(wanted), Made::default(), 0);
    let mut clusters: Vec<_> = (0..CLUSTERS).map(Cluster::new).collect();
    while events < wanted {
        for cluster in &mut clusters {
            events += cluster.live(&mut chance, &mut made);
        }
    }
    let [milliseconds, hundredths] = &mut made.of_layouts;
    let twice = [twice(milliseconds), twice(hundredths), twice(&mut take(&mut made.snos))];
    let ids = made.of_layouts.iter().map(Vec::len).sum::<usize>();
    println!("{events} events of {NODES} nodes, {} failovers, {ids} IDs, {} µs to wait", made.promotions, made.longest);
    assert_eq!(twice, [0; 3]);
    // While IDs lead the clock, a tick lasts twice as long.
    assert!(made.longest <= 2 * TICK, "a session has waited for {} microseconds", made.longest);
}
