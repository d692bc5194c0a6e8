//! sno compared with the original: parts, bytes, text, and the generator's state step by step.

use flake_core::sno::UNIT;
use flake_core::{
    Answer, Error, Generator, IdSource, Lanes, Node, Numbers, Part, Progress, SequenceRule, Sno, SnoParts, SnoSource,
    Start, Words,
};
use proptest::prelude::*;
use serde::Deserialize;

const EPOCH: i64 = 1262304000000000;
/// When the last unit begins.
const LAST: i64 = Sno::from_bytes([u8::MAX; 10]).instant();
/// The lanes give the partition.
const ANY: SnoSource = SnoSource { partition: None };

/// All snos of these partitions and sequence numbers, in one step.
fn in_one_step(partitions: Numbers, sequences: Numbers) -> Lanes {
    Lanes::of_slots("sno", partitions, sequences, 1, 1).unwrap()
}

/// A generator that begins above the unit that contains `now`.
fn above(lanes: &Lanes, now: i64) -> Generator<SnoSource> {
    Generator::start(ANY, lanes, 0, Start { free_from: now + 1, resumed: None })
}

/// A lane of snos is its generator's alone, and has no word.
struct NoWords;

impl Words for NoWords {
    fn load(&self, lane: u64) -> u64 {
        panic!("the word of lane {lane} is asked for")
    }
    fn swap(&self, lane: u64, _: u64, _: u64) -> bool {
        panic!("the word of lane {lane} is swapped")
    }
    fn are_current(&self) -> bool {
        panic!("words are asked for")
    }
    fn rule(&self) -> SequenceRule {
        panic!("a rule is asked for")
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
            unit: Sno::unit_at(number(given) as i64).expect(line),
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
            "{sno:?} must lie in the range of its unit"
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
    assert!(matches!(Sno::unit_at(EPOCH - 1), Err(Error::InstantOutOfRange { .. })));
    assert!(matches!(Sno::unit_at(3461327255552000), Err(Error::InstantOutOfRange { .. })));
    assert_eq!(Sno::unit_at(3461327255551999), Ok((1 << 39) - 1));
    assert_eq!((Sno::ZERO.encode(), Sno::ZERO.instant()), (*b"2222222222222222", EPOCH));
}

/// The text, computed digit by digit.
fn plain_text(bytes: &[u8; 10]) -> [u8; 16] {
    const DIGITS: &[u8] = b"23456789abcdefghijklmnopqrstuvwx";
    let number = bytes.iter().fold(0u128, |number, &byte| number << 8 | u128::from(byte));
    std::array::from_fn(|i| DIGITS[(number >> (5 * (15 - i))) as usize & 31])
}

#[test]
fn ten_million_random_snos_read_and_write_as_digit_by_digit() {
    let mut state = 0x9e3779b97f4a7c15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..10_000_000 {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&random().to_be_bytes());
        bytes[8..].copy_from_slice(&random().to_be_bytes()[..2]);
        let sno = Sno::from_bytes(bytes);
        let text = plain_text(&bytes);
        assert_eq!(sno.encode(), text);
        assert_eq!(Sno::decode(&text), Ok(sno));
    }
}

