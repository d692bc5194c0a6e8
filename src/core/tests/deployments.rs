//! Deployments of all sizes: no two parts of nodes have the same ID, nor do two lanes, and each server has what
//! docs/how-to/plan-a-deployment.md shows.

use std::fmt::Write;
use std::path::PathBuf;

use flake_core::{
    BUILTIN, Error, IdSource, Lanes, Layout, MAX_STEP_MICROS, Node, Numbers, PARTS, Part, SnoSource, TURNS,
};

mod made;
use made::layout;

const NODES: [u32; 4] = [8, 32, 128, 1024];
/// The ones that the page shows.
const SHOWN: [u32; 3] = [1, 32, 1024];

/// The beginning of 2026. Layouts whose time is over by then are not shown.
const TODAY: i64 = 1_767_225_600_000_000;

/// A layout that generates, or a kind of sno.
struct Source {
    name: String,
    tick: i64,
    ends: i64,
    /// With more nodes, they would have too few IDs.
    most_nodes: u64,
    lanes: Box<dyn Fn(Part) -> Result<Lanes, Error>>,
}

fn generating() -> impl Iterator<Item = &'static Layout> {
    BUILTIN.iter().filter(|layout| layout.generates)
}

fn of_layout(layout: Layout) -> Source {
    Source {
        name: format!("`{}`", layout.name()),
        tick: layout.tick_length(),
        ends: layout.ticks().end(),
        most_nodes: layout.workers(),
        lanes: Box::new(move |part| (&layout).lanes(part)),
    }
}

/// Layouts with few worker bits, with ticks of more than a second or not.
fn custom() -> impl Iterator<Item = Source> {
    let bits = (0..4).flat_map(|workers| (0..5).map(move |sequences| (format!("w{workers}"), format!("s{sequences}"))));
    bits.flat_map(|(w, s)| {
        let made = |tick, fields: String| of_layout(layout(tick, &fields));
        [1000, 1_000_000, 1_000_001]
            .map(|tick| made(tick, format!("t40 {w} {s}")))
            .into_iter()
            .chain([made(1000, format!("t40 {s} {w}")), made(1000, format!("{w} {s} t40"))])
    })
}

fn sources() -> Vec<Source> {
    let of_sno = |name: &str, partition, most_nodes| Source {
        name: name.to_owned(),
        tick: SnoSource { partition }.ticks().length,
        ends: SnoSource { partition }.ticks().end(),
        most_nodes,
        lanes: Box::new(move |part| SnoSource { partition }.lanes(part)),
    };
    let snos = [of_sno("`sno`", None, 1 << 15), of_sno("`sno` in a partition of the caller's", Some(7), 1 << 13)];
    generating().cloned().map(of_layout).chain(snos).collect()
}

/// The lanes of one of a node's parts.
fn lanes_of(source: &Source, (id, nodes): (u32, u32), number: u32) -> Result<Lanes, Error> {
    (source.lanes)(Part::in_turn(Node::new(id, nodes).unwrap(), number % TURNS, number / TURNS))
}

fn end(numbers: Numbers) -> u64 {
    numbers.first + numbers.count
}

/// Checks that the workers and sequence numbers of each part follow those before it, and that all parts divide them alike.
/// Returns the lanes of the first part, or None if no node has any.
fn lanes(source: &Source, nodes: u32) -> Option<Lanes> {
    let of = |(node, number)| lanes_of(source, (node, nodes), number);
    let mut all = (0..nodes).flat_map(|node| (0..PARTS).map(move |number| (node, number)));
    let Ok(first) = of((0, 0)) else {
        assert!(all.all(|part| of(part).is_err()), "{} of {nodes} nodes", source.name);
        return None;
    };
    let mut before: Option<Lanes> = None;
    for (node, number) in all {
        let own = of((node, number)).unwrap();
        assert_eq!(Lanes { workers: own.workers, sequences: own.sequences, ..first }, own, "node {node} of {nodes}");
        assert_eq!((own.workers.count, own.sequences.count), (first.workers.count, first.sequences.count));
        assert!(own.workers.count > 0 && own.sequences.count > 0, "{}: {own:?} has no IDs", source.name);
        let is_behind = before.replace(own).is_none_or(|before| {
            end(before.workers) <= own.workers.first
                || before.workers == own.workers && end(before.sequences) <= own.sequences.first
        });
        assert!(is_behind, "{}: {own:?} of node {node} of {nodes} overlaps the part before", source.name);
    }
    Some(first)
}

/// Checks that no number of the node belongs to two lanes in a tick: the lanes' parts of a step follow each other.
fn check_lanes(name: &str, lanes: &Lanes, tick: u64) -> u64 {
    let (size, all) = (lanes.ids_per_step, lanes.workers.count * lanes.sequences.count);
    let mut behind = 0;
    for step in 0..lanes.steps {
        let mut firsts: Vec<_> = (0..lanes.count).map(|lane| lanes.number_at(lane, tick, step * size)).collect();
        firsts.sort_unstable();
        for first in firsts {
            assert_eq!(first, behind, "{name}: step {step} of {lanes:?}");
            behind += size;
        }
        let last =
            |lane| lanes.number_at(lane, tick, step * size + size - 1) - lanes.number_at(lane, tick, step * size);
        assert!((0..lanes.count).all(|lane| last(lane) == size - 1), "{name}: step {step} of {lanes:?}");
    }
    assert!(behind <= all, "{name}: {behind} of {all}");
    lanes.steps * lanes.count
}

#[test]
fn no_two_sessions_of_a_deployment_have_the_same_number() {
    let (mut deployments, mut parts) = (0, 0);
    for source in sources().into_iter().chain(custom()) {
        for nodes in [1, 2, 3, 5].into_iter().chain(NODES) {
            if let Some(lanes) = lanes(&source, nodes) {
                deployments += 1;
                parts += check_lanes(&source.name, &lanes, u64::from(nodes) + 100);
            }
        }
    }
    assert!(deployments > 200, "{deployments}");
    println!("{deployments} deployments, {parts} parts of steps");
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

/// How many IDs a server's part has in a second, emphasized if there are fewer than one in a step.
fn cell(source: &Source, nodes: u32) -> String {
    let Ok(lanes) = lanes_of(source, (0, nodes), 0) else { return "–".to_owned() };
    let rate = lanes.ids_per_second(source.tick);
    if 1_000_000 / rate.max(1) > u128::from(MAX_STEP_MICROS) { format!("*{}*", rounded(rate)) } else { rounded(rate) }
}

#[test]
fn a_deployment_with_more_nodes_than_the_page_says_has_too_few_ids() {
    for source in sources() {
        let most = source.most_nodes as u32;
        assert!(lanes_of(&source, (most - 1, most), 7).is_ok(), "{} as one of {most}", source.name);
        assert!(lanes_of(&source, (most, most + 1), 7).is_err(), "{} as one of more", source.name);
    }
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
        let cells = SHOWN.map(|nodes| cell(&source, nodes));
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
fn the_page_shows_what_servers_have() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/plan-a-deployment.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("<!-- rates -->\n").unwrap();
    let (shown, after) = rest.split_once("\n<!-- end of rates -->").unwrap();
    let table = table();
    if std::env::var_os("FLAKE_ACCEPT").is_some() {
        std::fs::write(page, format!("{before}<!-- rates -->\n{table}\n<!-- end of rates -->{after}")).unwrap();
        return;
    }
    assert_eq!(shown, table);
}
