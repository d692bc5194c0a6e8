//! Deployments of all sizes: no two sessions have the same ID, and each has what docs/how-to/plan-a-deployment.md shows.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;

use flake_core::{
    Answer, BUILTIN, Error, Generator, IdSource, Layout, Node, Numbers, STEP, Share, Slot, SnoSource, Start,
};

const NODES: [u32; 5] = [1, 8, 32, 128, 1024];
/// The ones that the page shows.
const SHOWN: [u32; 3] = [1, 32, 1024];
const CONNECTIONS: [u32; 3] = [100, 500, 2000];
/// Server processes that have slots in addition to connections: the default of PostgreSQL 18. Earlier versions have 22.
const OTHERS: u32 = 36;

/// The beginning of 2026. Layouts whose time is over by then are not shown.
const TODAY: i64 = 1_767_225_600_000_000;

/// A layout that generates, or a kind of sno.
struct Source {
    name: String,
    tick: i64,
    ends: i64,
    /// With more nodes, some would have no part.
    most_nodes: u64,
    share: Box<dyn Fn(Node, Slot) -> Result<Share, Error>>,
}

fn generating() -> impl Iterator<Item = &'static Layout> {
    BUILTIN.iter().filter(|layout| layout.generates)
}

fn sources() -> Vec<Source> {
    let of_layout = |layout: &'static Layout| Source {
        name: format!("`{}`", layout.name()),
        tick: layout.tick_length(),
        ends: layout.ticks().end(),
        most_nodes: layout.workers(),
        share: Box::new(move |node, slot| Share::new(layout, node, slot)),
    };
    let of_sno = |name: &str, partition, most_nodes| Source {
        name: name.to_owned(),
        tick: SnoSource { partition }.ticks().length,
        ends: SnoSource { partition }.ticks().end(),
        most_nodes,
        share: Box::new(move |node, slot| SnoSource { partition }.share(node, slot)),
    };
    let snos = [of_sno("`sno`", None, 1 << 15), of_sno("`sno` in a partition of the caller's", Some(7), 1 << 16)];
    generating().map(of_layout).chain(snos).collect()
}

fn share_of(source: &Source, node: (u32, u32), slot: (u32, u32)) -> Result<Share, Error> {
    (source.share)(Node::new(node.0, node.1).unwrap(), Slot::new(slot.0, slot.1).unwrap())
}

fn end(numbers: Numbers) -> u64 {
    numbers.first + numbers.count
}

/// Checks that the workers and sequence numbers of each node follow those before it, and that the slots of all nodes divide them
/// alike. Returns the shares of the first node, or None if no slot of any node has one.
fn shares(source: &Source, nodes: u32, slots: u32) -> Option<Vec<Share>> {
    let of_node = |node| (0..slots).map(move |slot| share_of(source, (node, nodes), (slot, slots)));
    let Ok(first) = of_node(0).collect::<Result<Vec<_>, _>>() else {
        assert!((0..nodes).flat_map(of_node).all(|share| share.is_err()), "{} of {nodes} nodes", source.name);
        return None;
    };
    let mut before: Option<Share> = None;
    for node in 0..nodes {
        let mut own = None;
        for (share, mut expected) in of_node(node).zip(first.iter().copied()) {
            let share = share.unwrap();
            let own = *own.get_or_insert(share);
            (expected.workers.first, expected.sequences.first) = (own.workers.first, own.sequences.first);
            assert_eq!(share, expected, "node {node} of {nodes}");
        }
        let (own, before) = (own.unwrap(), before.replace(own.unwrap()));
        let is_behind = before.is_none_or(|before| {
            end(before.workers) <= own.workers.first
                || before.workers == own.workers && end(before.sequences) <= own.sequences.first
        });
        assert!(is_behind, "{}: {own:?} of node {node} of {nodes} overlaps {before:?}", source.name);
    }
    Some(first)
}

/// Checks that no number of the node belongs to two slots: each slot's part of each step follows the part before it.
fn check_slots(name: &str, shares: &[Share]) -> u64 {
    let (size, all) = (shares[0].ids_per_step, shares[0].workers.count * shares[0].sequences.count);
    let mut behind = 0;
    for step in 0..shares[0].steps {
        for share in shares {
            let (first, following) = share.number_at(step * size);
            assert!(behind <= first && following == size - 1, "{name}: step {step} of {share:?}");
            behind = first + size;
        }
    }
    assert!(behind <= all, "{name}: {behind} of {all}");
    shares[0].steps * shares.len() as u64
}

#[test]
fn no_two_sessions_of_a_deployment_have_the_same_number() {
    let (mut deployments, mut parts) = (0, 0);
    for source in sources() {
        for (nodes, connections) in NODES.into_iter().flat_map(|nodes| CONNECTIONS.map(|count| (nodes, count))) {
            if let Some(shares) = shares(&source, nodes, connections + OTHERS) {
                deployments += 1;
                parts += check_slots(&source.name, &shares);
            }
        }
    }
    assert!(deployments > 150, "{deployments}");
    println!("{deployments} deployments, {parts} parts of steps");
}

