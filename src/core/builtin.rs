//! The built-in layouts: the only place with a bit width or an epoch.

use std::borrow::Cow;

use crate::layout::Geometry;
use crate::{Error, Field, Layout, Role, SequenceRule};

const MILLISECOND: i64 = 1_000;
const SECOND: i64 = 1_000_000;

/// 2021-01-01T00:00:00Z
const YEAR_2021: i64 = 1_609_459_200 * SECOND;

/// Every built-in layout.
pub static BUILTIN: [Layout; 6] = [
    builtin(
        "twitter",
        1_288_834_974_657 * MILLISECOND,
        MILLISECOND,
        const { &[timestamp(41), worker("datacenter", 5), worker("worker", 5), sequence(12)] },
        SequenceRule::Reset,
        "Twitter's Snowflake of 2010, with its own epoch",
    ),
    builtin(
        "snowflake",
        YEAR_2021,
        MILLISECOND,
        const { &[timestamp(41), worker("datacenter", 5), worker("worker", 5), sequence(12)] },
        SequenceRule::Reset,
        "Twitter's division of the bits, with a recent epoch",
    ),
    builtin(
        "si",
        YEAR_2021,
        MILLISECOND,
        const { &[timestamp(40), worker("machine", 5), sequence(8)] },
        SequenceRule::Rolling,
        "Snowflake-SI of litert/uuid.js: 53 bits, exact as a JavaScript number",
    ),
    builtin(
        "si_single",
        YEAR_2021,
        MILLISECOND,
        const { &[timestamp(40), sequence(13)] },
        SequenceRule::Rolling,
        "Snowflake-SI of litert/uuid.js without a machine number",
    ),
    builtin(
        "uniqueid",
        0,
        MILLISECOND,
        const {
            &[
                reversed_timestamp(42),
                sequence(6),
                zero(6),
                ranked_worker("generator", 6, 1),
                ranked_worker("cluster", 4, 0),
            ]
        },
        SequenceRule::Reset,
        "eight-byte IDs of java-uniqueid 1.0 to 1.13",
    ),
    builtin(
        "base64id",
        1_519_862_400 * SECOND,
        SECOND,
        const { &[timestamp(32), worker("worker", 9), sequence(10), random(9)] },
        SequenceRule::Rolling,
        "60-bit IDs of uexky, shown as ten characters",
    ),
];

/// The layout of this name.
pub fn find(name: &str) -> Result<&'static Layout, Error> {
    BUILTIN.iter().find(|layout| layout.name == name).ok_or_else(|| unknown(name))
}

#[cold]
fn unknown(name: &str) -> Error {
    let likeness = |layout: &&Layout| (strsim::normalized_damerau_levenshtein(name, &layout.name) * 1000.0) as u32;
    let nearest = BUILTIN.iter().max_by_key(likeness).filter(|layout| likeness(layout) >= 500).map(Layout::name);
    Error::UnknownLayout { name: name.to_owned(), nearest }
}

/// A row of the table. One that is no layout does not compile.
const fn builtin(
    name: &'static str,
    epoch: i64,
    tick: i64,
    fields: &'static [Field],
    rule: SequenceRule,
    source: &'static str,
) -> Layout {
    let Ok(geometry) = Geometry::new(epoch, tick, fields) else { panic!("a built-in layout is invalid") };
    let (name, fields, source) = (Cow::Borrowed(name), Cow::Borrowed(fields), Cow::Borrowed(source));
    Layout { name, epoch, tick, fields, rule, source, geometry }
}

const fn field(name: &'static str, bits: u8, role: Role) -> Field {
    Field { name: Cow::Borrowed(name), bits, role }
}

const fn timestamp(bits: u8) -> Field {
    field("timestamp", bits, Role::Timestamp { reversed: false })
}

const fn reversed_timestamp(bits: u8) -> Field {
    field("timestamp", bits, Role::Timestamp { reversed: true })
}

const fn worker(name: &'static str, bits: u8) -> Field {
    ranked_worker(name, bits, 0)
}

const fn ranked_worker(name: &'static str, bits: u8, rank: u8) -> Field {
    field(name, bits, Role::Worker { rank })
}

const fn sequence(bits: u8) -> Field {
    field("sequence", bits, Role::Sequence)
}

const fn random(bits: u8) -> Field {
    field("random", bits, Role::Random)
}

const fn zero(bits: u8) -> Field {
    field("zero", bits, Role::Reserved { value: 0 })
}
