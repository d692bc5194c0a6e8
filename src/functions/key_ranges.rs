//! Which IDs each secret of a key seals: flake_rotate_key, and the rows of the view flake_keys.

use flake_core::Layout;
use flake_core::seal::{MOST_RANGES, Range};
use pgrx::PgSqlErrorCode::*;
use pgrx::prelude::*;
use pgrx::spi::{quote_identifier, quote_literal};

use super::keys::locked;
use super::statements::run;
use super::stored::writer;
use crate::error::{Error, OrRaise, Undetailed};
use crate::layouts::{by_name, known};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::memory::collect_or_raise;
use crate::postgres::role::act_as;
use crate::postgres::timestamptz::{from_instant, to_text};
use crate::seal::{self, Key, mapping, option_name};
use crate::{clock, ledger};

/// How far ahead of the clock a new secret begins, in microseconds. Until its transaction commits, IDs are sealed by the old one.
const MARGIN: i64 = 60_000_000;
/// No rotation is meant to begin later than that, in microseconds; an ID of another layout can be.
const LATEST: i64 = 86_400_000_000;

/// Gives the key a new secret for IDs from a minute after now on, or above all that may exist if that is later. Lower IDs keep their
/// secret, so an ID has the same public name for ever.
#[pg_extern(sql = "")]
fn flake_rotate_key(name: &[u8]) -> Option<TimestampWithTimeZone> {
    rotate(name, None, false)
}

#[pg_extern(sql = "")]
fn flake_rotate_key_from(name: &[u8], from_id: i64, force: bool) -> Option<TimestampWithTimeZone> {
    rotate(name, Some(from_id), force)
}

/// Returns the instant from which on IDs are sealed by the new secret, if the bound has one.
fn rotate(name: &[u8], from_id: Option<i64>, force: bool) -> Option<TimestampWithTimeZone> {
    writer("flake_rotate_key", c"flake_rotate_key()");
    let key = locked(name);
    key.ranges().or_raise();
    let shown = key.shown().or_raise();
    let layout = by_name(shown.layout.as_bytes());
    if layout.last_ordered_tick().is_none() {
        refuse(&key)
            .detail(format!(
                "It seals IDs of layout \"{}\", whose order is not the order of time, so no ID is above all that exist.",
                layout.name()
            ))
            .hint("Create another key for new rows with flake_create_key.")
            .raise();
    }
    let from_id = match from_id {
        Some(from_id) if force => from_id,
        wanted => bound(&key, layout, wanted),
    };
    add(&key, &shown.ranges, from_id);
    time(layout, from_id)
}

/// Returns the first ID of the new secret, which may be chosen. No ID from it on exists, and it is of the next day.
fn bound(key: &Key, layout: &Layout, chosen: Option<i64>) -> i64 {
    let (now, unused) = (clock::now(), ledger::unused().or_raise());
    let next = unused.max(now + MARGIN);
    let (first, latest) = (first_since(layout, unused), first_since(layout, now + LATEST));
    let from_id = chosen.unwrap_or_else(|| first_since(layout, next));
    if (first..=latest).contains(&from_id) {
        return from_id;
    }
    let name = layout.name();
    let at = layout.tick_of(from_id as u64).map(|tick| to_text(layout.start_of(tick)));
    let at = at.map_or_else(
        |_| format!("It is not an ID of layout \"{name}\"."),
        |at| format!("In layout \"{name}\", it is of {at}."),
    );
    refuse(key)
        .detail(match chosen {
            None => format!("IDs of up to {} may exist: a clock was ahead, or a superuser has raised the time above which IDs begin.", to_text(unused)),
            Some(_) if from_id < first => {
                format!("{at} IDs from {from_id} on may exist: their old public IDs would not open any more.")
            }
            Some(_) => format!("{at} Until then, the old secret would seal new IDs."),
        })
        .hint(if next <= now + LATEST {
            format!("Leave from_id out: the secret then begins at {}. To accept the consequences, pass force => true.", to_text(next))
        } else {
            "Create another key for new IDs with flake_create_key. If the public IDs of existing IDs may die, pass a from_id and \
             force => true."
                .to_owned()
        })
        .raise();
}

/// Adds a range to a key.
fn add(key: &Key, ranges: &[Range], from_id: i64) {
    let number = ranges.len();
    if let Some(last) = ranges.last().filter(|last| from_id <= last.from) {
        refuse(key)
            .detail(match last.from {
                i64::MIN => "Its first secret must keep some IDs.".to_owned(),
                last => format!("Its last secret is for the IDs from {last} on, and must keep some of them."),
            })
            .hint("Leave from_id out, or wait until the last secret has begun; the view flake_keys shows when.")
            .raise();
    }
    if number == MOST_RANGES {
        Error::of(ERRCODE_PROGRAM_LIMIT_EXCEEDED, format!("key \"{}\" has had too many rotations", key.name))
            .detail("A key can have four secrets, because each of them is tried for a text that was not sealed.")
            .hint("Create another key for new IDs with flake_create_key.")
            .raise();
    }
    let secret = mapping::random();
    let (server, option) = (quote_identifier(&key.name), option_name(number));
    let range = quote_literal(Range::new(from_id, &secret).to_string());
    act_as(key.owner, || {
        run(format!("ALTER SERVER {server} OPTIONS (ADD {option} {range})"));
        mapping::store(&key.name, number, &secret);
    });
}

fn refuse(key: &Key) -> Undetailed {
    Error::invalid(format!("cannot rotate key \"{}\"", key.name))
}

/// Returns the first ID of the first tick that begins at the instant or after it. IDs of the tick before can exist.
fn first_since(layout: &Layout, at: i64) -> i64 {
    layout.min_at(at.saturating_add(layout.tick_length() - 1)).or_raise() as i64
}

fn time(layout: &Layout, id: i64) -> Option<TimestampWithTimeZone> {
    layout.tick_of(id as u64).ok().map(|tick| from_instant(layout.start_of(tick)))
}

#[pg_extern(sql = "")]
#[allow(clippy::type_complexity, reason = "the columns of a view")]
fn flake_keys() -> TableIterator<
    'static,
    (
        name!(name, String),
        name!(layout, String),
        name!(version, i32),
        name!(from_id, Option<i64>),
        name!(from_time, Option<TimestampWithTimeZone>),
        name!(fingerprint, String),
        name!(stored, bool),
    ),
> {
    let rows = seal::all().flat_map(|key| {
        // A key whose options were changed is left out, with a WARNING.
        let shown = key.shown().map_err(Error::warn).ok();
        let rows = shown.into_iter().flat_map(|shown| {
            let layout = known(shown.layout.as_bytes());
            let numbered = shown.ranges.into_iter().enumerate();
            numbered.map(move |(number, range)| (shown.layout.clone(), layout, number, range)).collect::<Vec<_>>()
        });
        let rows = rows.map(|(layout, of, number, range)| {
            let stored =
                key.secret(number).is_some_and(|secret| flake_core::seal::fingerprint(&secret) == range.fingerprint);
            let from_id = (range.from > i64::MIN).then_some(range.from);
            let from_time = of.zip(from_id).and_then(|(layout, id)| time(layout, id));
            (key.name.clone(), layout, number as i32 + 1, from_id, from_time, range.fingerprint, stored)
        });
        rows.collect::<Vec<_>>()
    });
    TableIterator::new(collect_or_raise(rows))
}

c_symbol!(flake_rotate_key, flake_rotate_key_from, flake_keys);
