//! Blocks: how sessions take IDs from the cursors of lanes, and when they take nothing.

use std::collections::HashSet;

use flake_core::{Answer, Cursors, Lanes, Layout, Node, OwnCursors, Part, Remaining};

mod tick;
use tick::{Server, TICK, layout, si, twitter};

#[test]
fn a_session_begins_at_the_steps_of_the_clock_and_may_be_ahead_of_them() {
    let server = Server::of(twitter(), 1, TICK);
    let mut session = server.session(3);
    let mut at = |into_tick| server.number(&mut session, into_tick).unwrap();
    assert_eq!(at(0), server.first_of(3, 0));
    assert_eq!(at(15), server.first_of(3, 0) + 1);
    // 1000 us * 31 / 63 = 492.06 us
    assert_eq!(at(492), server.first_of(3, 30));
    assert_eq!(at(493), server.first_of(3, 31));
    // The clock may go back within the tick.
    assert_eq!(at(2), server.first_of(3, 31) + 1);
    for more in 2..server.lanes.ids_per_step {
        assert_eq!(at(493), server.first_of(3, 31) + more);
    }
    // The next place may be the lowest one of the next step.
    assert_eq!(at(493), server.first_of(3, 31) + server.lanes.ids_per_step);
    assert_eq!(at(999), server.first_of(3, 62));
    assert_eq!(session.remaining(TICK + 999), Remaining { of_tick: 1, of_step: 1 });
    assert_eq!(session.remaining(TICK + 500), Remaining { of_tick: 500, of_step: 500 });
    assert_eq!(session.remaining(TICK + 1000), Remaining { of_tick: 0, of_step: 0 });
}

#[test]
fn a_block_has_as_many_ids_as_the_session_has_made_in_16_microseconds() {
    let server = Server::of(twitter(), 1, TICK);
    let mut session = server.session(0);
    let mut blocks = |into_tick, count| {
        for _ in 0..count {
            server.number(&mut session, into_tick).unwrap();
        }
        let base = server.tick * server.lanes.size();
        let taken = server.cursors.taken.take().into_iter();
        taken.map(|(lane, cursor)| (lane, cursor - base)).collect::<Vec<_>>()
    };
    assert_eq!(blocks(0, 5), [(0, 1), (0, 2), (0, 4), (0, 8)]);
    assert_eq!(blocks(15, 3), []);
    // The rest of the step is left out. There have been 8 IDs.
    let of_step = |step| step * server.lanes.ids_per_step;
    assert_eq!(blocks(16, 9), [(0, of_step(1) + 8), (0, of_step(1) + 16)]);
    // 32 microseconds later, the session has made nothing lately.
    assert_eq!(blocks(48, 2), [(0, of_step(3) + 1), (0, of_step(3) + 2)]);
    // A session that makes an ID from time to time takes nothing else.
    for step in (6..63).step_by(3) {
        assert_eq!(blocks(16 * step as i64, 1), [(0, of_step(step) + 1)]);
    }
}

#[test]
fn a_block_ends_with_its_step() {
    let server = Server::of(si(), 1, TICK);
    // Its lane has the lowest place in the first step.
    server.all(&mut server.session(server.tick % 2), 0);
    let ends = server.cursors.taken.borrow().iter().map(|(_, cursor)| cursor % 65).collect::<Vec<_>>();
    assert_eq!(ends.iter().filter(|&&end| end == 0).count(), 2 * 17, "each place of 17 steps: {ends:?}");
}

#[test]
fn a_cursor_is_raised_from_its_present_value_only() {
    let cursors = OwnCursors::new(&Lanes::new(si(), Part::whole(Node::new(0, 1).unwrap())).unwrap());
    assert!(cursors.swap(1, 0, 0, 7) && !cursors.swap(1, 0, 0, 9));
    assert_eq!([0, 1].map(|lane| cursors.load(lane, 0)), [0, 7]);
}

/// Lanes at higher places are next, and then the next step from its lowest place on.
#[test]
fn a_session_whose_lane_is_used_up_takes_from_others_in_rising_order() {
    for own in [0, 1] {
        let server = Server::of(si(), 1, TICK);
        let (numbers, _) = server.all(&mut server.session(own), 0);
        let (first, end) = (server.first_of(own, 0), 17 * 130);
        assert!(numbers.into_iter().eq(first..end), "a lone session makes all IDs from its first one on");
        // A session of the other lane finds nothing below that. A cursor passes over what is left out.
        assert_eq!(server.number(&mut server.session(1 - own), 0), Ok(end));
    }
}

