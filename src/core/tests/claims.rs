//! Which layouts have lines of shared memory, where the databases of a server want more than there are.

use std::collections::HashSet;

use flake_core::ledger::cursors::claims::{Quota, quota};
use flake_core::ledger::cursors::line::{BUILT_IN_LINES, CUSTOM_LINES};
use flake_core::ledger::host::Server;
use flake_core::{BUILTIN, IdSource, Layout, Node, Part, Place, SnoSource, TURNS, built_in};

mod alone;
use alone::Alone;

/// The lanes of each layout that these tests make.
const LANES: u64 = 32;
const ALL: u64 = CUSTOM_LINES as u64;

/// A server with one of a node's parts.
struct Memory {
    alone: Alone,
    part: Part,
}

impl Memory {
    fn new(nodes: u32, turn: u32) -> Self {
        Self { alone: Alone::new(), part: Part::in_turn(Node::new(0, nodes).unwrap(), turn, 0) }
    }

    /// A session of a database begins a generator. Returns its lines.
    fn claim<S: IdSource>(&self, source: S, database: u32) -> Option<usize> {
        let lanes = source.lanes(self.part).unwrap();
        Place::find(&self.alone, &source, [lanes; 2], 0, database).map(|place| place.first_line)
    }

    /// A database uses as many layouts as it can. Returns how many.
    fn use_up(&self, database: u32) -> u64 {
        (0..).take_while(|&number| self.claim(&layout(database, number), database).is_some()).count() as u64
    }

    fn quota(&self, database: u32) -> (u64, u64) {
        let Quota { taken, most } = quota(self.alone.shared(), self.alone.lines(), database);
        (taken, most)
    }
}

/// A layout that no other database has, with many IDs.
fn layout(database: u32, number: i64) -> Layout {
    let fields = built_in("instagram").unwrap().fields().to_vec();
    let epoch = 1 + i64::from(database) * 1_000_000 + number;
    Layout::new("custom", epoch, 1000, fields).unwrap()
}

/// Each of many databases takes all that it can. The layouts that are built in, those with their bits, and snos still have lines, on a
/// server with any number.
#[test]
fn built_in_layouts_have_lines_whatever_databases_take() {
    for (nodes, turn) in [(1, 0), (1, TURNS - 1), (2, 0), (32, 0)] {
        let memory = Memory::new(nodes, turn);
        let taken: u64 = (1..100).map(|database| memory.use_up(database)).sum();
        assert!((taken + 3) * LANES > ALL, "{taken}");
        let mut found = HashSet::new();
        for layout in BUILTIN.iter().filter(|&layout| layout.lanes(memory.part).is_ok()) {
            let claim = memory.claim(layout, 1000);
            assert!(claim.is_some(), "{} of {nodes} nodes", layout.name());
            let like = Layout::new("like", layout.epoch(), layout.tick_length(), layout.fields().to_vec());
            assert_eq!(memory.claim(&like.unwrap(), 1000), claim, "{}", layout.name());
            found.insert(format!("{claim:?}"));
        }
        assert!(memory.claim(SnoSource { partition: Some(7) }, 1000).is_some());
        assert!(memory.claim(SnoSource { partition: None }, 1000).is_some());
        assert!(found.len() > 12, "{nodes} nodes: {}", found.len());
        assert_eq!(memory.quota(1000).0, 0, "they count to no database");
    }
}

/// Later versions can have more layouts.
#[test]
fn built_in_layouts_leave_lines_to_later_ones() {
    let lanes = BUILTIN.iter().filter_map(|layout| layout.lanes(Memory::new(1, 0).part).ok());
    let used: u64 = lanes.map(|lanes| lanes.count).sum();
    assert!(used + 4 * LANES <= BUILT_IN_LINES as u64, "{used}");
}

#[test]
fn a_database_gets_half_of_what_others_leave() {
    let memory = Memory::new(1, 0);
    assert_eq!(memory.quota(1), (0, ALL / 2));
    let most: Vec<u64> = (1..=6).map(|database| memory.use_up(database) * LANES).collect();
    assert_eq!(most, [ALL / 2, ALL / 4, ALL / 8, ALL / 16, ALL / 32, ALL / 64]);
    assert_eq!(memory.quota(1).0, ALL / 2, "nobody takes lines away");
    // A database that uses few leaves the others nearly all.
    let memory = Memory::new(1, 0);
    assert!((1..=100).all(|database| memory.claim(&layout(database, 0), database).is_some()));
    assert_eq!(memory.quota(100), (LANES, (ALL - 99 * LANES) / 2));
}

/// They count to the database whose session was the first.
#[test]
fn layouts_of_the_same_bits_count_once() {
    let memory = Memory::new(1, 0);
    let shared = layout(1, 0);
    let first = memory.claim(&shared, 1);
    assert_eq!(memory.use_up(2) * LANES, (ALL - LANES) / 2 / LANES * LANES);
    assert_eq!(memory.claim(&layout(3, 0), 2), None, "the quota of database 2 must be used up");
    assert_eq!((memory.claim(&shared, 2), memory.quota(1).0), (first, LANES));
}
