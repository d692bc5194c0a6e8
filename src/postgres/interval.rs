//! Lengths of time as PostgreSQL stores them.

use pgrx::datum::Interval;

/// Converts microseconds exactly. pgrx converts them by a floating-point number of seconds, which overflows near the end.
pub fn from_micros(micros: i64) -> Interval {
    Interval::new(0, 0, micros).unwrap_or_else(|_| unreachable!("only months and days can contradict each other"))
}
