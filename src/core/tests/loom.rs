//! Memory that sessions share without a lock, in every order that the memory model allows, with at most two preemptions of a
//! thread. These tests need `--cfg loom`: `scripts/test loom`.
#![cfg(loom)]

use std::sync::Mutex;

use flake_core::ledger::cursors::claims::{BUILT_IN, ServerCursors, claim};
use flake_core::ledger::cursors::line::LaneCursors;
use flake_core::ledger::host::Server;
use flake_core::ledger::time::shared::Shared;
use flake_core::ledger::time::state::State;
use flake_core::watermark::{NONE, ProcTransactions, Snapshot};
use flake_core::{Answer, Generator, IdSource, Lanes, Layout, Node, Part, SnoSource, built_in};
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicI64, Ordering, fence};
use loom::thread;

const DATABASE: u32 = 5;
/// Bounds this far apart are not remembered as one.
const FAR: i64 = 10_000;

/// Lets one thread write and another one read, in all orders. loom remembers only the last access when it looks for another order,
/// and misses some in which the main thread reads; the second model has those.
fn meet<M: Send + Sync + 'static, W: Send + 'static, R: Send + 'static>(
    memory: impl Fn() -> M + Copy + Send + Sync + 'static,
    write: impl Fn(&M) -> W + Copy + Send + Sync + 'static,
    read: impl Fn(&M) -> R + Copy + Send + Sync + 'static,
    check: impl Fn(W, R) + Copy + Send + Sync + 'static,
) {
    let mut model = Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let memory = Arc::new(memory());
        let writer = thread::spawn({
            let memory = memory.clone();
            move || write(&memory)
        });
        let seen = read(&memory);
        check(writer.join().unwrap(), seen);
    });
    model.check(move || {
        let memory = Arc::new(memory());
        let reader = thread::spawn({
            let memory = memory.clone();
            move || read(&memory)
        });
        let written = write(&memory);
        check(written, reader.join().unwrap());
    });
}

/// A proc, and the announced watermark.
struct Memory {
    proc: ProcTransactions,
    announced: AtomicI64,
}

impl Memory {
    fn new() -> Self {
        let memory = Self { proc: ProcTransactions::default(), announced: AtomicI64::new(i64::MIN) };
        memory.proc.begin(DATABASE);
        memory
    }

    /// A transaction makes IDs from an instant on, and does not end. Returns whether it may.
    fn make(&self, bound: i64) -> bool {
        self.proc.admit(&self.announced, bound, || {}).is_ok()
    }

    /// Asks for a watermark at an instant. Returns None if all retries failed.
    fn ask(&self, now: i64, database: u32) -> Option<i64> {
        let before = self.announced.fetch_max(now, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Some(self.proc.holds(&seeing(10), database)?.min(now.max(before)))
    }
}

/// A snapshot that sees the transactions before this one as ended.
fn seeing(before: u64) -> Snapshot<'static> {
    Snapshot { xmin: before, xmax: before, running: &[] }
}

/// Checks that an ID is not below a watermark.
fn check(made: Option<i64>, watermark: Option<i64>) {
    if let (Some(made), Some(watermark)) = (made, watermark) {
        assert!(watermark <= made, "an ID of the instant {made} lies below the watermark {watermark}");
    }
}

#[test]
fn a_first_id_and_a_watermark_that_meet_see_each_other() {
    meet(Memory::new, |memory| memory.make(100).then_some(100), |memory| memory.ask(200, DATABASE), check);
}

#[test]
fn a_covered_id_and_a_watermark_that_meet_see_each_other() {
    let memory = || {
        let memory = Memory::new();
        assert!(memory.make(150), "no watermark is announced, so the ID must be admitted");
        memory
    };
    let cover = |memory: &Memory| Some(if memory.proc.hold(&memory.announced, 100, || {}).is_ok() { 100 } else { 150 });
    meet(memory, cover, |memory| memory.ask(200, DATABASE), check);
}

#[test]
fn a_first_id_of_a_new_owner_holds_watermarks_of_its_own_database() {
    let make = |memory: &Memory| {
        memory.proc.begin(DATABASE + 1);
        memory.make(100).then_some(100)
    };
    meet(Memory::new, make, |memory| memory.ask(200, DATABASE + 1), check);
}

/// Transactions of a proc, each with its ID and its bound.
type Transactions = &'static [(u64, i64)];

/// A snapshot that sees transactions from `snapshot` on as running is used while the proc's owner ends transactions.
fn ends_beside(ended: Transactions, ending: Transactions, snapshot: u64) {
    let end = |memory: &Memory, (xid, bound): (u64, i64)| {
        assert!(memory.make(bound), "no watermark is announced, so the ID must be admitted");
        memory.proc.end(Some(xid), || {});
    };
    let (first, following) = ending.split_first().unwrap();
    let memory = move || {
        let memory = Memory::new();
        ended.iter().for_each(|one| end(&memory, *one));
        assert!(memory.make(first.1), "no watermark is announced, so the ID must be admitted");
        memory
    };
    let write = move |memory: &Memory| {
        memory.proc.end(Some(first.0), || {});
        following.iter().for_each(|one| end(memory, *one));
    };
    let known = ended.iter().chain([first]);
    let held = known.filter(|(xid, _)| *xid >= snapshot).map(|one| one.1).min().unwrap_or(NONE);
    meet(
        memory,
        write,
        move |memory| memory.proc.holds(&seeing(snapshot), DATABASE),
        move |(), holds| assert!(holds.is_none_or(|holds| holds <= held), "{holds:?} was read where {held} is held"),
    );
}

#[test]
fn a_transaction_that_commits_while_a_watermark_is_asked_for_is_not_missed() {
    ends_beside(&[], &[(10, 100)], 10);
}

