//! Generators against scripted clocks: the IDs that the originals make, and every answer that a generator can give.

use flake_core::{Error, Field, Generator, Layout, Numbers, SequenceRule, Share, Step, built_in};

fn whole_worker(layout: &Layout, worker: u64) -> Share {
    Share { workers: Numbers { first: worker, count: 1 }, sequences: Numbers { first: 0, count: layout.sequences() } }
}

/// A built-in layout with another epoch, in milliseconds.
fn with_epoch(name: &str, epoch_ms: i64) -> Layout {
    let layout = built_in(name).unwrap();
    let fields: Vec<Field> = layout.fields().to_vec();
    Layout::new(name.to_owned(), epoch_ms * 1000, layout.tick_length(), fields, layout.rule()).unwrap()
}

fn at(generator: &mut Generator, unix_ms: i64) -> Step {
    generator.next(unix_ms * 1000, || panic!("no random bits here"))
}

#[test]
fn trace_of_the_textbook() {
    let layout = built_in("snowflake").unwrap();
    let mut generator = Generator::starting_above(layout, &whole_worker(layout, 67), 1640995199999 * 1000, 0).unwrap();
    for (clock, id) in [
        (1640995200000, 132271570944274432),
        (1640995200000, 132271570944274433),
        (1640995200001, 132271570948468736),
        (1640995200001, 132271570948468737),
        (1640995200001, 132271570948468738),
        (1640995200007, 132271570973634560),
    ] {
        assert_eq!(at(&mut generator, clock), Step::Issue(id));
    }
}

#[test]
fn a_clock_that_steps_back_leaves_the_state() {
    let layout = built_in("snowflake").unwrap();
    let mut generator = Generator::starting_above(layout, &whole_worker(layout, 67), 1640995199999 * 1000, 0).unwrap();
    assert_eq!(at(&mut generator, 1640995200000), Step::Issue(132271570944274432));
    assert_eq!(at(&mut generator, 1640995200000), Step::Issue(132271570944274433));
    let behind = Step::ClockBehind { until: 1640995200000 * 1000 };
    assert_eq!(at(&mut generator, 1640995199999), behind);
    assert_eq!(at(&mut generator, 1540995199999), behind);
    assert_eq!(generator.next(i64::MIN, || 0), behind);
    assert_eq!(at(&mut generator, 1640995200000), Step::Issue(132271570944274434));
    assert_eq!(at(&mut generator, 1640995200001), Step::Issue(132271570948468736));
}

#[test]
fn a_used_up_share_waits_even_while_the_clock_goes_back() {
    let layout = built_in("snowflake").unwrap();
    let mut generator = Generator::starting_above(layout, &whole_worker(layout, 67), 1640995199999 * 1000, 0).unwrap();
    let ids: Vec<Step> = (0..4096).map(|_| at(&mut generator, 1640995200000)).collect();
    assert_eq!(ids[4095], Step::Issue(132271570944278527));
    let wait = Step::Wait { until: 1640995200001 * 1000 };
    assert_eq!(at(&mut generator, 1640995200000), wait);
    // The commonly copied listing stops waiting here, and issues this millisecond's IDs twice.
    assert_eq!(at(&mut generator, 1640995199999), Step::ClockBehind { until: 1640995200000 * 1000 });
    assert_eq!(at(&mut generator, 1640995200000), wait);
    assert_eq!(at(&mut generator, 1640995200001), Step::Issue(132271570948468736));
    assert_eq!(generator.issued(), 4097);
}

#[test]
fn trace_of_snowflake_si_rolls_through_its_sequence() {
    let layout = with_epoch("si", 1600000000000);
    let mut generator = Generator::starting_above(&layout, &whole_worker(&layout, 5), 1699999999999 * 1000, 0).unwrap();
    for (clock, id) in [
        (1700000000000, 819200000001280),
        (1700000000000, 819200000001281),
        (1700000000000, 819200000001282),
        (1700000000001, 819200000009475),
        (1700000000001, 819200000009476),
        (1700000000005, 819200000042245),
    ] {
        assert_eq!(at(&mut generator, clock), Step::Issue(id));
    }
    // Six of the next 256 are used. The original's 257th ID of a millisecond is a duplicate; ours has to wait.
    let next: Vec<Step> = (0..256).map(|_| at(&mut generator, 1700000000006)).collect();
    assert_eq!(next[0], Step::Issue((100000000006 << 13) | (5 << 8) | 6));
    assert_eq!(next[255], Step::Issue((100000000006 << 13) | (5 << 8) | 5));
    assert_eq!(at(&mut generator, 1700000000006), Step::Wait { until: 1700000000007 * 1000 });
}

