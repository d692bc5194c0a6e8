//! Lots: what a lease can have of a part, and how applications compose its IDs.

use std::collections::HashSet;

use flake_core::{BUILTIN, Field, Layout, Lots, Node, Part, Parts, Reversal, Role, SequenceRule, TURNS, built_in};

fn part(nodes: u32, turn: u32) -> Part {
    Part::of_lessees(Node::new(nodes - 1, nodes).unwrap(), turn)
}

fn made(fields: &[(u8, Role)]) -> Layout {
    let field = |&(bits, role): &(u8, Role)| Field { name: "field".into(), bits, role };
    Layout::new("made", 0, 1000, fields.iter().map(field).collect(), SequenceRule::Reset).unwrap()
}

const TIME: Role = Role::Timestamp { reversed: Reversal::Never };
const WORKER: Role = Role::Worker { rank: 0 };

fn lots(name: &str, nodes: u32) -> u64 {
    Lots::new(built_in(name).unwrap(), part(nodes, 1)).map_or(0, |lots| lots.count())
}

/// Every ID of every lot is the ID that the layout makes of the part's worker and sequence number, and no other lot has it.
#[test]
fn the_ids_of_lots_are_those_of_their_part() {
    let custom = [
        made(&[(41, TIME), (2, WORKER), (6, Role::Sequence)]),
        made(&[
            (40, TIME),
            (3, Role::Random),
            (8, Role::Sequence),
            (1, Role::Reserved { value: 1 }),
            (3, WORKER),
            (2, Role::Random),
        ]),
        made(&[(40, TIME), (3, WORKER), (4, Role::Tag)]),
        made(&[(3, Role::Reserved { value: 0 }), (40, TIME), (5, WORKER), (7, Role::Sequence)]),
    ];
    let mut seen = 0;
    for layout in BUILTIN.iter().filter(|layout| layout.generates).chain(&custom) {
        let Ok(composition) = layout.composition() else { continue };
        for (nodes, turn) in [1, 2, 3, 8, 32].into_iter().flat_map(|nodes| (0..TURNS).map(move |turn| (nodes, turn))) {
            let Ok((workers, sequences)) = part(nodes, turn).numbers(layout) else { continue };
            let lots = Lots::new(layout, part(nodes, turn)).unwrap();
            let all = workers.count * sequences.count;
            if all > 1 << 16 {
                continue;
            }
            let mut ids = HashSet::new();
            for lot in 0..lots.count() {
                let (worker, own) = lots.lot(lot);
                let pack = |tick, sequence| layout.pack(&Parts { tick, worker, sequence, random: 0 }).unwrap();
                let low = pack(0, own.first);
                for n in 0..own.count {
                    let composed = (1000 << composition.shift) + low + (n << composition.step);
                    assert_eq!(composed, pack(1000, own.first + n), "{layout:?}");
                    assert!(workers.first <= worker && worker < workers.first + workers.count);
                    assert!(sequences.first <= own.first && own.first + n < sequences.first + sequences.count);
                    assert!(ids.insert(composed));
                }
            }
            assert_eq!(ids.len() as u64, all, "{layout:?}");
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

/// Numbers of 32 bits and more are not cut off.
#[test]
fn a_lot_of_many_workers() {
    for [time, workers, sequences] in [[30, 33, 1], [20, 43, 1], [20, 1, 43], [1, 62, 1], [1, 1, 62]] {
        let layout = made(&[(time, TIME), (workers, WORKER), (sequences, Role::Sequence)]);
        let lots = Lots::new(&layout, part(1, 3)).unwrap();
        let (worker, numbers) = lots.lot(lots.count() - 1);
        assert_eq!(
            (worker, numbers.first + numbers.count),
            (layout.workers() - 1, layout.sequences()),
            "the last eighth"
        );
        let low = layout.pack(&Parts { tick: 0, worker, sequence: numbers.first, random: 0 }).unwrap();
        assert!(low < 1 << 63);
    }
}

#[test]
fn layouts_that_cannot_be_leased() {
    let reason = |layout: &Layout| layout.composition().unwrap_err();
    for (name, word) in
        [("si_single", "no worker"), ("mastodon", "no worker"), ("uniqueid", "order"), ("seata", "order")]
    {
        assert!(reason(built_in(name).unwrap()).contains(word), "{name}");
    }
    let above = made(&[(2, Role::Reserved { value: 1 }), (40, TIME), (5, WORKER), (7, Role::Sequence)]);
    assert!(reason(&above).contains("above the timestamp"));
    let fields = vec![
        Field { name: "time".into(), bits: 40, role: TIME },
        Field { name: "worker".into(), bits: 5, role: WORKER },
    ];
    let slow = Layout::new("slow", 0, 1_000_001, fields, SequenceRule::Reset).unwrap();
    assert!(reason(&slow).contains("longer than a second"));
    for name in ["sonyflake", "base64id", "discord"] {
        assert!(built_in(name).unwrap().composition().is_ok(), "{name}");
    }
}

/// Clients of several versions rely on it.
#[test]
fn few_workers_are_divided() {
    let two = |name, nodes| {
        let lots = Lots::new(built_in(name).unwrap(), part(nodes, 1)).unwrap();
        let (_, numbers) = lots.lot(lots.count() - 1);
        (lots.count(), numbers.count)
    };
    assert_eq!(two("twitter", 1), (128, 4096));
    assert_eq!(two("twitter", 32), (64, 256));
    assert_eq!(two("twitter", 1024), (32, 16));
    assert_eq!(two("si", 1), (64, 16));
    assert_eq!(two("si", 32), (2, 16));
    assert_eq!(two("sonyflake", 1), (8192, 256));
}

/// The table in docs/reference/functions.md: layouts, and how many processes can have a lease, by the number of nodes.
#[test]
fn the_page_says_how_many_processes_can_lease() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/functions.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<Vec<&str>> =
        page.lines().map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect();
    let head = rows.iter().find(|row| row[0] == "layout" && row.len() == 6).expect("the table");
    let nodes: Vec<u32> =
        head[1..].iter().map(|cell| cell.split(' ').next().unwrap().replace(',', "").parse().unwrap()).collect();
    let mut seen = 0;
    for row in rows.iter().filter(|row| row.len() == 6 && row[0].starts_with('`')) {
        for (nodes, cell) in nodes.iter().zip(&row[1..]) {
            let said: u64 = if *cell == "–" { 0 } else { cell.replace(',', "").parse().unwrap() };
            for name in row[0].split(", ") {
                assert_eq!(said, lots(name.trim_matches('`'), *nodes), "{name} of {nodes}");
                seen += 1;
            }
        }
    }
    let all = BUILTIN.iter().filter(|layout| layout.generates && layout.composition().is_ok()).count();
    assert_eq!(seen, all * nodes.len());
}
