//! Memory that sessions share without a lock, in every order that the memory model allows. These tests need `--cfg loom`:
//! `scripts/test loom`.
#![cfg(loom)]

use flake_core::Window;
use flake_core::horizon::{NONE, SlotTransactions, Snapshot};
use flake_core::ledger::window::SharedWindow;
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
    // Orders with more than two preemptions of a thread are left out.
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

/// A slot, and the announced horizon.
struct Memory {
    slot: SlotTransactions,
    announced: AtomicI64,
}

impl Memory {
    fn new() -> Self {
        let memory = Self { slot: SlotTransactions::default(), announced: AtomicI64::new(i64::MIN) };
        memory.slot.begin(DATABASE);
        memory
    }

    /// A transaction makes IDs from an instant on, and does not end. Returns whether it may.
    fn make(&self, bound: i64) -> bool {
        self.slot.admit(&self.announced, bound, || {}).is_ok()
    }

    /// Asks for a horizon at an instant. Returns None if all retries failed.
    fn ask(&self, now: i64, database: u32) -> Option<i64> {
        let before = self.announced.fetch_max(now, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        Some(self.slot.holds(&seeing(10), database)?.min(now.max(before)))
    }
}

/// A snapshot that sees the transactions before this one as ended.
fn seeing(before: u64) -> Snapshot<'static> {
    Snapshot { xmin: before, xmax: before, running: &[] }
}

/// Checks that an ID is not below a horizon.
fn check(made: Option<i64>, horizon: Option<i64>) {
    if let (Some(made), Some(horizon)) = (made, horizon) {
        assert!(horizon <= made, "an ID of the instant {made} lies below the horizon {horizon}");
    }
}

#[test]
fn a_first_id_and_a_horizon_that_meet_see_each_other() {
    meet(Memory::new, |memory| memory.make(100).then_some(100), |memory| memory.ask(200, DATABASE), check);
}

#[test]
fn a_covered_id_and_a_horizon_that_meet_see_each_other() {
    let memory = || {
        let memory = Memory::new();
        assert!(memory.make(150), "no horizon is announced, so the ID must be admitted");
        memory
    };
    let cover = |memory: &Memory| Some(if memory.slot.hold(&memory.announced, 100, || {}).is_ok() { 100 } else { 150 });
    meet(memory, cover, |memory| memory.ask(200, DATABASE), check);
}

#[test]
fn a_first_id_of_a_new_owner_holds_horizons_of_its_own_database() {
    let make = |memory: &Memory| {
        memory.slot.begin(DATABASE + 1);
        memory.make(100).then_some(100)
    };
    meet(Memory::new, make, |memory| memory.ask(200, DATABASE + 1), check);
}

/// Transactions of a slot, each with its ID and its bound.
type Transactions = &'static [(u64, i64)];

/// A snapshot that sees transactions from `snapshot` on as running is used while the slot's owner ends transactions.
fn ends_beside(ended: Transactions, ending: Transactions, snapshot: u64) {
    let end = |memory: &Memory, (xid, bound): (u64, i64)| {
        assert!(memory.make(bound), "no horizon is announced, so the ID must be admitted");
        memory.slot.end(Some(xid), || {});
    };
    let (first, following) = ending.split_first().unwrap();
    let memory = move || {
        let memory = Memory::new();
        ended.iter().for_each(|one| end(&memory, *one));
        assert!(memory.make(first.1), "no horizon is announced, so the ID must be admitted");
        memory
    };
    let write = move |memory: &Memory| {
        memory.slot.end(Some(first.0), || {});
        following.iter().for_each(|one| end(memory, *one));
    };
    let known = ended.iter().chain([first]);
    let held = known.filter(|(xid, _)| *xid >= snapshot).map(|one| one.1).min().unwrap_or(NONE);
    meet(
        memory,
        write,
        move |memory| memory.slot.holds(&seeing(snapshot), DATABASE),
        move |(), holds| assert!(holds.is_none_or(|holds| holds <= held), "{holds:?} was read where {held} is held"),
    );
}

#[test]
fn a_transaction_that_commits_while_a_horizon_is_asked_for_is_not_missed() {
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

#[test]
fn a_window_that_is_read_is_one_that_was_written() {
    let of = |era: u64| Window { from: era as i64, until: era as i64 + 10, skip: era as i64 + 20 };
    let memory = move || {
        let shared = SharedWindow::default();
        shared.write(of(1), 1);
        shared
    };
    let check = move |(), read: Option<(Window, u64)>| {
        if let Some((window, era)) = read {
            assert_eq!(window, of(era));
        }
    };
    meet(memory, move |shared| shared.write(of(2), 2), SharedWindow::try_read, check);
}
