//! Prepared transactions: whatever entries are merged, they hold enough, and ended transactions seldom hold too much.

use flake_core::watermark::prepared::{Prepared, Transactions, add, holds};
use flake_core::watermark::{NONE, Snapshot};
use proptest::prelude::*;

const FIRST: u64 = 3;
/// The number of entries: one more than can run at once.
const ENTRIES: usize = 6;

/// A transaction, which may not have been prepared.
struct One {
    bound: Option<i64>,
    database: u32,
    is_running: bool,
}

/// All transactions in the order of their IDs, and the snapshots in use.
#[derive(Default)]
struct World {
    all: Vec<One>,
    snapshots: Vec<(u64, u64, Vec<u32>)>,
    table: [Prepared; ENTRIES],
}

impl World {
    fn running(&self) -> impl Iterator<Item = u64> {
        (FIRST..).zip(&self.all).filter(|(_, one)| one.is_running).map(|(xid, _)| xid)
    }

    fn begin(&mut self, bound: Option<i64>, database: u32) -> u64 {
        let xid = FIRST + self.all.len() as u64;
        self.all.push(One { bound, database, is_running: true });
        if let Some(bound) = bound {
            let mut table = self.table;
            add(&mut table, Prepared::new(xid, bound, database), self);
            self.table = table;
        }
        xid
    }

    fn end(&mut self, xid: u64) {
        self.all[(xid - FIRST) as usize].is_running = false;
    }

    fn look(&mut self) {
        let xmax = self.latest_ended() + 1;
        let running: Vec<u64> = self.running().filter(|&xid| xid < xmax).collect();
        let xmin = running.first().copied().unwrap_or(xmax);
        self.snapshots.push((xmin, xmax, running.into_iter().map(|xid| xid as u32).collect()));
    }

    /// The watermark that the entries allow a snapshot, and the highest one that is right.
    fn held(&self, at: usize, database: u32) -> (i64, i64) {
        let (xmin, xmax, running) = &self.snapshots[at];
        let snapshot = Snapshot { xmin: *xmin, xmax: *xmax, running };
        let of_database = (FIRST..).zip(&self.all).filter(|(_, one)| one.database == database);
        let really = of_database.filter(|(xid, _)| snapshot.is_running(*xid)).filter_map(|(_, one)| one.bound).min();
        (holds(&self.table, &snapshot, database), really.unwrap_or(NONE))
    }
}

impl Transactions for World {
    fn is_running(&self, xid: u64) -> bool {
        self.all[(xid - FIRST) as usize].is_running
    }
    fn latest_ended(&self) -> u64 {
        (FIRST..).zip(&self.all).filter(|(_, one)| !one.is_running).map(|(xid, _)| xid).last().unwrap_or(FIRST - 1)
    }
    fn oldest_xmin(&self) -> u64 {
        let of_snapshots = self.snapshots.iter().map(|(xmin, ..)| *xmin);
        of_snapshots.chain(self.running()).min().unwrap_or(self.latest_ended() + 1)
    }
}

#[derive(Debug, Clone)]
enum Step {
    Prepare { bound: i64, database: u32 },
    Begin,
    End(prop::sample::Index),
    Look,
    Forget(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (1..1000_i64, 1..4_u32).prop_map(|(bound, database)| Step::Prepare { bound, database }),
        1 => Just(Step::Begin),
        6 => index().prop_map(Step::End),
        2 => Just(Step::Look),
        1 => index().prop_map(Step::Forget),
    ]
}

proptest! {
    #[test]
    fn prepared_transactions_never_hold_too_little(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::default();
        for step in steps {
            let running: Vec<u64> = world.running().collect();
            match step {
                Step::Prepare { bound, database } if running.len() < ENTRIES - 1 => {
                    world.begin(Some(bound), database);
                }
                Step::Begin if running.len() < ENTRIES - 1 => {
                    world.begin(None, 1);
                }
                Step::End(which) if !running.is_empty() => world.end(running[which.index(running.len())]),
                Step::Look => world.look(),
                Step::Forget(which) if !world.snapshots.is_empty() => {
                    world.snapshots.remove(which.index(world.snapshots.len()));
                }
                _ => {}
            }
            world.look();
            for at in 0..world.snapshots.len() {
                for database in 1..4 {
                    let (held, really) = world.held(at, database);
                    prop_assert!(held <= really, "{held} > {really} for {:?}", world.snapshots[at]);
                }
            }
            world.snapshots.pop();
        }
    }
}

/// An open transaction keeps ended ones from being forgotten. They hold nothing for snapshots that see them as ended.
#[test]
fn ended_transactions_make_room() {
    let mut world = World::default();
    world.begin(None, 1);
    let first = world.begin(Some(7), 1);
    for bound in 10..100 {
        let xid = world.begin(Some(bound), 1);
        world.look();
        assert_eq!(world.held(0, 1), (7, 7));
        world.snapshots.clear();
        world.end(xid);
    }
    world.end(first);
    world.look();
    assert_eq!(world.held(0, 1), (NONE, NONE));
}

/// An open transaction that began among them and made no ID holds nothing either, once another one has ended.
#[test]
fn an_open_transaction_keeps_its_entry_among_ended_ones() {
    let mut world = World::default();
    world.begin(None, 1);
    for bound in 10..100 {
        let xid = world.begin(Some(bound), 1);
        if bound == 10 {
            world.begin(None, 1);
        }
        world.end(xid);
        world.look();
        assert_eq!(world.held(0, 1), (NONE, NONE), "{bound}");
        world.snapshots.clear();
    }
}

/// Entries of different databases are not merged as long as there is room for one of each.
#[test]
fn transactions_of_another_database_hold_nothing() {
    let mut world = World::default();
    world.begin(None, 1);
    let one = world.begin(Some(5), 1);
    world.end(one);
    world.begin(None, 1);
    for bound in 10..100 {
        let xid = world.begin(Some(bound), 2);
        world.look();
        assert_eq!(world.held(0, 2), (bound, bound));
        assert_eq!((world.held(0, 1), world.held(0, 3)), ((NONE, NONE), (NONE, NONE)));
        world.snapshots.clear();
        world.end(xid);
    }
}

#[test]
fn a_transaction_has_one_entry() {
    let mut world = World::default();
    world.begin(Some(5), 1);
    let mut table = world.table;
    assert_eq!(add(&mut table, Prepared::new(FIRST, 5, 1), &world), 0);
    assert_eq!(table, world.table);
    assert_eq!(table.map(|one| one.xid()), [Some(FIRST), None, None, None, None, None]);
}
