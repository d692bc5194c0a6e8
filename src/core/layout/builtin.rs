//! The built-in layouts. Bit widths and epochs stand nowhere else.

use std::borrow::Cow;

use super::field::{Field, Reversal, Role};
use super::geometry::Geometry;
use super::text_form::TextForm::{Base64ordered, Base64urlReversed, Crockford32, Decimal, Hex};
use super::{LONGEST_NAME, Layout};
use crate::error::Error;

const MILLISECOND: i64 = 1_000;
const SECOND: i64 = 1_000_000;

/// Twitter's epoch: 2010-11-04T01:42:54.657Z.
const TWITTER: i64 = 1_288_834_974_657 * MILLISECOND;
/// 2021-01-01T00:00:00Z.
const YEAR_2021: i64 = 1_609_459_200 * SECOND;
/// 2023-01-01T00:00:00Z.
const YEAR_2023: i64 = 1_672_531_200 * SECOND;

/// How many layouts, the last ones, came after the first release: a custom layout that was made before has its name rightfully.
pub const LATER: u32 = 0;

/// How many names an error compares an unknown one with, and how many it lists.
const MOST_COMPARED: usize = 1000;
const MOST_KNOWN: usize = 100;

/// Every built-in layout: its name, source, epoch, tick, and fields from the most significant bit down.
#[rustfmt::skip]
pub static BUILTIN: &[Layout] = &[
    row("twitter", "Twitter's Snowflake of 2010, with its own epoch", TWITTER, MILLISECOND,
        const { &[time(41), worker("datacenter", 5), worker("worker", 5), sequence(12)] }),
    row("snowflake", "Twitter's division of the bits, with a recent epoch", YEAR_2021, MILLISECOND,
        const { &[time(41), worker("datacenter", 5), worker("worker", 5), sequence(12)] }),
    row("si", "Snowflake-SI of litert/uuid.js: 53 bits, exact as a JavaScript number", YEAR_2021, MILLISECOND,
        const { &[time(40), worker("machine", 5), sequence(8)] }),
    row("si_single", "Snowflake-SI of litert/uuid.js without a machine number", YEAR_2021, MILLISECOND,
        const { &[time(40), sequence(13)] }),
    row("uniqueid", "eight-byte IDs of java-uniqueid 1.0 to 1.13", 0, MILLISECOND,
        const { &[reversed_time(42, Reversal::Always), sequence(6), field("zero", 6, Role::Reserved { value: 0 }),
            ranked("generator", 6, 1), ranked("cluster", 4, 0)] }).written(Hex),
    row("uniqueid_v3", "eight-byte IDs of java-uniqueid since 3.2, which reads older IDs too", 0, MILLISECOND,
        const { &[reversed_time(42, Reversal::UnlessFlagged), sequence(6), ranked("generator", 3, 1),
            field("mode", 1, Role::Flag), ranked("generator", 8, 1), ranked("cluster", 4, 0)] }).written(Hex).read_only(),
    row("base64id", "60-bit IDs of uexky, shown as ten characters", 1_519_862_400 * SECOND, SECOND,
        const { &[time(32), worker("worker", 9), sequence(10), random("random", 9)] }).written(Base64urlReversed),
    row("discord", "Discord's API", 1_420_070_400 * SECOND, MILLISECOND,
        const { &[time(42), worker("worker", 5), worker("process", 5), count("increment", 12)] }),
    row("instagram", "Instagram's PL/pgSQL function of 2012", 1_314_220_021_721 * MILLISECOND, MILLISECOND,
        const { &[time(41), worker("shard", 13), sequence(10)] }),
    row("mastodon", "Mastodon's timestamp_id()", 0, MILLISECOND,
        const { &[time(48), count("tail", 16)] }),
    row("sonyflake", "sony/sonyflake 1", 1_409_529_600 * SECOND, 10 * MILLISECOND,
        const { &[time(39), sequence(8), worker("machine", 16)] }),
    row("sonyflake_v2", "sony/sonyflake 2 with its default widths", 1_735_689_600 * SECOND, 10 * MILLISECOND,
        const { &[time(39), sequence(8), worker("machine", 16)] }),
    row("tsid", "tsid-creator and hypersistence-tsid with 1,024 nodes", 1_577_836_800 * SECOND, MILLISECOND,
        const { &[time(42), worker("node", 10), count("counter", 12)] }).written(Crockford32),
    row("leaf", "Meituan's Leaf", TWITTER, MILLISECOND,
        const { &[time(41), worker("worker", 10), sequence(12)] }),
    row("baidu", "baidu/uid-generator with its default widths, used up since 2024-11-20", 1_463_673_600 * SECOND, SECOND,
        const { &[time(28), worker("worker", 22), sequence(13)] }),
    row("seata", "Apache Seata since 1.4", 1_588_435_200 * SECOND, MILLISECOND,
        const { &[worker("worker", 10), time(41), sequence(12)] }),
    row("yitter", "yitter/IdGenerator with its default widths, which reserves sequence numbers", 1_582_136_402 * SECOND, MILLISECOND,
        const { &[time(51), worker("worker", 6), sequence(6)] }).read_only(),
    row("pgedge", "pgEdge/snowflake since 1.2, which numbers its own nodes", YEAR_2023, MILLISECOND,
        const { &[time(41), worker("node", 10), count("count", 12)] }).read_only(),
    row("pgedge_1_0", "pgEdge/snowflake up to 1.1", YEAR_2023, MILLISECOND,
        const { &[time(41), count("count", 12), worker("node", 10)] }).read_only(),
    row("influxdb", "InfluxDB", 1_491_696_000 * SECOND, MILLISECOND,
        const { &[time(42), worker("machine", 10), sequence(12)] }).written(Base64ordered),
    row("weibo", "Weibo's message IDs, by weibocom/breeze", 515_483_463 * SECOND, SECOND,
        const { &[time(41), worker("idc", 4), sequence(18)] }).read_only(),
    row("linkedin", "LinkedIn's activity URNs, by their published samples", 0, MILLISECOND,
        const { &[time(42), random("opaque", 22)] }).read_only(),
    row("cockroach", "CockroachDB's unique_rowid()", 1_420_070_400 * SECOND, 10,
        const { &[time(48), worker("node", 15)] }).read_only(),
    row("simpleflake", "SawdustSoftware/simpleflake, whose IDs differ by chance", 946_702_800 * SECOND, MILLISECOND,
        const { &[time(41), random("random", 23)] }).read_only(),
    row("pgactive", "aws/pgactive's pgactive_snowflake_id_nextval()", 1_475_796_139_634 * MILLISECOND, MILLISECOND,
        const { &[time(40), worker("node", 10), sequence(14)] }),
];

