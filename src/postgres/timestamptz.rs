//! PostgreSQL's timestamptz and the core's instants. Both count microseconds in an i64, but a timestamptz counts from 2000 and has
//! infinities, and an instant counts from 1970. So they are two types.
#![allow(unsafe_code, reason = "calls functions of PostgreSQL")]

use std::ffi::CStr;

use pgrx::datum::TimestampWithTimeZone;
use pgrx::{direct_function_call, pg_sys};

/// Microseconds from 1970-01-01 to 2000-01-01.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// A timestamptz as PostgreSQL passes it. pgrx's type would check the range each time, which takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamptz(i64);

impl Timestamptz {
    pub const INFINITY: Self = Self(i64::MAX);
    pub const NEGATIVE_INFINITY: Self = Self(i64::MIN);

    pub const fn from_raw(raw: i64) -> Self {
        Self(raw)
    }

    /// Returns the timestamptz of an instant.
    pub fn from_instant(instant: i64) -> Self {
        match instant {
            i64::MIN | i64::MAX => Self(instant),
            at => Self(at.saturating_sub(POSTGRES_EPOCH)),
        }
    }

    /// Returns the instant. Infinities become the limits of i64, and the last years of timestamptz `LATEST`. No layout reaches either.
    pub fn instant(self) -> i64 {
        match self.0 {
            at @ (i64::MIN | i64::MAX) => at,
            at => at.saturating_add(POSTGRES_EPOCH).min(LATEST),
        }
    }
}

/// The instant of all finite times from here on.
const LATEST: i64 = i64::MAX - 1;

/// Writes an instant as this session shows a timestamptz.
pub fn to_text(instant: i64) -> String {
    let text = shown(instant);
    if instant == LATEST { format!("{text} or a later time") } else { text }
}

fn shown(instant: i64) -> String {
    // SAFETY: timestamptz_out takes a timestamptz, which is passed by value, and returns a C string.
    let text = unsafe {
        direct_function_call::<&CStr>(pg_sys::timestamptz_out, &[Some(Timestamptz::from_instant(instant).into())])
    };
    text.map(|text| text.to_string_lossy().into_owned()).unwrap_or_default()
}

impl From<Timestamptz> for pg_sys::Datum {
    #[inline]
    fn from(at: Timestamptz) -> Self {
        Self::from(at.0)
    }
}

impl From<TimestampWithTimeZone> for Timestamptz {
    fn from(at: TimestampWithTimeZone) -> Self {
        Self(at.into_inner())
    }
}

/// Returns the timestamptz of a timestamp in the session's time zone, or an infinite one if there is none.
pub fn of_timestamp(at: i64) -> Timestamptz {
    let mut overflow = overflow();
    // SAFETY: it takes any timestamp.
    Timestamptz(unsafe { timestamp2timestamptz(at, &raw mut overflow) })
}

/// Returns the timestamptz at which a date begins in the session's time zone, or an infinite one if there is none.
pub fn of_date(date: i32) -> Timestamptz {
    let mut overflow = overflow();
    // SAFETY: it takes any date.
    Timestamptz(unsafe { date2timestamptz(date, &raw mut overflow) })
}

/// Where a function stores an overflow instead of raising an error.
#[cfg(not(feature = "pg19"))]
type Overflow = i32;
#[cfg(feature = "pg19")]
type Overflow = pg_sys::ErrorSaveContext;

#[cfg(not(feature = "pg19"))]
fn overflow() -> Overflow {
    0
}

#[cfg(feature = "pg19")]
fn overflow() -> Overflow {
    pg_sys::ErrorSaveContext { type_: pg_sys::NodeTag::T_ErrorSaveContext, ..Default::default() }
}

unsafe extern "C-unwind" {
    /// pgrx's own declarations are guarded. These functions raise no error if they can store an overflow.
    #[cfg_attr(not(feature = "pg19"), link_name = "timestamp2timestamptz_opt_overflow")]
    #[cfg_attr(feature = "pg19", link_name = "timestamp2timestamptz_safe")]
    fn timestamp2timestamptz(at: i64, overflow: *mut Overflow) -> i64;
    #[cfg_attr(not(feature = "pg19"), link_name = "date2timestamptz_opt_overflow")]
    #[cfg_attr(feature = "pg19", link_name = "date2timestamptz_safe")]
    fn date2timestamptz(date: i32, overflow: *mut Overflow) -> i64;
}

/// Returns the instant of an SQL function's argument.
pub fn to_instant(at: TimestampWithTimeZone) -> i64 {
    Timestamptz::from(at).instant()
}

/// Returns an instant as an SQL function's result.
pub fn from_instant(instant: i64) -> TimestampWithTimeZone {
    let at = Timestamptz::from_instant(instant).0;
    TimestampWithTimeZone::try_from(at).unwrap_or(TimestampWithTimeZone::positive_infinity())
}
