//! The checks of the fuzz targets, for their seeds and for random changes of these: for machines without cargo-fuzz.

use std::path::Path;

use proptest::prelude::*;

#[path = "../fuzz/oracles/mod.rs"]
mod oracles;

/// Parts of an input that changes keep whole.
const TOKENS: &str = r#"{ } [ ] , : "" null true 0 -1 255 256 18446744073709551615 "like" "reversed":true "rank":1 "value":1
    "worker" "random" é ~"#;

type Change = (u8, prop::sample::Index, prop::sample::Index, u64);

fn changes() -> impl Strategy<Value = (prop::sample::Index, prop::sample::Index, Vec<Change>)> {
    let change = (0u8..7, any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u64>());
    (any::<prop::sample::Index>(), any::<prop::sample::Index>(), prop::collection::vec(change, 0..6))
}

/// Returns the seeds of a target. Each seed must pass.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(target);
    let mut files: Vec<_> = place.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn changed(mut input: Vec<u8>, other: &[u8], changes: Vec<Change>) -> Vec<u8> {
    let tokens: Vec<&str> = ["\n", "\n\n"].into_iter().chain(TOKENS.split_whitespace()).collect();
    for (kind, from, to, number) in changes {
        let (from, to) = (from.index(input.len() + 1), to.index(input.len() + 1));
        let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 40));
        let token = tokens[number as usize % tokens.len()];
        let part = input[from..to].to_vec();
        match kind {
            0 => input[from..to].fill(number as u8),
            1 => drop(input.drain(from..to)),
            2 => drop(input.splice(from..from, part)),
            3 => drop(input.splice(from..from, token.bytes())),
            4 => drop(input.splice(from..to, token.bytes())),
            5 if from < input.len() => input[from] ^= 1 << (number % 8),
            _ => drop(input.splice(from..from, other[other.len().min(from)..other.len().min(to)].iter().copied())),
        }
    }
    input
}

/// `FLAKE_FUZZ_TIMES` multiplies the number of cases.
fn config(cases: u32) -> ProptestConfig {
    let times: u32 = std::env::var("FLAKE_FUZZ_TIMES").map_or(1, |times| times.parse().unwrap());
    ProptestConfig { cases: cases * times, failure_persistence: None, ..ProptestConfig::default() }
}

fn holds(target: &str, cases: u32, oracle: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "the target {target} has no seeds");
    for seed in &seeds {
        oracle(seed);
    }
    proptest!(config(cases), |((one, other, list) in changes())| {
        let (one, other): (&Vec<u8>, &Vec<u8>) = (one.get(&seeds), other.get(&seeds));
        oracle(&changed(one.clone(), other, list));
    });
}

#[test]
fn definitions_are_read_back_or_refused() {
    holds("definition", 4_000, oracles::written);
}

#[test]
fn layouts_convert_their_ids_both_ways() {
    holds("layout", 1_000, oracles::built);
    proptest!(config(4_000), |(decisions in prop::collection::vec(any::<u8>(), 0..400))| oracles::built(&decisions));
}

#[test]
fn texts_are_read_back_or_refused() {
    holds("text", 2_000, oracles::text);
}

#[test]
fn snos_are_read_back_or_refused() {
    holds("sno", 10_000, oracles::sno);
}

#[test]
fn pages_are_read_back_or_refused() {
    holds("page", 2_000, |data| {
        oracles::page(data);
    });
    assert!(seeds("page").iter().all(|seed| oracles::page(seed)), "a seed is in no format of this version");
}
