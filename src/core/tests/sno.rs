//! sno compared with the original: parts, bytes, text, and the generator's state step by step.

use std::cell::Cell;

use flake_core::sno::TICK;
use flake_core::{Answer, Cursors, Error, Generator, Lanes, Numbers, OwnCursors, Sno, SnoParts, SnoSource};
use serde::Deserialize;

const EPOCH: i64 = 1262304000000000;
/// The lanes give the partition.
const ANY: SnoSource = SnoSource { partition: None };

/// All snos of these partitions and sequence numbers, in one lane with this many steps.
fn in_steps(workers: Numbers, sequences: Numbers, steps: u64) -> Lanes {
    let ids_per_step = workers.count * sequences.count / steps;
    Lanes { workers, sequences, count: 1, steps, ids_per_step, are_ordered: true }
}

/// A generator that begins above the tick that contains `now`, and its cursors.
fn above(lanes: &Lanes, now: i64) -> (Generator<SnoSource>, OwnCursors) {
    (Generator::start(ANY, lanes, 0, now + 1), OwnCursors::new(lanes))
}

/// Asks a generator, which goes back in time if it can. The clock shows the same when it is read again.
fn ask(generator: &mut Generator<SnoSource>, cursors: &impl Cursors, now: i64, metabyte: u8) -> Answer<Sno> {
    match generator.next(now, cursors, metabyte) {
        Answer::Behind { .. } if generator.step_back(now, cursors) => generator.next(now, cursors, metabyte),
        answer => answer,
    }
}

/// The cursors of one lane of several servers, with the state of the original.
struct State {
    cursors: [Cell<u64>; 2],
    steps_back: Cell<u64>,
}

impl Cursors for State {
    fn load(&self, _: u64, bit: u64) -> u64 {
        self.cursors[bit as usize].get()
    }
    fn swap(&self, _: u64, bit: u64, old: u64, new: u64) -> bool {
        self.cursors[bit as usize].replace(new) == old
    }
    fn steps_back(&self) -> u64 {
        self.steps_back.get()
    }
    fn step_back(&self, known: u64) -> bool {
        self.steps_back.replace(known + 1) == known
    }
    fn are_current(&self) -> bool {
        true
    }
}

fn bytes(hex: &str) -> [u8; 10] {
    let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
    std::array::from_fn(byte)
}

fn decoded(text: &str) -> Result<Sno, usize> {
    Sno::decode(text.as_bytes().try_into().unwrap())
}

#[test]
fn snos_of_the_original_are_read_and_made_alike() {
    let mut lines = include_str!("../../../tests/vectors/sno.csv").lines();
    assert_eq!(lines.next(), Some("given_us,starts_us,tick_tock,metabyte,partition,sequence,bytes,text"));
    let mut seen = 0;
    for line in lines {
        let [given, starts, tick_tock, metabyte, partition, sequence, hex, text] =
            line.split(',').collect::<Vec<_>>().try_into().expect(line);
        let number = |text: &str| text.parse::<u64>().unwrap();
        let parts = SnoParts {
            tick: Sno::tick_at(number(given) as i64).expect(line),
            tick_tock: tick_tock == "1",
            metabyte: number(metabyte) as u8,
            partition: number(partition) as u16,
            sequence: number(sequence) as u16,
        };
        let sno = parts.pack();
        assert_eq!(sno.bytes(), &bytes(hex), "{line}");
        assert_eq!(sno, Sno::from_bytes(bytes(hex)), "{line}");
        assert_eq!(sno.parts(), parts, "{line}");
        assert_eq!(sno.instant(), number(starts) as i64, "{line}");
        assert_eq!(sno.encode(), text.as_bytes(), "{line}");
        assert_eq!(decoded(text), Ok(sno), "{line}");
        assert!(
            Sno::min_at(sno.instant()).unwrap() <= sno && sno <= Sno::max_at(sno.instant() + 3999).unwrap(),
            "{sno:?} must lie in the range of its tick"
        );
        seen += 1;
    }
    assert_eq!(seen, 84);
}

