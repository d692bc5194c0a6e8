//! Kinds of IDs: layouts so small that sessions use up their ticks, with ticks from a microsecond to a day and with one to four lanes,
//! and partitions of sno, the automatic ones and callers'.

use std::sync::LazyLock;

use flake_core::ledger::cursors::own::OwnIds;
use flake_core::ledger::host::{Host, Page};
use flake_core::ledger::time::begin::parts;
use flake_core::{
    Answer, Field, IdSource, Lanes, Layout, Numbers, PARTS, Part, Place, Resumable, Role, Sno, SnoSource, TURNS,
};

use crate::host::Trouble;
use crate::machine::Memory;

/// The tick of sno.
const TICK: i64 = 4000;
pub const SECOND: i64 = 1_000_000;
pub const HOUR: i64 = 3_600 * SECOND;
/// Ten o'clock, when every story begins.
pub const MORNING: i64 = 1_780_000_000 * SECOND;
/// Their ticks are a quarter of a second, a millisecond, a second, a microsecond, a day, and ten seconds.
pub const LAYOUTS: usize = 6;
/// The first kind of sno: the automatic partitions. The others are callers' partitions.
pub const SNO: usize = LAYOUTS;
pub const KINDS: usize = SNO + 3;
/// The kinds whose ticks are longer than time is reserved ahead.
pub const DAY: usize = 4;
pub const TEN: usize = 5;

static OF_KINDS: LazyLock<[Layout; LAYOUTS]> = LazyLock::new(|| {
    let layout = |name: &str, tick: i64, sequence_bits| {
        let field = |name: &'static str, bits, role| Field { name: name.into(), bits, role };
        let fields = vec![
            field("timestamp", 42, Role::Timestamp { reversed: flake_core::Reversal::Never }),
            field("worker", 4, Role::Worker { rank: 0 }),
            field("sequence", sequence_bits, Role::Sequence),
        ];
        Layout::new(name.to_owned(), MORNING - 10 * 24 * HOUR, tick, fields).unwrap()
    };
    [
        layout("quarter", SECOND / 4, 3),
        layout("millisecond", 1000, 3),
        layout("second", SECOND, 5),
        layout("microsecond", 1, 3),
        layout("day", 24 * HOUR, 6),
        layout("ten seconds", 10 * SECOND, 3),
    ]
});

pub fn name(kind: usize) -> String {
    match OF_KINDS.get(kind) {
        Some(layout) => format!("'{}'", layout.name()),
        None if kind == SNO => "sno".to_owned(),
        None => format!("sno partition {kind}"),
    }
}

/// For each layout, how many lanes a node has, and how many IDs of a step a lane has. None follows the rule of [`Lanes::new`], which
/// gives several lanes and several steps to layouts with many more IDs only.
const DIVISIONS: [Option<(u64, u64)>; LAYOUTS] =
    [Some((2, 2)), Some((4, 1)), Some((1, 8)), None, Some((2, 4)), Some((1, 2))];

fn lanes(kind: usize, part: Part) -> Lanes {
    let Some(layout) = OF_KINDS.get(kind) else {
        let (node, parts) = (part.node(), u64::from(PARTS));
        let count = 96 / (u64::from(node.count()) * parts);
        let number = u64::from(node.id()) * parts + u64::from(part.turn() + TURNS * part.generation());
        let partition = Numbers { first: kind as u64, count: 1 };
        let sequences = Numbers { first: number * count, count };
        return Lanes {
            count: 2,
            ids_per_step: 1,
            steps: count / 2,
            ..Lanes::shared(partition, sequences, TICK, true)
        };
    };
    let lanes = Lanes::new(layout, part).unwrap();
    match DIVISIONS[kind] {
        None => lanes,
        Some((count, ids_per_step)) => {
            let steps = lanes.workers.count * lanes.sequences.count / (count * ids_per_step);
            Lanes { count, ids_per_step, steps, ..lanes }
        }
    }
}

