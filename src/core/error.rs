//! Everything that can go wrong, each with its data. The text is the primary message; what to do about it is known only
//! where the settings are.

use std::borrow::Cow;

use crate::{Fault, TextFault};

type Name = Cow<'static, str>;

/// An error of this crate. Instants are microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// No layout has this name.
    #[error("unknown layout \"{name}\"")]
    UnknownLayout {
        /// What was asked for.
        name: String,
        /// The known name that resembles it most, if one does.
        nearest: Option<String>,
        /// Every known name.
        known: Vec<String>,
    },
    /// An ID that the layout cannot have made.
    #[error("ID {id} is not possible in layout \"{layout}\"")]
    ImpossibleId {
        /// Layout.
        layout: Name,
        /// The ID as a signed number.
        id: i64,
        /// Bits of the layout.
        width: u32,
        /// A bit above the layout's width is set.
        above: bool,
        /// The first reserved field that is not as it should be: its name, the number found and the one it must hold.
        field: Option<(Name, u64, u64)>,
    },
    /// A part is larger than its field can hold.
    #[error("{part} {number} is out of range for layout \"{layout}\"")]
    PartOutOfRange {
        /// Layout.
        layout: Name,
        /// Name of the part.
        part: Name,
        /// The number.
        number: u64,
        /// The largest possible.
        max: u64,
    },
    /// A number for a field that the layout does not have.
    #[error("layout \"{layout}\" has no field \"{field}\"")]
    UnknownField {
        /// Layout.
        layout: Name,
        /// The name.
        field: String,
        /// The names of its fields.
        known: String,
    },
    /// A timestamp was named that belongs to another instant.
    #[error("timestamp {number} is not the tick of the instant in layout \"{layout}\"")]
    OtherTick {
        /// Layout.
        layout: Name,
        /// The timestamp.
        number: u64,
        /// The tick.
        tick: u64,
    },
    /// A tag for a layout that has none.
    #[error("layout \"{layout}\" has no tag")]
    NoTag {
        /// Layout.
        layout: Name,
    },
    /// A tag that its field cannot hold.
    #[error("tag {tag} is out of range for layout \"{layout}\"")]
    TagOutOfRange {
        /// Layout.
        layout: Name,
        /// The tag.
        tag: i64,
        /// The largest possible.
        max: u64,
    },
    /// A number of IDs below 0.
    #[error("the count of IDs cannot be {count}")]
    BadCount {
        /// The count.
        count: i64,
    },
    /// A layout that can be read only.
    #[error("IDs of layout \"{layout}\" can be read, not made")]
    ReadOnly {
        /// Layout.
        layout: Name,
    },
    /// Text that is no ID.
    #[error("invalid text for an ID of layout \"{layout}\": \"{text}\"")]
    MalformedText {
        /// Layout.
        layout: Name,
        /// The text, or its beginning.
        text: String,
        /// What is wrong with it.
        fault: TextFault,
    },
    /// An instant before the epoch or after the last tick.
    #[error("timestamp out of range for layout \"{layout}\"")]
    InstantOutOfRange {
        /// Layout.
        layout: Name,
        /// The instant.
        at: i64,
        /// The earliest possible.
        first: i64,
        /// The first instant after the latest possible.
        end: i64,
    },
    /// The clock has passed the last tick.
    #[error("timestamp of layout \"{layout}\" is used up")]
    Exhausted {
        /// Layout.
        layout: Name,
        /// The first instant after the last tick.
        end: i64,
    },
    /// The layout's IDs are not in the order of time, so an instant has no smallest or largest ID.
    #[error("IDs of layout \"{layout}\" are not ordered by time")]
    NotTimeOrdered {
        /// Layout.
        layout: Name,
    },
    /// A node number that its deployment does not have.
    #[error("node {id} is out of range for {count} nodes")]
    NodeOutOfRange {
        /// Number of the node.
        id: u32,
        /// Number of nodes.
        count: u32,
    },
    /// A slot number that its server does not have.
    #[error("slot {number} is out of range for {count} slots")]
    SlotOutOfRange {
        /// Number of the slot.
        number: u32,
        /// Number of slots.
        count: u32,
    },
    /// Fewer workers than nodes.
    #[error("layout \"{layout}\" has too few workers for {nodes} nodes")]
    TooManyNodes {
        /// Layout.
        layout: Name,
        /// Workers of the layout.
        workers: u64,
        /// Nodes to divide them among.
        nodes: u32,
    },
    /// More slots than (worker, sequence) pairs.
    #[error("layout \"{layout}\" has no IDs for a session in this configuration")]
    EmptyShare {
        /// Layout.
        layout: Name,
        /// Workers of the node.
        workers: u64,
        /// Sequence numbers of a worker.
        sequences: u64,
        /// Sessions that have to share a sequence.
        sharers: u64,
    },
    /// The clock is behind the last ID by more than may be waited for.
    #[error("clock is behind the last ID of layout \"{layout}\"")]
    ClockBehind {
        /// Layout.
        layout: Name,
        /// What the clock says.
        now: i64,
        /// When generation can go on.
        until: i64,
        /// How long may be waited, in microseconds.
        patience: i64,
    },
    /// The file that keeps the mark cannot be read or written.
    #[error("cannot {attempt} \"{file}\"{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    Mark {
        /// What was tried.
        attempt: &'static str,
        /// The file, below the data directory.
        file: &'static str,
        /// What the operating system says; none where the content is at fault.
        reason: Option<String>,
        /// What kind of trouble it is.
        kind: std::io::ErrorKind,
    },
    /// A number for a field is no number, or negative.
    #[error("field \"{field}\" of layout \"{layout}\" cannot be {value}")]
    BadNumber {
        /// Layout.
        layout: Name,
        /// Name of the field.
        field: String,
        /// What was given.
        value: String,
        /// It is a number.
        numeric: bool,
    },
    /// The parts of an ID are not given by name.
    #[error("the fields of an ID are a JSON object")]
    FieldsNotAnObject,
    /// Another layout, or something else whose names layouts share, has this name.
    #[error("layout \"{layout}\" cannot be created, the name is taken")]
    NameTaken {
        /// Layout.
        layout: Name,
    },
    /// What can be done with custom layouts only.
    #[error("layout \"{layout}\" is built in and cannot be dropped")]
    BuiltIn {
        /// Layout.
        layout: Name,
    },
    /// A definition is not the one that the layout was made with.
    #[error("definition of layout \"{layout}\" is not the one it was made with")]
    Altered {
        /// Layout.
        layout: Name,
    },
    /// A number for a part of a sno that it cannot hold.
    #[error("{part} {number} of a sno is out of range")]
    SnoPart {
        /// The part's name.
        part: &'static str,
        /// The number.
        number: i64,
        /// The largest possible.
        max: i64,
        /// It belongs to an ID that was to be put together, not to one that was to be generated.
        made: bool,
    },
    /// Text that is no sno.
    #[error("invalid input syntax for type sno: \"{text}\"")]
    SnoText {
        /// The text, or its beginning.
        text: String,
        /// What is wrong with it.
        fault: TextFault,
    },
    /// Bytes that are no sno.
    #[error("a sno has 10 bytes, here are {length}")]
    SnoBytes {
        /// How many there are.
        length: usize,
        /// They came in the binary protocol.
        received: bool,
    },
    /// A UUID whose bytes are not the characters of a sno.
    #[error("the bytes of this uuid are not the characters of a sno")]
    SnoUuid,
    /// An object was made by hand that is no layout.
    #[error("not a layout")]
    NotALayout,
    /// A definition that makes no layout.
    #[error("invalid definition of layout \"{layout}\": {reason}")]
    Definition {
        /// Layout.
        layout: Name,
        /// What is wrong.
        reason: DefinitionFault,
    },
}