#[test]
fn texts_that_only_the_original_accepts_are_refused() {
    assert_eq!(decoded("BRPK4Q72XWF2M63L"), Err(0));
    assert_eq!(decoded("zrpk4q72xwf2m63l"), Err(0));
    assert_eq!(decoded("brpk4q72xwf2m630"), Err(15));
    assert_eq!(decoded("brpk4q7\u{e9}wf2m63l"), Err(7));
    assert!(matches!(Sno::tick_at(EPOCH - 1), Err(Error::InstantOutOfRange { .. })));
    assert!(matches!(Sno::tick_at(3461327255552000), Err(Error::InstantOutOfRange { .. })));
    assert_eq!(Sno::tick_at(3461327255551999), Ok((1 << 39) - 1));
    assert_eq!((Sno::ZERO.encode(), Sno::ZERO.instant()), (*b"2222222222222222", EPOCH));
}

#[derive(Deserialize)]
struct Trace {
    name: String,
    partition: u64,
    sequences: [u64; 2],
    sequence: u64,
    highest: u64,
    left_behind: u64,
    drifts: u64,
    steps: Vec<TraceStep>,
}

/// A call: the ticks that the clock showed, the metabyte, the bytes of the ID, and the state afterwards: the highest tick,
/// the highest tick stepped back from, the drifts, the sequence.
#[derive(Deserialize)]
struct TraceStep(Vec<u64>, u8, String, u64, u64, u64, u64);

#[test]
fn generators_follow_the_traces_of_the_original() {
    let traces: Vec<Trace> = serde_json::from_str(include_str!("../../../tests/vectors/sno_traces.json")).unwrap();
    assert_eq!(traces.len(), 9);
    for trace in traces {
        let [first, last] = trace.sequences;
        let partition = Numbers { first: trace.partition, count: 1 };
        let count = last - first + 1;
        let lanes = in_steps(partition, Numbers { first, count }, 1);
        let used = if trace.sequence == 0 { 0 } else { trace.sequence - first + 1 };
        let bit = (trace.drifts & 1) as usize;
        let state = State { cursors: Default::default(), steps_back: Cell::new(trace.drifts) };
        state.cursors[bit].set(trace.highest * count + used);
        if trace.left_behind > 0 {
            state.cursors[1 - bit].set((trace.left_behind + 1) * count);
        }
        let mut generator = Generator::start(ANY, &lanes, 0, i64::MIN);
        for TraceStep(clock, metabyte, hex, highest, left_behind, drifts, sequence) in trace.steps {
            let (final_reading, waiting) = clock.split_last().unwrap();
            for tick in waiting {
                let answer = ask(&mut generator, &state, EPOCH + *tick as i64 * TICK, metabyte);
                assert!(!matches!(answer, Answer::Issue(_)), "{}: {answer:?} at {tick}", trace.name);
            }
            let answer = ask(&mut generator, &state, EPOCH + *final_reading as i64 * TICK, metabyte);
            let wanted = Sno::from_bytes(bytes(&hex));
            assert_eq!(answer, Answer::Issue(wanted), "{}", trace.name);
            let drifted = state.steps_back.get();
            let tick = |bit: u64| state.cursors[(bit & 1) as usize].get().saturating_sub(1) / count;
            assert_eq!(
                ([tick(drifted), tick(drifted + 1)], drifted),
                ([highest, left_behind], drifts),
                "{}",
                trace.name
            );
            assert_eq!(u64::from(wanted.parts().sequence), sequence, "{}", trace.name);
        }
    }
}

/// The clock steps back twice, the second time to before the first step. Snos with the other bit were made there.
#[test]
fn snos_go_back_once_until_the_clock_has_passed_where_they_were() {
    let lanes = in_steps(Numbers { first: 0x8000, count: 1 }, Numbers { first: 0, count: 9 }, 1);
    let noon = EPOCH + 1_000 * TICK;
    let (mut generator, cursors) = above(&lanes, noon - 20 * TICK);
    let mut at = |ticks: i64| match ask(&mut generator, &cursors, noon + ticks * TICK, 0) {
        Answer::Issue(sno) => Ok(sno.parts().tick_tock),
        Answer::Behind { until } => Err((until - noon) / TICK),
        answer => panic!("{answer:?}"),
    };
    assert_eq!([at(0), at(-5), at(-4)], [Ok(false), Ok(true), Ok(true)]);
    assert_eq!(at(-6), Err(-4), "the other bit was used up to noon");
    assert_eq!([at(0), at(1)], [Ok(true), Ok(true)]);
    assert_eq!([at(-1), at(-2)], [Err(1), Err(1)], "the other bit was used at noon");
    assert_eq!([at(5), at(1)], [Ok(true), Ok(false)]);
}

