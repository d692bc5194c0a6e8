//! Nanoseconds per operation without a server: `cargo bench -p flake-core`. It interleaves rounds and prints medians.

use std::hint::black_box;
use std::time::Instant;

use flake_core::sno::automatic_share;
use flake_core::{Answer, Generator, LONGEST_TEXT, Node, Parts, Share, Slot, Sno, SnoSource, Start, built_in};

const ROUNDS: usize = 21;
const TIMES: u64 = 1_000_000;

/// Returns the nanoseconds per call in one round.
fn time(mut operation: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    (0..TIMES).for_each(&mut operation);
    begin.elapsed().as_secs_f64() / TIMES as f64 * 1e9
}

fn main() {
    let layout = built_in("twitter").unwrap();
    // A session of one server with default settings.
    let (node, slot) = (Node::new(0, 1).unwrap(), Slot::new(3, 122).unwrap());
    let share = Share::new(layout, node, slot).unwrap();
    let start = layout.start_of(1_000_000);
    let mut generator = Generator::start(layout, &share, Start { free_from: start + 1, resumed: None }, i64::MIN, 0);
    let sno_share = automatic_share(node, slot).unwrap();
    let sno_start = Sno::ZERO.instant() + 4_000_000_000;
    let mut sno_generator = Generator::start(
        SnoSource { partition: None },
        &sno_share,
        Start { free_from: sno_start + 1, resumed: None },
        i64::MIN,
        0,
    );
    // The clock moves fast enough that no share is used up: 20,000 IDs in a tick.
    let (mut asked, mut sno_asked) = (0, 0);

    let mut rounds: Vec<(&str, Vec<f64>)> = [
        "sno next",
        "twitter next",
        "twitter tick of an ID",
        "twitter text",
        "tsid text",
        "twitter text read",
        "tsid text read",
    ]
    .map(|name| (name, vec![]))
    .into();
    let tsid = built_in("tsid").unwrap();
    let id = layout.pack(&Parts { tick: 500_000_000_000, worker: 5, sequence: 7, random: 0 }).unwrap();
    let texts = [layout, tsid].map(|layout| layout.encode(id).unwrap());
    for _ in 0..ROUNDS {
        let figures = [
            time(|_| {
                sno_asked += 1;
                let answer = sno_generator.next(sno_start + 4_000 + sno_asked / 5, 7);
                assert!(matches!(black_box(answer), Answer::Issue(_)));
            }),
            time(|_| {
                asked += 1;
                let answer = generator.next(start + 1_000 + asked / 20, || 0);
                assert!(matches!(black_box(answer), Answer::Issue(_)));
            }),
            time(|n| {
                black_box(layout.tick_of(black_box(n << 22))).unwrap();
            }),
            time(|n| {
                black_box(layout.encode_into(id + n, &mut [0; LONGEST_TEXT]).unwrap().as_ptr());
            }),
            time(|n| {
                black_box(tsid.encode_into(id + n, &mut [0; LONGEST_TEXT]).unwrap().as_ptr());
            }),
            time(|_| {
                black_box(layout.parse(black_box(&texts[0]))).unwrap();
            }),
            time(|_| {
                black_box(tsid.parse(black_box(&texts[1]))).unwrap();
            }),
        ];
        rounds.iter_mut().zip(figures).for_each(|((_, all), figure)| all.push(figure));
    }
    for (name, mut all) in rounds {
        all.sort_by(f64::total_cmp);
        println!("{name:<24} {:6.2} ns (from {:.2} to {:.2})", all[ROUNDS / 2], all[0], all[ROUNDS - 1]);
    }
}
