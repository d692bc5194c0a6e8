//! What IDs are made of: small layouts, so that shares are used up, and more partitions of sno than a slot stores the
//! progress of.

use std::sync::LazyLock;

use flake_core::resume::{LedgerAccess, Origin, Resumable};
use flake_core::{Answer, Field, Generator, Layout, Node, Numbers, Role, SequenceRule, Share, Slot, Sno, SnoGenerator};

pub const SECOND: i64 = 1_000_000;
/// Ten o'clock, when all stories begin.
pub const MORNING: i64 = 1_780_000_000 * SECOND;
pub const LAYOUTS: usize = 4;
pub const KINDS: usize = LAYOUTS + 9;
/// Microseconds of sno's unit.
const UNIT: i64 = 4000;

/// Ticks of a millisecond, a second (rolling) and a minute, which have steps of one ID; and ticks of two steps.
static OF_KINDS: LazyLock<[Layout; LAYOUTS]> = LazyLock::new(|| {
    let layout = |name: &str, tick: i64, sequence_bits, rule| {
        let field = |name: &'static str, bits, role| Field { name: name.into(), bits, role };
        let fields = vec![
            field("timestamp", 41, Role::Timestamp { reversed: flake_core::Reversal::Never }),
            field("worker", 3, Role::Worker { rank: 0 }),
            field("sequence", sequence_bits, Role::Sequence),
        ];
        Layout::new(name.to_owned(), MORNING - 86_400 * SECOND, tick, fields, rule).unwrap()
    };
    [
        layout("short", 1000, 4, SequenceRule::Reset),
        layout("long", SECOND, 4, SequenceRule::Rolling),
        layout("longer", 60 * SECOND, 4, SequenceRule::Reset),
        layout("shortest", 32, 5, SequenceRule::Rolling),
    ]
});

pub fn name(kind: usize) -> String {
    match OF_KINDS.get(kind) {
        Some(layout) => format!("'{}'", layout.name()),
        None => format!("sno partition {kind}"),
    }
}

fn share_of_sno(kind: usize, node: Node, slot: Slot) -> Share {
    let count = 240 / u64::from(node.count());
    let sequences = Numbers { first: count * u64::from(node.id()), count };
    Share::of("sno", Numbers { first: kind as u64, count: 1 }, sequences, slot, 3).unwrap()
}

/// An ID, when its tick began, and how long that lasts.
#[derive(Clone, Copy)]
pub struct Made {
    pub id: u128,
    pub start: i64,
    pub length: i64,
}

/// A session's generator of one kind.
pub enum Own {
    Layout(Box<Resumable<Generator>>),
    Sno(Box<Resumable<SnoGenerator>>),
}

impl Own {
    pub fn begin(access: &impl LedgerAccess, kind: usize, node: Node, slot: Slot) -> Self {
        match OF_KINDS.get(kind) {
            Some(layout) => {
                let share = Share::new(layout, node, slot).unwrap();
                let origin = Origin { layout: layout.clone(), share, position: 5 };
                Self::Layout(Box::new(Resumable::begin(access, layout.key(), origin)))
            }
            None => Self::Sno(Box::new(Resumable::begin(access, kind as u64, share_of_sno(kind, node, slot)))),
        }
    }

    /// Makes an ID, unless the session had to wait. `admit` reads the clock, and says until when to wait if it has to.
    pub fn next<A: LedgerAccess>(
        &mut self,
        access: &A,
        kind: usize,
        mut admit: impl FnMut() -> (i64, Result<(), i64>),
    ) -> Option<Made> {
        match self {
            Self::Layout(own) => {
                let answer = own.next(access, |generator| {
                    let (now, admitted) = admit();
                    (now, admitted.map_or_else(|until| Answer::ClockBehind { until }, |()| generator.next(now, || 0)))
                });
                let Ok(Answer::Issue(id)) = answer else { return None };
                let start = own.generator.last_tick_start()?;
                Some(Made { id: u128::from(id) << 8 | kind as u128, start, length: OF_KINDS[kind].tick_length() })
            }
            Self::Sno(own) => {
                let answer = own.next(access, |generator| {
                    let (now, admitted) = admit();
                    (now, admitted.map_or_else(|until| Answer::ClockBehind { until }, |()| generator.next(now, 1)))
                });
                let Ok(Answer::Issue(id)) = answer else { return None };
                let bytes = Sno::bytes(&id).iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
                Some(Made { id: bytes << 8 | LAYOUTS as u128, start: own.generator.last_unit_start()?, length: UNIT })
            }
        }
    }

    pub fn final_progress(&self) -> flake_core::FinalProgress {
        match self {
            Self::Layout(own) => own.final_progress(),
            Self::Sno(own) => own.final_progress(),
        }
    }
}