proptest! {
    #[test]
    fn only_digits_are_read(text: [u8; 16]) {
        let wrong = text.iter().position(|byte| !matches!(byte, b'2'..=b'9' | b'a'..=b'x'));
        match Sno::decode(&text) {
            Ok(sno) => prop_assert!(wrong.is_none() && sno.encode() == text),
            Err(place) => prop_assert_eq!(wrong, Some(place)),
        }
    }

    #[test]
    fn one_wrong_character_is_found(bytes: [u8; 10], place in 0usize..16, other: u8) {
        let mut text = Sno::from_bytes(bytes).encode();
        text[place] = other;
        match Sno::decode(&text) {
            Ok(_) => prop_assert!(matches!(other, b'2'..=b'9' | b'a'..=b'x')),
            Err(found) => prop_assert_eq!(found, place),
        }
    }

    #[test]
    fn bytes_texts_and_times_sort_alike(one: [u8; 10], two: [u8; 10]) {
        let (one, two) = (Sno::from_bytes(one), Sno::from_bytes(two));
        prop_assert_eq!(one.cmp(&two), one.encode().cmp(&two.encode()));
        if one.instant() < two.instant() {
            prop_assert!(one < two);
        }
        prop_assert_eq!(one.parts().pack(), one);
        prop_assert_eq!(one.with_metabyte(7).parts(), SnoParts { metabyte: 7, ..one.parts() });
    }

    /// The clock jumps. No sno is made twice, and each lies in the clock's unit.
    #[test]
    fn generators_never_repeat(steps in 1u64..9, jumps in prop::collection::vec((-40i64..60, 1usize..20), 1..200)) {
        let (partitions, sequences) = (Numbers { first: 40000, count: 2 }, Numbers { first: 10, count: 6 });
        let lanes = Lanes::of_slots("sno", partitions, sequences, 1, steps).unwrap();
        let mut now = EPOCH + 4_000_000_000;
        let mut generator = above(&lanes, now);
        let mut issued = std::collections::HashSet::new();
        for (jump, asked) in jumps {
            now += jump * 2_000;
            for _ in 0..asked {
                match generator.next(now, &NoWords, 9) {
                    Answer::Issue(sno) => {
                        prop_assert!(issued.insert(sno), "{:?} twice", sno);
                        prop_assert!(sno.instant() <= now && now < sno.instant() + 4_000);
                        let parts = sno.parts();
                        prop_assert!((40000..40002).contains(&parts.partition) && (10..16).contains(&parts.sequence));
                    }
                    Answer::Wait { until } | Answer::Ahead { until } | Answer::ClockBehind { until } => {
                        prop_assert!(until > now);
                        // At that instant, the generator makes an ID, waits for the next unit, or keeps pace in this one.
                        let mut later = generator.clone();
                        let answer = later.next(until, &NoWords, 9);
                        prop_assert!(matches!(answer, Answer::Issue(_) | Answer::Wait { .. } | Answer::Ahead { .. }), "{:?}", answer);
                    }
                    Answer::Outside { .. } | Answer::Exhausted | Answer::Dropped => prop_assert!(false),
                }
            }
        }
    }
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

/// A call: the units that the clock showed, the metabyte, the bytes of the ID, and the state afterwards: the highest unit,
/// the highest unit stepped back from, the drifts, the sequence.
#[derive(Deserialize)]
struct TraceStep(Vec<u64>, u8, String, u64, u64, u64, u64);

#[test]
fn generators_follow_the_traces_of_the_original() {
    let traces: Vec<Trace> = serde_json::from_str(include_str!("../../../tests/vectors/sno_traces.json")).unwrap();
    assert_eq!(traces.len(), 9);
    for trace in traces {
        let [first, last] = trace.sequences;
        let partition = Numbers { first: trace.partition, count: 1 };
        let lanes = in_one_step(partition, Numbers { first, count: last - first + 1 });
        // The original continues within the highest unit. Here a successor does not, so this generator makes these snos again.
        let used = if trace.sequence == 0 { 0 } else { trace.sequence - first + 1 };
        let highest = EPOCH + trace.highest as i64 * UNIT;
        let progress = Progress {
            start: if used == 0 { highest } else { highest - UNIT },
            stepped_back_from: EPOCH + trace.left_behind as i64 * UNIT,
            drifts: trace.drifts,
        };
        let start = Start { free_from: i64::MIN, resumed: Some(progress) };
        let mut generator = Generator::start(ANY, &lanes, 0, start);
        for _ in 0..used {
            assert!(matches!(generator.next(highest, &NoWords, 0), Answer::Issue(_)), "{}", trace.name);
        }
        for TraceStep(clock, metabyte, hex, highest, left_behind, drifts, sequence) in trace.steps {
            let (final_reading, waiting) = clock.split_last().unwrap();
            for unit in waiting {
                let answer = generator.next(EPOCH + *unit as i64 * 4_000, &NoWords, metabyte);
                assert!(!matches!(answer, Answer::Issue(_)), "{}: {answer:?} at {unit}", trace.name);
            }
            let answer = generator.next(EPOCH + *final_reading as i64 * 4_000, &NoWords, metabyte);
            let wanted = Sno::from_bytes(bytes(&hex));
            assert_eq!(answer, Answer::Issue(wanted), "{}", trace.name);
            let Progress { start, stepped_back_from, drifts: drifted, .. } = generator.progress();
            let units = [start, stepped_back_from].map(|start| ((start - EPOCH) / UNIT) as u64);
            assert_eq!((units, drifted), ([highest, left_behind], drifts), "{}", trace.name);
            assert_eq!(u64::from(wanted.parts().sequence), sequence, "{}", trace.name);
        }
    }
}

/// The words do not say how far a lane of snos is taken, so the successor of a generator begins in a later unit. If the clock has
/// stepped back, the successor goes back like the generator before it.
#[test]
fn a_successor_leaves_the_rest_of_the_unit() {
    let lanes = in_one_step(Numbers { first: 0x8000, count: 1 }, Numbers { first: 0, count: 9 });
    let noon = EPOCH + 1_000 * UNIT;
    let mut generator = above(&lanes, noon - 10 * UNIT);
    assert!(matches!(generator.next(noon, &NoWords, 0), Answer::Issue(_)));
    let resumed = Some(generator.progress());
    let successor = || Generator::start(ANY, &lanes, 0, Start { free_from: i64::MIN, resumed });
    let parts = |answer: Answer<Sno>| match answer {
        Answer::Issue(sno) => sno.parts(),
        answer => panic!("{answer:?}"),
    };
    let mut next = successor();
    assert_eq!(next.next(noon + UNIT - 1, &NoWords, 0), Answer::Wait { until: noon + UNIT });
    assert!(!parts(next.next(noon + UNIT, &NoWords, 0)).tick_tock);
    let mut back = successor();
    assert!(parts(back.next(noon - UNIT, &NoWords, 0)).tick_tock);
    assert!(parts(back.next(noon, &NoWords, 0)).tick_tock);
    // The unit that the first generator stepped back from has not passed.
    assert_eq!(back.next(noon - UNIT, &NoWords, 0), Answer::ClockBehind { until: noon });
}

#[test]
fn partitions_of_a_lane_are_used_one_after_the_other() {
    let lanes = in_one_step(Numbers { first: 0x8000, count: 2 }, Numbers { first: 0, count: 65536 });
    let mut generator = above(&lanes, EPOCH);
    assert_eq!(generator.next(EPOCH + 3_999, &NoWords, 0), Answer::Wait { until: EPOCH + 4_000 });
    let ids: Vec<Answer<Sno>> = (0..131_072).map(|_| generator.next(EPOCH + 4_000, &NoWords, 0)).collect();
    let part = |answer: &Answer<Sno>| match answer {
        Answer::Issue(sno) => (sno.parts().partition, sno.parts().sequence),
        other => panic!("{other:?}"),
    };
    assert_eq!(ids.iter().map(part).collect::<std::collections::HashSet<_>>().len(), 131_072);
    assert_eq!((part(&ids[65_535]), part(&ids[65_536])), ((0x8000, 65535), (0x8001, 0)));
    assert_eq!(generator.next(EPOCH + 4_000, &NoWords, 0), Answer::Wait { until: EPOCH + 8_000 });
    assert!(matches!(generator.next(i64::MAX, &NoWords, 0), Answer::Exhausted));
    assert!(matches!(generator.next(i64::MIN, &NoWords, 0), Answer::ClockBehind { .. }));
}

#[test]
fn no_sno_is_made_after_the_last_unit() {
    let lanes = in_one_step(Numbers { first: 7, count: 1 }, Numbers { first: 0, count: 9 });
    let mut generator = above(&lanes, LAST - UNIT);
    let last = Sno::max_at(LAST).unwrap();
    assert!(
        matches!(generator.next(LAST + UNIT - 1, &NoWords, 0), Answer::Issue(sno) if sno.instant() == last.instant())
    );
    assert_eq!(generator.next(LAST + UNIT, &NoWords, 0), Answer::Exhausted);
    assert!(matches!(generator.next(LAST + UNIT - 1, &NoWords, 0), Answer::Issue(_)));
}

#[test]
fn automatic_partitions_are_above_those_of_callers() {
    let whole = |id, count| Part::whole(Node::new(id, count).unwrap());
    let automatic = |id, count| SnoSource { partition: None }.lanes(whole(id, count), 122).unwrap().workers;
    assert_eq!(automatic(0, 1), Numbers { first: 32_768, count: 32_768 });
    assert_eq!(automatic(3, 4), Numbers { first: 57_344, count: 8_192 });
    let of_caller = |partition| SnoSource { partition: Some(partition) }.lanes(whole(0, 1), 122);
    assert_eq!(of_caller(32_767).unwrap().workers, Numbers { first: 32_767, count: 1 });
    for partition in [-1, 32_768] {
        assert!(matches!(of_caller(partition), Err(Error::SnoPart { max: 32_767, .. })), "{partition}");
    }
    let key = |partition| SnoSource { partition }.key();
    assert!(key(None) != key(Some(0)) && key(Some(0)) != key(Some(1)), "each partition must have a key of its own");
    let [words, others] = [0, 32_767].map(|partition| SnoSource { partition: Some(partition) }.words());
    assert_eq!(words, others, "there are too many partitions of callers to have words each");
}
