//! Turns: which of four parts of a node's IDs a server makes, by the timeline of its WAL.
//!
//! The problem: after a promotion, the old primary may still run, and nobody knows how far it got. PostgreSQL gives each promotion a
//! new timeline, and writes a history file that lists the timelines before it. So a new timeline takes a turn that neither of the two
//! timelines before it has. Until turns repeat, the new primary has no ID in common with an old one whose own promotion it has replayed,
//! whatever the clocks say.
//!
//! The history alone does not suffice. It is cut short where an archive begins anew, and after pg_upgrade the timelines begin with 1
//! again. So the file of a server and the page of each database keep the last two timelines of their writer with their turns, and the
//! chain continues from there:
//!
//! 1. A timeline keeps the turn that is recorded for it.
//! 2. A new timeline takes the first of n, n + 1, n + 2 and n + 3 modulo 4, where n is its number, that neither of the two timelines
//!    before it has. A recorded timeline that is not in the history counts as one before it.
//!    After pg_upgrade, what is recorded of a cluster that was promoted counts as before timeline 1.
//! 3. The turn of the timeline before it must be recorded, or follow from what is recorded or from a history that begins with
//!    timeline 1. If it does not, the turn is unknown.

/// How many turns there are.
pub const TURNS: u32 = 4;
/// How many bits of a number have a timeline and its turn.
const BITS: u32 = 31;

/// In place of the number of a timeline, one of a cluster before pg_upgrade.
const EARLIER: u32 = (1 << (BITS - TURNS.ilog2())) - 1;

/// A timeline of the WAL, and its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// The number of the timeline, from 1 on.
    pub timeline: u32,
    /// Its turn, less than [`TURNS`].
    pub turn: u32,
}

/// The turns of a writer's timeline, and of the timeline before it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turns {
    /// The timeline before the writer's.
    pub before: Option<Turn>,
    /// The writer's timeline.
    pub last: Option<Turn>,
}

impl Turns {
    /// Nothing is recorded.
    pub const NONE: Self = Self { before: None, last: None };

    /// Returns the turns of a new timeline: none of these, nor of timelines that are recorded elsewhere, the nearest ones first.
    fn followed_by(self, timeline: u32, elsewhere: &[Self]) -> Self {
        let known = || std::iter::once(&self).chain(elsewhere);
        let nearest = known().filter_map(|turns| turns.last);
        let taken: Vec<Turn> = nearest.chain(known().filter_map(|turns| turns.before)).collect();
        let turns = || (0..TURNS).map(|more| timeline.wrapping_add(more) % TURNS);
        let free = (0..=taken.len())
            .rev()
            .find_map(|nearest| turns().find(|turn| taken[..nearest].iter().all(|taken| taken.turn != *turn)));
        let turn = free.unwrap_or(timeline % TURNS);
        debug_assert!(
            self.last.is_none_or(|last| last.turn != turn),
            "a new primary and the old one have no ID in common"
        );
        Self { before: taken.first().copied(), last: Some(Turn { timeline, turn }) }
    }

    /// Returns the turns of the last timeline in a history, the first one first. `recorded` is what a file and a page say. Returns None
    /// if the turn of the timeline before it is unknown; `history` is None if there is none that can be read.
    pub fn of(timeline: u32, history: Option<&[u32]>, recorded: &[Self]) -> Option<Self> {
        if let Some(own) = recorded.iter().find(|recorded| recorded.is_of(timeline)) {
            return Some(*own);
        }
        let parents = history?;
        let place =
            |turn: Option<Turn>| parents.iter().position(|&parent| turn.is_some_and(|turn| turn.timeline == parent));
        let known = recorded.iter().filter_map(|recorded| Some((place(recorded.last)?, *recorded)));
        // A record of another branch says which turn the timeline has at which it branched off.
        let of_branch = |recorded: &Self| {
            let place = place(recorded.before)?;
            (place + 1 == parents.len()).then_some((place, Self { before: None, last: recorded.before }))
        };
        let known = known.max_by_key(|(place, _)| *place).or_else(|| recorded.iter().find_map(of_branch));
        let is_whole = timeline == 1 || parents.first() == Some(&1);
        let (from, begin) = match known {
            Some((place, recorded)) => (place + 1, recorded),
            None if is_whole => {
                let earlier = recorded.iter().find(|turns| turns.is_of(EARLIER));
                (0, earlier.copied().unwrap_or_default())
            }
            None => return None,
        };
        let chain = parents[from..].iter().fold(begin, |turns, &parent| turns.followed_by(parent, &[]));
        Some(chain.followed_by(timeline, &Self::elsewhere(parents, recorded)))
    }

