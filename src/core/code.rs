//! The number that stands for a layout in the range of a sequence.
//!
//! A sequence that was adopted keeps no numbers of its own. Its range says by which layout its keys are made: it holds two numbers,
//! and is used up. The numbers are negative and lie below all keys, so one that gets out after all moves neither the greatest key nor
//! a consumer. They are as exact in a double as an ID of 53 bits.

use crate::key::sha256;

/// The least code.
const LEAST_CODE: i64 = 1 << 52;

/// Returns the code of the layout with this name: 52 bits of a hash above 2^52.
pub fn sequence_code(layout: &str) -> i64 {
    LEAST_CODE | (sha256(layout.as_bytes()) >> 12) as i64
}

/// Returns the code that the start of a sequence stands for, if it can be one.
pub fn code_of_start(start: i64) -> Option<i64> {
    (-2 * LEAST_CODE < start && start <= -LEAST_CODE).then(|| -start)
}