/// Makes all IDs of a tick for each layout with different fields, except for layouts with too many, and checks that all are
/// different.
#[test]
fn each_number_of_each_node_is_another_id() {
    let mut seen = HashSet::new();
    let is_new = |layout: &&Layout| {
        let fields: Vec<_> = layout.fields().iter().map(|field| (field.bits, field.role)).collect();
        seen.insert(format!("{fields:?} {:?}", layout.rule))
    };
    let mut made = 0;
    for layout in generating().filter(is_new) {
        let all = layout.workers() * layout.sequences();
        if all > 1 << 24 {
            continue;
        }
        let start = layout.epoch() + 1000 * layout.tick_length();
        for nodes in NODES.into_iter().filter(|&nodes| u64::from(nodes) <= layout.workers()) {
            let mut makers = vec![false; all as usize];
            let mut ids = vec![0; 4096];
            for node in 0..nodes {
                let share = Share::new(layout, Node::new(node, nodes).unwrap(), Slot::new(0, 1).unwrap()).unwrap();
                let begins = Start { free_from: start, resumed: None };
                let mut generator = Generator::start(layout, &share, begins, i64::MIN, 0);
                loop {
                    let count = generator.fill(start, &mut ids, || 0);
                    for &id in &ids[..count] {
                        let parts = layout.unpack(id).unwrap();
                        let number = parts.worker * layout.sequences() + parts.sequence;
                        assert!(!std::mem::replace(&mut makers[number as usize], true), "{id} of {}", layout.name());
                    }
                    if count == 0 {
                        break;
                    }
                }
                assert!(matches!(generator.next(start, || 0), Answer::Wait { .. }));
                assert_eq!(generator.issued(), share.size());
                made += share.size();
            }
        }
    }
    assert!(made > 100_000_000, "{made}");
    println!("{made} IDs");
}

/// Rounds to two or three digits, with thousands, millions or billions.
fn rounded(rate: u128) -> String {
    let (unit, name) = match rate {
        1_000_000_000.. => (1e9, " G"),
        1_000_000.. => (1e6, " M"),
        1000.. => (1e3, " k"),
        _ => (1.0, ""),
    };
    let number = rate as f64 / unit;
    if number < 10.0 { format!("{number:.1}{name}") } else { format!("{number:.0}{name}") }
}

/// A session's IDs per second, emphasized if there are fewer than one in a step.
fn cell(source: &Source, nodes: u32, connections: u32) -> String {
    let slots = connections + OTHERS;
    let Ok(share) = share_of(source, (0, nodes), (0, slots)) else { return "–".to_owned() };
    let rate = share.ids_per_second(source.tick);
    if 1_000_000 / rate.max(1) > u128::from(STEP) { format!("*{}*", rounded(rate)) } else { rounded(rate) }
}

/// Writes a number with commas.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group)).collect();
    groups.join(",")
}

/// The table. Layouts with equal numbers share a row.
fn table() -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for source in sources().into_iter().filter(|source| source.ends > TODAY) {
        let cells = SHOWN.map(|nodes| {
            let cells = CONNECTIONS.map(|connections| cell(&source, nodes, connections));
            if cells.iter().all(|cell| cell == "–") { "–".to_owned() } else { cells.join(" · ") }
        });
        let cells = format!("{} | {}", grouped(source.most_nodes), cells.join(" | "));
        match rows.iter_mut().find(|(_, others)| *others == cells) {
            Some((names, _)) => write!(names, ", {}", source.name).unwrap(),
            None => rows.push((source.name, cells)),
        }
    }
    let heads = SHOWN.map(|nodes| if nodes == 1 { "1 node".to_owned() } else { grouped(nodes.into()) });
    let mut table = format!("| layout | nodes at most | {} |\n|---|---:|", heads.join(" | "));
    table.push_str(&"---:|".repeat(SHOWN.len()));
    for (names, cells) in rows {
        write!(table, "\n| {names} | {cells} |").unwrap();
    }
    table
}

/// `FLAKE_ACCEPT` writes the table.
#[test]
fn the_page_shows_what_sessions_have() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/plan-a-deployment.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("<!-- shares -->\n").unwrap();
    let (shown, after) = rest.split_once("\n<!-- end of shares -->").unwrap();
    let table = table();
    if std::env::var_os("FLAKE_ACCEPT").is_some() {
        std::fs::write(page, format!("{before}<!-- shares -->\n{table}\n<!-- end of shares -->{after}")).unwrap();
        return;
    }
    assert_eq!(shown, table);
}
