//! Nanoseconds to read and write a sno in both ways: `cargo bench -p flake-sno-simd`.

use std::hint::black_box;
use std::time::Instant;

use flake_core::Sno;

const ROUNDS: usize = 11;
const TIMES: usize = 1 << 24;

fn main() {
    let snos: Vec<Sno> = (0..1024u64)
        .map(|n| {
            let [a, b, c, d, e, f, g, h] = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            Sno::from_bytes([a, b, c, d, e, f, g, h, a ^ b, c ^ d])
        })
        .collect();
    let texts: Vec<[u8; 16]> = snos.iter().map(Sno::encode).collect();
    let mut rounds: Vec<(&str, Vec<f64>)> =
        ["encode", "encode, portable", "decode", "decode, portable"].map(|name| (name, vec![])).into();
    for _ in 0..ROUNDS {
        let figures = [
            time(&snos, |sno| _ = black_box(flake_sno_simd::encode(sno))),
            time(&snos, |sno| _ = black_box(sno.encode())),
            time(&texts, |text| _ = black_box(flake_sno_simd::decode(text))),
            time(&texts, |text| _ = black_box(Sno::decode(text))),
        ];
        rounds.iter_mut().zip(figures).for_each(|((_, all), figure)| all.push(figure));
    }
    for (name, mut all) in rounds {
        all.sort_by(f64::total_cmp);
        println!("{name:<24} {:6.2} ns (from {:.2} to {:.2})", all[ROUNDS / 2], all[0], all[ROUNDS - 1]);
    }
}

/// Returns the nanoseconds per call in one round.
fn time<T>(all: &[T], operation: impl Fn(&T)) -> f64 {
    let begin = Instant::now();
    for _ in 0..TIMES / all.len() {
        all.iter().for_each(&operation);
    }
    begin.elapsed().as_secs_f64() / TIMES as f64 * 1e9
}
