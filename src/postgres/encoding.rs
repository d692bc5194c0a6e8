//! Text in a database of any encoding.
#![allow(unsafe_code, reason = "PostgreSQL knows where a character ends")]

use std::borrow::Cow;

use pgrx::pg_sys;

/// Escapes all characters that are not ASCII. Names of layouts and digits of IDs are ASCII in every encoding, so this suffices to
/// compare and to show them. Of a longer text it returns the first `longest` bytes and one more, which is just as wrong.
pub fn escape_non_ascii(text: &[u8], longest: usize) -> String {
    text.get(..=longest).unwrap_or(text).escape_ascii().to_string()
}

/// Returns UTF-8 as it is. In text of another encoding, question marks replace bytes that are not ASCII. The text must be short,
/// because it is copied.
pub fn to_utf8_lossy(text: &[u8]) -> Cow<'_, str> {
    let ascii = |&byte: &u8| if byte.is_ascii() { char::from(byte) } else { '?' };
    str::from_utf8(text).map_or_else(|_| text.iter().map(ascii).collect(), Cow::Borrowed)
}

/// Returns the beginning of a text of any length, for people to read.
pub fn shortened(text: &[u8], longest: usize) -> String {
    // SAFETY: it reads the text.
    let length = unsafe { pg_sys::pg_mbcliplen(text.as_ptr().cast(), text.len() as i32, longest as i32) } as usize;
    let more = if length < text.len() { "..." } else { "" };
    format!("{}{more}", to_utf8_lossy(&text[..length]))
}
