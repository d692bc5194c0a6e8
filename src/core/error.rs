//! Everything that can go wrong, each with its data. The texts are primary messages; DETAIL, HINT and SQLSTATE are up to
//! the database.
#![allow(missing_docs, reason = "the message of an error says what its data are")]

use std::borrow::Cow;

type Name = Cow<'static, str>;

/// An error of this crate. Instants are microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// With the most similar name that is known, if one is similar, with the first ones that are, and how many others are.
    #[error("layout \"{name}\" does not exist")]
    UnknownLayout { name: String, nearest: Option<String>, known: Vec<String>, others: usize },
    #[error("ID {id} is not possible in layout \"{layout}\"")]
    ImpossibleId {
        layout: Name,
        /// The ID as a signed number.
        id: i64,
        width: u32,
        /// Whether a bit above the layout's width is set.
        too_wide: bool,
        /// The first reserved field that is wrong: its name, the number found and the number it must hold.
        field: Option<(Name, u64, u64)>,
    },
    #[error("{part} {number} is out of range for layout \"{layout}\"")]
    PartOutOfRange { layout: Name, part: Name, number: u64, max: u64 },
    #[error("layout \"{layout}\" has no field \"{field}\"")]
    UnknownField { layout: Name, field: String, known: String },
    /// A timestamp field that contradicts the instant.
    #[error("timestamp {number} does not match the given time in layout \"{layout}\"")]
    OtherTick { layout: Name, number: u64, tick: u64 },
    #[error("layout \"{layout}\" has no tag field")]
    NoTag { layout: Name },
    #[error("tag {tag} is out of range for layout \"{layout}\"")]
    TagOutOfRange { layout: Name, tag: i64, max: u64 },
    #[error("invalid input syntax for an ID of layout \"{layout}\": \"{text}\"")]
    MalformedText { layout: Name, text: String, fault: TextFault },
    #[error("timestamp out of range for layout \"{layout}\"")]
    InstantOutOfRange { layout: Name, at: i64, first: i64, end: i64 },
    #[error("the clock is before the epoch of layout \"{layout}\"")]
    BeforeEpoch { layout: Name, now: i64, epoch: i64 },
    #[error("reached the last tick of layout \"{layout}\"")]
    Exhausted { layout: Name, end: i64 },
    /// The layout's IDs do not sort by time, so an instant has no smallest or largest ID.
    #[error("IDs of layout \"{layout}\" are not ordered by time")]
    NotTimeOrdered { layout: Name },
    #[error("node {id} is out of range for {count} nodes")]
    NodeOutOfRange { id: u32, count: u32 },
    #[error("layout \"{layout}\" has too few workers for {nodes} nodes")]
    TooManyNodes { layout: Name, workers: u64, nodes: u32 },
    /// Fewer IDs of a tick than parts of the node, or than procs.
    #[error("this node has too few IDs of layout \"{layout}\"")]
    TooFewIds { layout: Name, workers: u64, sequences: u64, parts: u32 },
    /// `made` says whether the sno was to be made from its parts, and not generated.
    #[error("{part} {number} is out of range for a sno")]
    SnoPart { part: &'static str, number: i64, max: i64, made: bool },
    #[error("invalid input syntax for type sno: \"{text}\"")]
    SnoText { text: String, fault: TextFault },
    /// `received` says whether they came in the binary protocol.
    #[error("a sno must have 10 bytes, not {length}")]
    SnoBytes { length: usize, received: bool },
    /// The name is empty if it is unknown.
    #[error("invalid layout definition{}: {reason}", if layout.is_empty() { String::new() } else { format!(" for \"{layout}\"") })]
    Definition { layout: Name, reason: DefinitionFault },
}

/// Why a definition is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionFault {
    #[error(transparent)]
    Layout(#[from] Fault),
    /// An unknown or missing key, or a value of the wrong type.
    #[error("{message}{}", if path == "." { String::new() } else { format!(" (at {path})") })]
    Json { path: String, message: String },
    /// A missing key that no other layout provides.
    #[error("\"{0}\" is required unless \"like\" is given")]
    Missing(&'static str),
    #[error("\"like\" must name a built-in layout, not \"{0}\"")]
    Like(String),
    #[error("epoch \"{0}\" is not a time in whole microseconds such as 2024-01-01T00:00:00Z")]
    Epoch(String),
    #[error("epoch {0} is in the future")]
    Future(String),
    #[error("tick \"{0}\" is not a number followed by us, ms or s, such as 10ms")]
    Tick(String),
    #[error("name \"{0}\" does not consist of 1 to 63 ASCII letters, digits, and the characters _ - .")]
    Name(String),
    #[error("field name \"{0}\" is used more than once")]
    Twice(String),
    #[error("an ID has 64 bits, too few for {0} fields")]
    TooManyFields(usize),
    /// A key that belongs to another role; the fields' numbers count from 1.
    #[error("\"{key}\" is not allowed for the role of field number {number}")]
    Stray { key: &'static str, number: usize },
}

/// Why a text is not an ID. Positions are characters, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    #[error("expected {expected} character{}, got {found}", if *expected == 1 { "" } else { "s" })]
    Length { found: usize, expected: usize },
    #[error("character {position}, \"{}\", is not a digit of this text form", character.escape_default())]
    Character { character: char, position: usize },
    #[error("the number exceeds 64 bits at character {position}")]
    TooLarge { position: usize },
    #[error("character 1 is a leading zero")]
    LeadingZero,
}

/// Why an epoch, a tick and fields do not make a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the tick must be longer than zero")]
    Tick,
    /// Tick 0 must end at an instant.
    #[error("the first tick would end after the year 294246")]
    LongTick,
    /// Every tick must begin at an instant that PostgreSQL can show.
    #[error("the epoch is before 4714-11-24 BC, where PostgreSQL's timestamps begin")]
    EarlyEpoch,
    #[error("field number {0} has no bits")]
    EmptyField(usize),
    #[error("the fields need {0} bits, but an ID has 64")]
    TooWide(u32),
    /// Such as "exactly one timestamp field". A worker number is stored in a limited number of fields.
    #[error("a layout must have {expected}, not {found}")]
    Fields { expected: &'static str, found: usize },
    #[error("the value of reserved field number {0} does not fit its bits")]
    ReservedValue(usize),
}
