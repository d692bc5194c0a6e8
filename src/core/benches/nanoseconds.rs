//! Nanoseconds per operation without a server: `cargo bench -p flake-core`. It interleaves rounds and prints medians.

use std::hint::black_box;
use std::time::Instant;

use flake_core::{Answer, Generator, IdSource, Layout, Node, OwnCursors, Part, Sno, SnoSource, built_in};

const ROUNDS: usize = 21;
const TIMES: u64 = 1_000_000;

/// Returns the nanoseconds per call in one round.
fn time(mut operation: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    (0..TIMES).for_each(&mut operation);
    begin.elapsed().as_secs_f64() / TIMES as f64 * 1e9
}

/// Makes IDs in a session of one server with default settings. The clock moves fast enough that a tick is never used up: by a
/// millisecond for so many IDs.
fn generator<S: IdSource>(source: S, ids: u64, argument: S::Argument) -> impl FnMut(u64) {
    let start = source.ticks().start_of(1_000_000);
    let lanes = source.lanes(Part::in_turn(Node::new(0, 1).unwrap(), 0, 0)).unwrap();
    let cursors = OwnCursors::new(&lanes);
    let mut generator = Generator::start(source, &lanes, 3, start);
    let mut asked = 0;
    move |_| {
        asked += 1;
        let answer = generator.next(start + (asked * 1_000 / ids) as i64, &cursors, argument);
        assert!(matches!(black_box(answer), Answer::Issue(_)));
    }
}

fn main() {
    let layout: &Layout = built_in("twitter").unwrap();
    let (mut next, mut sno_next) =
        (generator(layout, 20_000, || 0), generator(SnoSource { partition: None }, 5_000, 7));
    let snos: Vec<Sno> = (0..1024u64)
        .map(|n| {
            let [a, b, c, d, e, f, g, h] = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            Sno::from_bytes([a, b, c, d, e, f, g, h, a ^ b, c ^ d])
        })
        .collect();
    let texts: Vec<[u8; 16]> = snos.iter().map(Sno::encode).collect();
    let (sno, text) = (|n: u64| &snos[n as usize % 1024], |n: u64| &texts[n as usize % 1024]);
    let mut rounds: [(&str, Vec<f64>); 5] = Default::default();
    for _ in 0..ROUNDS {
        let figures = [
            ("sno next", time(&mut sno_next)),
            ("twitter next", time(&mut next)),
            ("twitter tick of an ID", time(|n| _ = black_box(layout.tick_of(black_box(n << 22))))),
            ("encode", time(|n| _ = black_box(sno(n).encode()))),
            ("decode", time(|n| _ = black_box(Sno::decode(text(n))))),
        ];
        for ((name, all), (of, figure)) in rounds.iter_mut().zip(figures) {
            *name = of;
            all.push(figure);
        }
    }
    for (name, mut all) in rounds {
        all.sort_by(f64::total_cmp);
        println!("{name:<24} {:6.2} ns (from {:.2} to {:.2})", all[ROUNDS / 2], all[0], all[ROUNDS - 1]);
    }
}
