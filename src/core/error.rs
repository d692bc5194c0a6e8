//! Everything that can go wrong, each with its data. The texts are primary messages; DETAIL, HINT and SQLSTATE are up to
//! the database.

use std::borrow::Cow;

type Name = Cow<'static, str>;

/// An error of this crate. Instants are microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No layout has this name.
    #[error("layout \"{name}\" does not exist")]
    UnknownLayout {
        /// The name.
        name: String,
        /// The most similar known name, if one is similar.
        nearest: Option<String>,
        /// All known names.
        known: Vec<String>,
    },
    /// An ID that the layout cannot have made.
    #[error("ID {id} is not possible in layout \"{layout}\"")]
    ImpossibleId {
        /// The layout.
        layout: Name,
        /// The ID as a signed number.
        id: i64,
        /// How many bits the layout has.
        width: u32,
        /// Whether a bit above the layout's width is set.
        too_wide: bool,
        /// The first reserved field that is wrong: its name, the number found and the number it must hold.
        field: Option<(Name, u64, u64)>,
    },
    /// A part that its field cannot hold.
    #[error("{part} {number} is out of range for layout \"{layout}\"")]
    PartOutOfRange {
        /// The layout.
        layout: Name,
        /// The part's name.
        part: Name,
        /// The number.
        number: u64,
        /// The largest number that fits.
        max: u64,
    },
    /// A number for a field that the layout does not have.
    #[error("layout \"{layout}\" has no field \"{field}\"")]
    UnknownField {
        /// The layout.
        layout: Name,
        /// The name.
        field: String,
        /// The names of the layout's fields.
        known: String,
    },
    /// A timestamp field that contradicts the instant.
    #[error("timestamp {number} does not match the given time in layout \"{layout}\"")]
    OtherTick {
        /// The layout.
        layout: Name,
        /// The timestamp.
        number: u64,
        /// The tick of the instant.
        tick: u64,
    },
    /// A tag for a layout that has none.
    #[error("layout \"{layout}\" has no tag field")]
    NoTag {
        /// The layout.
        layout: Name,
    },
    /// A tag that its field cannot hold.
    #[error("tag {tag} is out of range for layout \"{layout}\"")]
    TagOutOfRange {
        /// The layout.
        layout: Name,
        /// The tag.
        tag: i64,
        /// The largest number that fits.
        max: u64,
    },
    /// Text that is not an ID.
    #[error("invalid input syntax for an ID of layout \"{layout}\": \"{text}\"")]
    MalformedText {
        /// The layout.
        layout: Name,
        /// The text, or its beginning.
        text: String,
        /// Why it is refused.
        fault: TextFault,
    },
    /// An instant before the epoch or after the last tick.
    #[error("timestamp out of range for layout \"{layout}\"")]
    InstantOutOfRange {
        /// The layout.
        layout: Name,
        /// The instant.
        at: i64,
        /// The first instant of the range.
        first: i64,
        /// The first instant after the range.
        end: i64,
    },
    /// The clock has passed the last tick.
    #[error("reached the last tick of layout \"{layout}\"")]
    Exhausted {
        /// The layout.
        layout: Name,
        /// The first instant after the last tick.
        end: i64,
    },
    /// The layout's IDs do not sort by time, so an instant has no smallest or largest ID.
    #[error("IDs of layout \"{layout}\" are not ordered by time")]
    NotTimeOrdered {
        /// The layout.
        layout: Name,
    },
    /// A node number outside its deployment.
    #[error("node {id} is out of range for {count} nodes")]
    NodeOutOfRange {
        /// The node's number.
        id: u32,
        /// How many nodes there are.
        count: u32,
    },
    /// A slot number outside its server.
    #[error("slot {number} is out of range for {count} slots")]
    SlotOutOfRange {
        /// The slot's number.
        number: u32,
        /// How many slots there are.
        count: u32,
    },
    /// Fewer workers than nodes.
    #[error("layout \"{layout}\" has too few workers for {nodes} nodes")]
    TooManyNodes {
        /// The layout.
        layout: Name,
        /// How many workers the layout has.
        workers: u64,
        /// How many nodes divide them.
        nodes: u32,
    },
    /// More slots than IDs of a tick.
    #[error("layout \"{layout}\" has too few IDs for all sessions")]
    EmptyShare {
        /// The layout.
        layout: Name,
        /// How many workers the node has.
        workers: u64,
        /// How many sequence numbers of each worker the node has.
        sequences: u64,
        /// How many slots divide them.
        slots: u64,
    },
    /// A number that a part of a sno cannot hold.
    #[error("{part} {number} is out of range for a sno")]
    SnoPart {
        /// The part's name.
        part: &'static str,
        /// The number.
        number: i64,
        /// The largest number that fits.
        max: i64,
        /// Whether the sno was to be made from its parts, and not generated.
        made: bool,
    },
    /// Text that is not a sno.
    #[error("invalid input syntax for type sno: \"{text}\"")]
    SnoText {
        /// The text, or its beginning.
        text: String,
        /// Why it is refused.
        fault: TextFault,
    },
    /// Bytes that are not a sno.
    #[error("a sno must have 10 bytes, not {length}")]
    SnoBytes {
        /// How many bytes there are.
        length: usize,
        /// Whether they came in the binary protocol.
        received: bool,
    },
    /// A definition that does not make a layout.
    #[error("invalid layout definition{}: {reason}", if layout.is_empty() { String::new() } else { format!(" for \"{layout}\"") })]
    Definition {
        /// The layout; empty where its name is not known.
        layout: Name,
        /// Why it is refused.
        reason: DefinitionFault,
    },
}