/// Creates a layout whose text form is decimal. An invalid one does not compile.
const fn row(
    name: &'static str,
    source: &'static str,
    epoch: i64,
    tick_length: i64,
    fields: &'static [Field],
) -> Layout {
    let Ok(geometry) = Geometry::new(epoch, tick_length, fields) else { panic!("a built-in layout is invalid") };
    let (name, fields, source) = (Cow::Borrowed(name), Cow::Borrowed(fields), Cow::Borrowed(source));
    Layout { name, epoch, tick_length, fields, text: Decimal, generates: true, source, geometry }
}

/// Returns the built-in layout with this name.
pub fn built_in(name: &str) -> Option<&'static Layout> {
    BUILTIN.iter().find(|layout| layout.name == name)
}

/// The layouts that have been built in since the first release, in an order that never changes: no custom one has their names
/// rightfully, and sessions of all versions know their generators by these numbers.
pub(crate) fn always_built_in() -> &'static [Layout] {
    &BUILTIN[..BUILTIN.len().saturating_sub(LATER as usize)]
}

/// Returns whether a built-in layout has always had this name.
pub fn is_always_built_in(name: &str) -> bool {
    always_built_in().iter().any(|layout| layout.name == name)
}

/// Returns the error for a name that neither a built-in layout nor one of the `custom` ones has. A text too long to be a
/// name is similar to none: a comparison takes the time of both lengths' product. There may be any number of custom layouts.
#[cold]
pub fn unknown_layout(name: &str, custom: &[String]) -> Error {
    let known = || BUILTIN.iter().map(Layout::name).chain(custom.iter().map(String::as_str));
    let likeness = |known: &&str| (strsim::normalized_damerau_levenshtein(name, known) * 1000.0) as u32;
    let comparable: Vec<_> = known().take(if name.len() > LONGEST_NAME { 0 } else { MOST_COMPARED }).collect();
    // If two names are equally similar, the earlier one is suggested.
    let nearest = comparable.into_iter().rev().max_by_key(likeness).filter(|name| likeness(name) >= 500);
    Error::UnknownLayout {
        name: name.chars().take(100).collect(),
        nearest: nearest.map(str::to_owned),
        known: known().take(MOST_KNOWN).map(str::to_owned).collect(),
        others: known().count().saturating_sub(MOST_KNOWN),
    }
}

const fn field(name: &'static str, bits: u8, role: Role) -> Field {
    Field { name: Cow::Borrowed(name), bits, role }
}

const fn time(bits: u8) -> Field {
    reversed_time(bits, Reversal::Never)
}

const fn reversed_time(bits: u8, reversed: Reversal) -> Field {
    field("timestamp", bits, Role::Timestamp { reversed })
}

const fn worker(name: &'static str, bits: u8) -> Field {
    ranked(name, bits, 0)
}

const fn ranked(name: &'static str, bits: u8, rank: u8) -> Field {
    field(name, bits, Role::Worker { rank })
}

const fn sequence(bits: u8) -> Field {
    count("sequence", bits)
}

const fn count(name: &'static str, bits: u8) -> Field {
    field(name, bits, Role::Sequence)
}

const fn random(name: &'static str, bits: u8) -> Field {
    field(name, bits, Role::Random)
}