/// What is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionFault {
    /// The numbers make no layout.
    #[error(transparent)]
    Layout(#[from] Fault),
    /// An unknown key, a missing one, or a value of the wrong kind.
    #[error("{message}{}", if place == "." { String::new() } else { format!(" (at {place})") })]
    Json {
        /// Where in the object.
        place: String,
        /// What is wrong there.
        message: String,
    },
    /// A key that has to be there, as no layout is named to be like.
    #[error("\"{0}\" is missing, and there is no \"like\" to take it from")]
    Missing(&'static str),
    /// No built-in layout has the name.
    #[error("\"like\" is \"{0}\", which is no built-in layout")]
    Like(String),
    /// Text that is no instant.
    #[error("epoch \"{0}\" is not an instant of whole microseconds such as 2024-01-01T00:00:00Z")]
    Epoch(String),
    /// An epoch that is not over yet.
    #[error("epoch {epoch} is in the future")]
    Future {
        /// The epoch.
        epoch: String,
    },
    /// Text that is no length of time.
    #[error("tick \"{0}\" is not a number and us, ms or s, such as 10ms")]
    Tick(String),
    /// Not fit as a name.
    #[error("\"{0}\" is no name: 1 to 63 letters, digits, _, - and . of ASCII")]
    Name(String),
    /// A built-in layout's name.
    #[error("a built-in layout has this name")]
    BuiltIn,
    /// Two fields of one name.
    #[error("two fields are named \"{0}\"")]
    Twice(String),
    /// A key that belongs to another role.
    #[error("\"{key}\" does not go with the role of field number {number}")]
    Stray {
        /// The key.
        key: &'static str,
        /// Which field, from 1.
        number: usize,
    },
}