/// Why a definition is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionFault {
    /// The epoch, the tick and the fields do not make a layout.
    #[error(transparent)]
    Layout(#[from] Fault),
    /// An unknown or missing key, or a value of the wrong type.
    #[error("{message}{}", if path == "." { String::new() } else { format!(" (at {path})") })]
    Json {
        /// The path to the fault in the object.
        path: String,
        /// Why it is refused.
        message: String,
    },
    /// A missing key that no other layout provides.
    #[error("\"{0}\" is required unless \"like\" is given")]
    Missing(&'static str),
    /// `like` does not name a built-in layout.
    #[error("\"like\" must name a built-in layout, not \"{0}\"")]
    Like(String),
    /// An epoch that is not an instant.
    #[error("epoch \"{0}\" is not a time in whole microseconds such as 2024-01-01T00:00:00Z")]
    Epoch(String),
    /// An epoch after the present.
    #[error("epoch {0} is in the future")]
    Future(String),
    /// A tick that is not a length of time.
    #[error("tick \"{0}\" is not a number followed by us, ms or s, such as 10ms")]
    Tick(String),
    /// An invalid name.
    #[error("name \"{0}\" does not consist of 1 to 63 ASCII letters, digits, and the characters _ - .")]
    Name(String),
    /// Two fields with the same name.
    #[error("field name \"{0}\" is used more than once")]
    Twice(String),
    /// More fields than bits.
    #[error("an ID has 64 bits, too few for {0} fields")]
    TooManyFields(usize),
    /// A key that belongs to another role.
    #[error("\"{key}\" is not allowed for the role of field number {number}")]
    Stray {
        /// The key.
        key: &'static str,
        /// The number of the field, from 1.
        number: usize,
    },
}

/// Why a text is not an ID. Positions are characters, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// Too few or too many characters.
    #[error("expected {expected} character{}, got {found}", if *expected == 1 { "" } else { "s" })]
    Length {
        /// How many characters there are.
        found: usize,
        /// How many characters the form needs.
        expected: usize,
    },
    /// A character that is not a digit of this form.
    #[error("character {position}, \"{}\", is not a digit of this text form", character.escape_default())]
    Character {
        /// The character.
        character: char,
        /// Its position.
        position: usize,
    },
    /// The number exceeds 64 bits.
    #[error("the number exceeds 64 bits at character {position}")]
    TooLarge {
        /// The position of the first character that makes it too large.
        position: usize,
    },
    /// A leading zero.
    #[error("character 1 is a leading zero")]
    LeadingZero,
}

/// Why an epoch, a tick and fields do not make a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A tick must last at least a microsecond.
    #[error("the tick must be longer than zero")]
    Tick,
    /// Tick 0 must end at an instant.
    #[error("the first tick would end after the year 294246")]
    LongTick,
    /// Every tick must begin at an instant that PostgreSQL can show.
    #[error("the epoch is before 4714-11-24 BC, where PostgreSQL's timestamps begin")]
    EarlyEpoch,
    /// Every field has at least one bit.
    #[error("field number {0} has no bits")]
    EmptyField(usize),
    /// All fields together have to fit 64 bits.
    #[error("the fields need {0} bits, but an ID has 64")]
    TooWide(u32),
    /// A layout has exactly one timestamp.
    #[error("a layout must have exactly one timestamp field, not {0}")]
    Timestamps(u32),
    /// A layout has at most one sequence.
    #[error("a layout must have at most one sequence field, not {0}")]
    Sequences(u32),
    /// A layout has at most one tag.
    #[error("a layout must have at most one tag field, not {0}")]
    Tags(u32),
    /// A worker number is stored in a limited number of fields.
    #[error("a layout must have at most {most} worker fields, not {found}")]
    Workers {
        /// How many there are.
        found: usize,
        /// How many there may be.
        most: usize,
    },
    /// A reserved field's value must fit it.
    #[error("the value of reserved field number {0} does not fit its bits")]
    ReservedValue(usize),
}