/// A session that was stopped has read an earlier time, and another one has made a sno meanwhile. A fresh reading shows that the
/// clock has not stepped back.
#[test]
fn a_stale_reading_is_no_step_back() {
    let lanes = in_steps(Numbers { first: 0x8000, count: 1 }, Numbers { first: 0, count: 9 }, 1);
    let noon = EPOCH + 1_000 * TICK;
    let (mut one, cursors) = above(&lanes, noon - 20 * TICK);
    let mut other = one.clone();
    assert!(matches!(other.next(noon, &cursors, 0), Answer::Issue(_)));
    assert!(matches!(one.next(noon - 1, &cursors, 0), Answer::Behind { .. }));
    assert!(!one.step_back(noon, &cursors), "the reading is in the tick of the cursor");
    assert!(one.step_back(noon - 1, &cursors), "the clock has stepped back");
    assert_eq!(cursors.steps_back(), 1);
    // The other session has found the same; the count is increased once.
    assert!(matches!(other.next(noon - 1, &cursors, 0), Answer::Issue(_)));
    assert_eq!(cursors.steps_back(), 1);
}

/// The clock comes back to the tick in which one session has made snos before another one has gone back.
#[test]
fn a_session_follows_another_one_that_has_gone_back() {
    let lanes = in_steps(Numbers { first: 0x8000, count: 1 }, Numbers { first: 0, count: 9 }, 1);
    let noon = EPOCH + 1_000 * TICK;
    let (mut one, cursors) = above(&lanes, noon - 20 * TICK);
    let mut other = one.clone();
    let bit = |answer| match answer {
        Answer::Issue(sno) => Sno::parts(&sno).tick_tock,
        answer => panic!("{answer:?}"),
    };
    assert!(!bit(one.next(noon, &cursors, 0)));
    assert!(bit(ask(&mut other, &cursors, noon - TICK, 0)));
    assert!(bit(one.next(noon, &cursors, 0)), "the same cursors have the numbers of the tick");
}

/// Sessions have lanes of their own. In one of them, the other bit was used in a later tick.
#[test]
fn all_lanes_decide_whether_snos_go_back() {
    let lanes = Lanes { count: 2, ..in_steps(Numbers { first: 0x8000, count: 2 }, Numbers { first: 0, count: 8 }, 1) };
    let lanes = Lanes { ids_per_step: 8, ..lanes };
    let (noon, cursors) = (EPOCH + 1_000 * TICK, OwnCursors::new(&lanes));
    let mut sessions = [0, 1].map(|lane| Generator::start(ANY, &lanes, lane, noon - 20 * TICK));
    let mut at = |lane: usize, ticks: i64| match ask(&mut sessions[lane], &cursors, noon + ticks * TICK, 0) {
        Answer::Issue(sno) => Ok(sno.parts().tick_tock),
        Answer::Behind { .. } => Err(()),
        answer => panic!("{answer:?}"),
    };
    assert_eq!([at(0, 3), at(0, 1)], [Ok(false), Ok(true)]);
    assert_eq!([at(1, 2), at(1, 1)], [Ok(true), Err(())]);
    assert_eq!(cursors.steps_back(), 1);
}

#[test]
fn partitions_of_a_lane_are_used_one_after_the_other() {
    let lanes = in_steps(Numbers { first: 0x8000, count: 2 }, Numbers { first: 0, count: 65536 }, 1);
    let (mut generator, cursors) = above(&lanes, EPOCH);
    assert_eq!(generator.next(EPOCH + 3_999, &cursors, 0), Answer::Closed { until: EPOCH + 4_000 });
    let ids: Vec<Answer<Sno>> = (0..131_072).map(|_| generator.next(EPOCH + 4_000, &cursors, 0)).collect();
    let part = |answer: &Answer<Sno>| match answer {
        Answer::Issue(sno) => (sno.parts().partition, sno.parts().sequence),
        other => panic!("{other:?}"),
    };
    assert_eq!(ids.iter().map(part).collect::<std::collections::HashSet<_>>().len(), 131_072);
    assert_eq!((part(&ids[65_535]), part(&ids[65_536])), ((0x8000, 65535), (0x8001, 0)));
    assert_eq!(generator.next(EPOCH + 4_000, &cursors, 0), Answer::Wait { until: EPOCH + 8_000 });
    assert!(matches!(generator.next(i64::MAX, &cursors, 0), Answer::Exhausted));
}
