//! Lines of shared memory, each with the words of one lane.
//!
//! A line has a word for each of eight eras. A new era resets its word before it is published, and a session that was stopped in an
//! earlier era raises the word of that era only. After eight more eras it may raise a word that is in use again, which costs IDs
//! and makes none twice, because the session drops what it has taken.

use crate::sync::AtomicU64;

/// How many eras have words.
const ERAS: usize = 8;
/// How many lanes of custom layouts have words, in all databases of a server. A layout has at most 32 lanes.
pub const CUSTOM_LINES: usize = 4096;
/// How many lanes of built-in layouts have words: all of them, and some of layouts that later versions may have.
pub const BUILT_IN_LINES: usize = 512;
/// How many lanes have words.
pub const MOST_LINES: usize = CUSTOM_LINES + BUILT_IN_LINES;

/// The words of one lane, in a cache line of their own. The first line of a layout also says what they count.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Line {
    words: [AtomicU64; ERAS],
    /// The key of the layout. Layouts with the same bits share their words.
    pub(super) key: AtomicU64,
    /// The database whose layout it is; [`super::claims::BUILT_IN`] for a built-in one.
    pub(super) database: AtomicU64,
    /// How many lanes the layout has; 0 in every line but the first one.
    pub(super) lanes: AtomicU64,
    /// How many IDs a lane has in a tick.
    pub(super) size: AtomicU64,
    // How the layout divides time.
    pub(super) epoch: AtomicU64,
    pub(super) length: AtomicU64,
    /// Whether the sequence rolls.
    pub(super) rolls: AtomicU64,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            words: std::array::from_fn(|_| AtomicU64::new(0)),
            key: AtomicU64::new(0),
            database: AtomicU64::new(0),
            lanes: AtomicU64::new(0),
            size: AtomicU64::new(0),
            epoch: AtomicU64::new(0),
            length: AtomicU64::new(0),
            rolls: AtomicU64::new(0),
        }
    }
}

impl Line {
    /// The word of an era.
    #[inline]
    pub fn of(&self, era: u64) -> &AtomicU64 {
        &self.words[era as usize % ERAS]
    }
}
