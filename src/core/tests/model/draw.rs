//! Draws stories: what happens how often.

use crate::layouts::{KINDS, LAYOUTS, SECOND};
use crate::operator::Ending;
use crate::server::SLOTS;
use crate::story::{Event, SERVERS, Story};
use crate::transaction::How;

/// Draws numbers: Vigna's splitmix64.
pub struct Chance(pub u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn between(&mut self, from: i64, until: i64) -> i64 {
        from + (self.next() % (until - from) as u64) as i64
    }

    fn is(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// Draws a story of up to so many events.
    pub fn story(&mut self, most: usize) -> Story {
        let own_numbers = self.is(2);
        let count = 1 + self.below(most);
        Story { own_numbers, events: (0..count).map(|_| (self.below(SERVERS), self.event())).collect() }
    }

    fn step(&mut self) -> i64 {
        match self.below(13) {
            0..6 => self.between(0, 3000),
            6..8 => self.between(-3000, 0),
            8..11 => self.between(0, 5 * SECOND),
            11 => self.between(-5 * SECOND, 0),
            _ => self.between(-7200 * SECOND, 7200 * SECOND),
        }
    }

    fn event(&mut self) -> Event {
        let slot = self.below(SLOTS);
        let kind = if self.is(4) { LAYOUTS + 1 + self.below(KINDS - LAYOUTS - 1) } else { self.below(LAYOUTS + 1) };
        match self.below(120) {
            0..36 => Event::Make { slot, kind, count: 1 + self.below(23) },
            36..39 => Event::MakeOfMany { slot, exits: self.is(2) },
            39..44 => Event::Connect { slot, database: self.below(2), is_traced: !self.is(8) },
            44..53 => Event::Exit { slot, in_order: !self.is(10) },
            53..59 => Event::Begin { slot, writes: self.is(4), has_one_snapshot: self.is(3) },
            59..65 => {
                let how = [How::Commit, How::Commit, How::RollBack, How::Prepare][self.below(4)];
                Event::End { slot, how, stops: self.is(4) }
            }
            65..67 => Event::EndPrepared { which: self.below(2), commits: !self.is(3) },
            67..71 => Event::Ask { slot, is_newer: self.is(6), stops: self.is(3) },
            71 => Event::Finish { slot },
            72..82 => Event::Pass { by: self.step().abs() },
            82..88 => Event::Step { by: self.step() },
            88..90 => {
                let by = if self.is(2) { self.between(-5000, 5000) } else { self.between(-70 * SECOND, 5 * SECOND) };
                Event::ToSkipped { by }
            }
            90..95 => {
                let ending = [Ending::InOrder, Ending::InOrder, Ending::Crash, Ending::Reboot, Ending::LosesFile];
                let (step, slots) = (self.step(), (SLOTS + self.below(4)) as u32);
                Event::Restart { ending: ending[self.below(5)], step, slots, preloads: self.is(4) }
            }
            95..98 => Event::Accept { go_on: self.is(2) },
            98 => Event::StartAbove { ahead: self.step() },
            99 => Event::DiskFails(self.is(5)),
            100..110 => Event::Replay { most: if self.is(3) { 1 + self.below(5) } else { usize::MAX } },
            110..112 => Event::Promote,
            112 => Event::SwitchOver,
            113..116 => Event::Follow { source: self.below(SERVERS), rebuilds: self.is(4) },
            116 => Event::BackUp,
            117 => Event::Restore { without: self.below(6), step: self.step() },
            118 => Event::RecountOne { count: [4, 5, 8][self.below(3)] },
            _ => Event::RecountAll { count: [4, 5, 8][self.below(3)] },
        }
    }
}