    /// Returns turns for a timeline although the turn of the timeline before it is unknown: none that is recorded.
    #[must_use]
    pub fn accepted(timeline: u32, recorded: &[Self]) -> Self {
        let own = recorded.iter().find(|recorded| recorded.is_of(timeline)).copied();
        own.unwrap_or_else(|| Self::NONE.followed_by(timeline, recorded))
    }

    /// Returns the records of timelines that are not in a history.
    fn elsewhere(parents: &[u32], recorded: &[Self]) -> Vec<Self> {
        let is_outside = |turn: &Turn| !parents.contains(&turn.timeline);
        let records = recorded.iter().filter(|turns| turns.last.as_ref().is_some_and(is_outside));
        records.map(|turns| Self { before: turns.before.filter(is_outside), ..*turns }).collect()
    }

    /// Returns them as a number, which `pg_upgrade` keeps as the last value of a sequence; 0 if nothing is recorded. Timelines from
    /// 2^29 on are not recorded.
    pub fn number(&self) -> i64 {
        let number = |turn: Option<Turn>| {
            let turn = turn.filter(|turn| turn.timeline < 1 << (BITS - TURNS.ilog2()));
            turn.map_or(0, |turn| i64::from(turn.timeline * TURNS + turn.turn % TURNS))
        };
        number(self.before) << BITS | number(self.last)
    }

    /// Returns the turns with this number.
    pub fn from_number(number: i64) -> Self {
        let turn = |number: i64| {
            let number = (number & ((1 << BITS) - 1)) as u32;
            (number >= TURNS).then_some(Turn { timeline: number / TURNS, turn: number % TURNS })
        };
        Self { before: turn(number >> BITS), last: turn(number) }
    }

    /// Returns them as of a cluster that pg_upgrade has left behind: the timelines of the new one begin with 1 again, and are others. A
    /// cluster that was never promoted keeps its turn.
    #[must_use]
    pub(crate) fn before_upgrade(self) -> Self {
        let earlier = |turn: Turn| Turn { timeline: EARLIER, ..turn };
        if self.is_of(1) { self } else { Self { before: self.before.map(earlier), last: self.last.map(earlier) } }
    }

    fn is_of(&self, timeline: u32) -> bool {
        self.last.is_some_and(|last| last.timeline == timeline)
    }
}

/// Reads the timelines before a timeline from its history file, the first one first. Each has a line that begins with its number. The
/// rest of a line is a text of the user's, in any encoding. Returns None if the file is something else.
pub fn parents(file: &[u8], timeline: u32) -> Option<Vec<u32>> {
    let lines = file.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with(b"#"));
    let number = |line: &[u8]| {
        let end = line.iter().position(|byte| !byte.is_ascii_digit()).filter(|&end| line[end].is_ascii_whitespace())?;
        str::from_utf8(&line[..end]).ok()?.parse::<u32>().ok().filter(|&number| number > 0)
    };
    let parents: Vec<u32> = lines.map(number).collect::<Option<_>>()?;
    let is_sorted = parents.iter().chain([&timeline]).is_sorted_by(|one, next| one < next);
    (is_sorted && !parents.is_empty()).then_some(parents)
}