#[test]
fn trace_of_the_60_bit_id() {
    let layout = built_in("base64id").unwrap();
    let mut generator =
        Generator::starting_above(layout, &whole_worker(layout, 7), 1699999999999 * 1000, 1021).unwrap();
    for (random, (clock, id)) in [
        (1700000000000, 48355318802938368),
        (1700000000100, 48355318802938881),
        (1700000000999, 48355318802939394),
        (1700000001000, 48355319070851075),
        (1700000001001, 48355319070851588),
    ]
    .into_iter()
    .enumerate()
    {
        assert_eq!(generator.next(clock * 1000, || random as u64 | 0xE00), Step::Issue(id));
    }
    let second = 1700000000000 * 1000;
    // Here, the original issues an ID of 1699999999 again.
    assert_eq!(generator.next(second - 1, || 0), Step::ClockBehind { until: second + 1_000_000 });
}

#[test]
fn trace_of_the_eight_byte_id() {
    let layout = built_in("uniqueid").unwrap();
    let share = whole_worker(layout, (3 << 6) | 7);
    let mut generator = Generator::starting_above(layout, &share, 1699999999999 * 1000, 0).unwrap();
    for (clock, id) in [
        (1700000000000, 0x0016a7f3d1800073),
        (1700000000000, 0x0016a7f3d1810073),
        (1700000000001, 0x8016a7f3d1800073),
        (1700000000001, 0x8016a7f3d1810073),
        (1700000000009, 0x9016a7f3d1800073),
    ] {
        assert_eq!(at(&mut generator, clock), Step::Issue(id));
    }
}

#[test]
fn nothing_is_issued_in_the_tick_of_creation() {
    let layout = built_in("base64id").unwrap();
    let mut generator = Generator::starting_above(layout, &whole_worker(layout, 0), 1700000000000 * 1000, 0).unwrap();
    assert_eq!(generator.last_tick_start(), None);
    assert_eq!(generator.next(1700000000999 * 1000, || 0), Step::Wait { until: 1700000001000 * 1000 });
    assert!(matches!(generator.next(1700000001000 * 1000, || 0), Step::Issue(_)));
    assert_eq!(generator.last_tick_start(), Some(1700000001000 * 1000));
}

#[test]
fn time_before_the_epoch_and_after_the_last_tick() {
    let layout = built_in("si").unwrap();
    let share = whole_worker(layout, 0);
    let end = layout.start_of(layout.last_tick()) + layout.tick_length();
    let before = Generator::starting_above(layout, &share, layout.epoch() - 1, 0);
    assert!(matches!(before, Err(Error::InstantOutOfRange { .. })), "{before:?}");
    let after = Generator::starting_above(layout, &share, end, 0);
    assert!(matches!(after, Err(Error::Exhausted { .. })), "{after:?}");
    let mut generator = Generator::starting_above(layout, &share, end - 2000, 0).unwrap();
    assert_eq!(generator.next(end - 1, || 0), Step::Issue(layout.last_tick() << 13));
    assert_eq!(generator.next(end, || 0), Step::Exhausted);
    assert_eq!(generator.next(i64::MAX, || 0), Step::Exhausted);
    assert_eq!(generator.next(end - 1, || 0), Step::Issue((layout.last_tick() << 13) | 1));
}

#[test]
fn a_session_of_one_server_makes_more_than_4096_ids_per_millisecond() {
    let layout = built_in("twitter").unwrap();
    let share =
        Share { workers: Numbers { first: 8, count: 8 }, sequences: Numbers { first: 0, count: layout.sequences() } };
    let mut generator = Generator::starting_above(layout, &share, 1700000000000 * 1000, 0).unwrap();
    let mut last = 0;
    for _ in 0..8 * 4096 {
        let Step::Issue(id) = at(&mut generator, 1700000000001) else { panic!("the share is larger than that") };
        assert!(id > last);
        last = id;
    }
    assert_eq!(at(&mut generator, 1700000000001), Step::Wait { until: 1700000000002 * 1000 });
    assert_eq!(layout.rule(), SequenceRule::Reset);
}
