//! Reads an ID in a browser: a text of JSON comes in, a text of JSON goes out.
//!
//! JavaScript writes the question where `space` says, calls `read`, and reads the answer, which begins where `answer` says. Elsewhere the
//! functions have no such names, because the C library of a test's machine has a `read` of its own.

#![allow(unsafe_code, reason = "JavaScript calls these functions by their names")]

mod answer;
mod forms;
mod found;
mod other;
mod rank;

use std::sync::Mutex;

/// The question, and then the answer. A page has one thread.
static TEXT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// Returns where a question of so many bytes has room.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn space(length: usize) -> *mut u8 {
    let mut text = TEXT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    text.clear();
    text.resize(length, 0);
    text.as_mut_ptr()
}

/// Answers the question, and returns the length of the answer.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn read() -> usize {
    let mut text = TEXT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    *text = answer::to(&text).into_bytes();
    text.len()
}

/// Returns where the answer begins.
#[cfg_attr(target_arch = "wasm32", unsafe(no_mangle))]
pub extern "C" fn answer() -> *const u8 {
    TEXT.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).as_ptr()
}