/// Another session has used up the step of the first session's last block, which is ahead of the clock. Other lanes have IDs of the
/// steps before, which are lower.
#[test]
fn a_session_that_is_ahead_of_the_clock_does_not_go_back() {
    let server = Server::of(twitter(), 1, TICK);
    let size = server.lanes.ids_per_step;
    let mut session = server.session(5);
    let of_third_step = server.first_of(5, 2);
    assert_eq!(server.number(&mut session, 32), Ok(of_third_step));
    let base = server.tick * server.lanes.size();
    assert!(server.cursors.swap(5, 0, base + 2 * size + 1, base + 3 * size));
    let next: Vec<u64> = (0..2).map(|_| server.number(&mut session, 0).unwrap()).collect();
    assert_eq!(next, [of_third_step + size, of_third_step + size + 1]);
}

#[test]
fn a_cursor_ahead_of_the_reading_means_that_the_clock_is_behind() {
    for (layout, nodes) in [(twitter(), 1), (si(), 32), (twitter(), 1024)] {
        let size = Server::of(layout, nodes, TICK).lanes.size();
        let last =
            1000 * (Server::of(layout, nodes, TICK).lanes.steps - 1) / Server::of(layout, nodes, TICK).lanes.steps;
        let last = last as i64 + 1 - 512;
        for (ahead, until) in [(1, 1000), (size, 1000 + last), (size + 1, 2000), (5 * size, 5000 + last)] {
            let server = Server::of(layout, nodes, TICK);
            let end = (server.tick + 1) * size;
            assert!(server.cursors.swap(1, 0, 0, end + ahead));
            assert_eq!(server.number(&mut server.session(1), 999), Err(Answer::Behind { until: TICK + until }));
            // Sessions of other lanes make IDs, and leave out this lane.
            let numbers = server.all(&mut server.session(0), 600).0;
            let of_lane: HashSet<_> = (0..server.lanes.steps).map(|step| server.first_of(1, step)).collect();
            let ids_per_step = server.lanes.ids_per_step;
            assert!(!numbers.is_empty());
            assert!(numbers.iter().all(|number| !of_lane.contains(&(number / ids_per_step * ids_per_step))));
        }
        // A lane at its end has nothing more, but others have.
        let server = Server::of(layout, nodes, TICK);
        let end = (server.tick + 1) * size;
        assert!(server.cursors.swap(1, 0, 0, end));
        assert!(server.number(&mut server.session(1), 600).is_ok());
        (0..server.lanes.count).for_each(|lane| _ = server.cursors.swap(lane, 0, server.cursors.load(lane, 0), end));
        assert_eq!(server.number(&mut server.session(1), 600), Err(Answer::Wait { until: TICK + 1000 }));
    }
}

/// The era has ended after the swap, so the same IDs may be taken again from the cursors of the next era.
#[test]
fn a_block_of_cursors_that_do_not_count_is_dropped() {
    let server = Server::of(twitter(), 1, TICK);
    let mut session = server.session(0);
    server.cursors.swaps_left.set(1);
    assert_eq!(server.number(&mut session, 0), Err(Answer::Dropped));
    assert_eq!(session.issued(), 0);
    server.cursors.swaps_left.set(100);
    assert_eq!(server.number(&mut session, 0), Ok(server.first_of(0, 0) + 1), "the first ID is lost");
    // The blocks before the last swap count.
    server.cursors.swaps_left.set(3);
    let mut ids = [0; 100];
    assert_eq!(session.fill(TICK, &server.cursors, &mut ids, || 0), 1 + 2);
    assert_eq!(session.next(TICK, &server.cursors, || 0), Answer::Dropped);
}

/// Time, worker and sequence fill the ID. A single lane of the first layout would need a cursor of 65 bits.
#[test]
fn the_last_tick_of_a_full_layout_has_ids() {
    // 4714-11-24 BC: the first instant of a timestamptz.
    const FIRST: i64 = -210_866_803_200_000_000;
    for (epoch, tick, bits) in [
        (FIRST, 1, [63, 0, 1]),
        (0, 1, [63, 0, 1]),
        (0, 2, [62, 1, 1]),
        (0, 16, [59, 2, 3]),
        (0, 17, [58, 0, 6]),
        (0, 32, [58, 6, 0]),
        (0, 33, [57, 0, 7]),
        (0, 1000, [53, 1, 10]),
        (0, 1_000_000, [43, 10, 11]),
    ] {
        let fields = layout(tick, bits).fields().to_vec();
        let made = Layout::new("made", epoch, tick, fields).unwrap();
        let start = made.start_of(made.last_tick());
        let server = Server::of(&made, 1, start);
        let mut session = server.session(0);
        let (numbers, end, _) = server.walk(&mut session);
        assert_eq!(end, Answer::Wait { until: start + tick });
        let made = numbers.iter().collect::<HashSet<_>>().len();
        assert_eq!(made as u64, server.lanes.count * server.lanes.size() - server.first_of(0, 0), "{bits:?}");
        assert_eq!(session.next(start + tick, &server.cursors, || 0), Answer::Exhausted);
    }
}