#[test]
fn transactions_that_commit_one_after_the_other_are_not_missed() {
    ends_beside(&[], &[(10, 100), (11, FAR)], 10);
    for snapshot in [9, 10] {
        ends_beside(&[(9, 50)], &[(10, 100)], snapshot);
    }
    ends_beside(&[(9, 50)], &[(10, FAR)], 9);
    ends_beside(&[(9, FAR)], &[(10, 100)], 9);
    ends_beside(&[(9, FAR)], &[(10, FAR - 100)], 9);
}

#[test]
fn merged_transactions_are_not_missed() {
    for snapshot in [6, 7, 8, 9] {
        ends_beside(&[(6, FAR), (7, 2 * FAR), (8, 3 * FAR)], &[(9, 4 * FAR)], snapshot);
        ends_beside(&[(6, 4 * FAR), (7, 3 * FAR), (8, 2 * FAR)], &[(9, FAR)], snapshot);
    }
}

/// A beginning of a tick of twitter.
const TICK: i64 = 1_780_000_000_000_000;

/// A server whose sessions take IDs from one lane.
struct Cursors {
    shared: Shared,
    lines: Vec<LaneCursors>,
    state: Mutex<State>,
    claim: Option<usize>,
}

impl Server for Cursors {
    fn clock(&self) -> i64 {
        TICK
    }
    fn monotonic(&self) -> i64 {
        0
    }
    fn shared(&self) -> &Shared {
        &self.shared
    }
    fn lines(&self) -> &[LaneCursors] {
        &self.lines
    }
    fn lock<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.state.lock().unwrap())
    }
}

fn twitter() -> &'static Layout {
    built_in("twitter").unwrap()
}

/// One lane with two IDs in a tick.
fn one_lane() -> Lanes {
    let lanes = Lanes::new(twitter(), Part::whole(Node::new(0, 1).unwrap())).unwrap();
    Lanes { count: 1, steps: 1, ids_per_step: 2, ..lanes }
}

impl Cursors {
    fn new() -> Self {
        let (shared, lines) = (Shared::default(), vec![LaneCursors::default()]);
        let mut new = Self { shared, lines, state: Mutex::default(), claim: None };
        new.claim = claim(&new, 1, &one_lane(), BUILT_IN);
        new
    }

    /// A session of an era makes an ID of a tick that begins at its floor or later, as a session does that has read the clock before.
    fn make(&self, era: u64, floor: i64) -> Option<u64> {
        let mut generator = Generator::start(twitter(), &one_lane(), 0, floor);
        match generator.next(TICK + 1000, &ServerCursors::new(self, self.claim.unwrap(), era), || 0) {
            Answer::Issue(id) => Some(id),
            _ => None,
        }
    }
}

fn differ(one: Option<u64>, other: Option<u64>) {
    assert!(one.is_none() || one != other, "{one:?} was made twice");
}

#[test]
fn two_sessions_that_take_from_one_lane_take_different_ids() {
    let make = |cursors: &Cursors| cursors.make(0, TICK);
    meet(Cursors::new, make, make, |one, other| {
        differ(one, other);
        assert!(one.is_some() && other.is_some(), "a session that meets another one takes the next ID");
    });
}

/// flake_start_above begins an era, and then looks for transactions with a bound. A session that publishes its bound, and then compares
/// the era, is seen, or makes no ID of the earlier era.
#[test]
fn a_session_of_an_earlier_era_is_seen_or_drops_its_ids() {
    let memory = || {
        let memory = (Cursors::new(), Memory::new());
        memory.0.shared.begin_era(0);
        memory
    };
    let raise = |memory: &(Cursors, Memory)| {
        memory.0.shared.begin_era(0);
        fence(Ordering::SeqCst);
        memory.1.proc.bound() != NONE
    };
    let make = |memory: &(Cursors, Memory)| {
        let era = memory.0.shared.era();
        let is_admitted = memory.1.make(TICK);
        (era == 2 && is_admitted && memory.0.shared.era() == era).then(|| memory.0.make(era, TICK)).flatten()
    };
    meet(memory, raise, make, |is_seen, made| {
        assert!(is_seen || made.is_none(), "an ID is made that nobody waits for");
    });
}

/// Two sessions find that the clock has stepped back. The count increases once.
#[test]
fn two_sessions_that_step_back_toggle_the_bit_once() {
    let lanes = SnoSource { partition: Some(7) }.lanes(Part::whole(Node::new(0, 1).unwrap())).unwrap();
    let lanes = Lanes { count: 1, steps: 1, ids_per_step: 2, ..lanes };
    let memory = move || {
        let cursors = Cursors::new();
        assert!(cursors.of_sno(&lanes, TICK + 8000).is_some());
        cursors
    };
    let make = move |cursors: &Cursors| cursors.of_sno(&lanes, TICK);
    meet(memory, make, make, |one, other| {
        assert!(one.is_some() && one != other, "{one:?} and {other:?}");
        assert!(one.is_some_and(|(is_toggled, _)| is_toggled));
    });
}

impl Cursors {
    /// Makes a sno at an instant, and goes back if that is possible. Returns its tick-tock bit and its sequence number.
    fn of_sno(&self, lanes: &Lanes, now: i64) -> Option<(bool, u16)> {
        let mut generator = Generator::start(SnoSource { partition: Some(7) }, lanes, 0, i64::MIN);
        let cursors = ServerCursors::new(self, self.claim.unwrap(), 0);
        for _ in 0..3 {
            match generator.next(now, &cursors, 0) {
                Answer::Issue(sno) => return Some((sno.parts().tick_tock, sno.parts().sequence)),
                Answer::Behind { .. } if generator.step_back(now, &cursors) => {}
                _ => return None,
            }
        }
        None
    }
}