/// The IDs of a kind that a server has made, as it knows in the database with a page; None for sno.
pub fn own_ids(memory: &Memory, page: &Page, kind: usize) -> Option<OwnIds<'static>> {
    let (ledger, era) = (memory.state.lock().unwrap().ledger?, memory.shared.era());
    let (layout, page) = (OF_KINDS.get(kind)?, page.record().ok()?);
    Some(OwnIds::read(
        (&memory.shared, &memory.lines),
        (&ledger, era, &page),
        (layout, layout.cursors(), lanes(kind, ledger.part())),
    ))
}

/// An ID, and when its tick begins and ends.
#[derive(Debug, Clone, Copy)]
pub struct Id {
    pub bits: u128,
    pub start: i64,
    pub end: i64,
}

impl Id {
    /// The number of a layout's ID.
    pub const fn number(&self) -> u64 {
        (self.bits >> 8) as u64
    }
}

/// A session's generator of one kind.
pub enum Own {
    Layout(Box<Resumable<&'static Layout>>),
    Sno(Box<Resumable<SnoSource>>),
}

impl Own {
    pub fn begin<H: Host<Error = Trouble>>(host: &mut H, kind: usize, proc: u32) -> Result<Self, Trouble> {
        let lanes = parts(host)?.map(|part| lanes(kind, part));
        fn begin<S: IdSource, H: Host<Error = Trouble>>(
            host: &mut H,
            source: S,
            lanes: [Lanes; 2],
            proc: u32,
        ) -> Result<Box<Resumable<S>>, Trouble> {
            let place = Place::find(host, &source, lanes, lanes[0].of(proc), 1).unwrap();
            Ok(Box::new(Resumable::begin(host, source, &place)?))
        }
        Ok(match OF_KINDS.get(kind) {
            Some(layout) => Self::Layout(begin(host, layout, lanes, proc)?),
            None => {
                let partition = (kind > SNO).then_some(kind as i32);
                Self::Sno(begin(host, SnoSource { partition }, lanes, proc)?)
            }
        })
    }

    pub fn invalidate_page(&mut self) {
        match self {
            Self::Layout(own) => own.invalidate_page(),
            Self::Sno(own) => own.invalidate_page(),
        }
    }

    /// Makes an ID, unless the session must wait. `admit` publishes the transaction's bound, or returns a later watermark.
    pub fn next<H: Host<Error = Trouble>>(
        &mut self,
        host: &mut H,
        kind: usize,
        admit: impl FnMut(&mut H, u64, i64) -> Result<(), i64>,
    ) -> Result<Answer<Id>, Trouble> {
        fn of<I>(answer: Answer<I>, id: impl FnOnce(I) -> Id) -> Answer<Id> {
            match answer {
                Answer::Issue(made) => Answer::Issue(id(made)),
                Answer::Wait { until } => Answer::Wait { until },
                Answer::Ahead { until } => Answer::Ahead { until },
                Answer::Behind { until } => Answer::Behind { until },
                Answer::Closed { until } => Answer::Closed { until },
                Answer::Dropped => Answer::Dropped,
                Answer::Exhausted => Answer::Exhausted,
            }
        }
        match self {
            Self::Layout(own) => {
                let outcome = own.next(host, admit, || 0)?;
                let layout = &OF_KINDS[kind];
                Ok(of(outcome, |id| {
                    let start = layout.start_of(layout.unpack(id).unwrap().tick);
                    Id { bits: u128::from(id) << 8 | kind as u128, start, end: start + layout.tick_length() }
                }))
            }
            Self::Sno(own) => {
                let outcome = own.next(host, admit, 1)?;
                Ok(of(outcome, |id| {
                    let bits = Sno::bytes(&id).iter().fold(0, |all, byte| all << 8 | u128::from(*byte));
                    Id { bits: bits << 8 | SNO as u128, start: id.instant(), end: id.end() }
                }))
            }
        }
    }
}
