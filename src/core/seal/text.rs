//! The text of a public ID, as TypeID has it: a prefix, `_`, and 128 bits in base32.

/// The longest name of a key: the longest prefix of a TypeID.
pub const LONGEST_NAME: usize = 63;

const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// How many digits 128 bits have. The first digit stands for three bits.
const LENGTH: usize = 26;
/// How long the text of a UUID is, and where it has hyphens.
const UUID: usize = 36;
const HYPHENS: [usize; 4] = [8, 13, 18, 23];

/// Returns whether this can be a key's name, which is the prefix of its public IDs.
pub fn is_name(name: &[u8]) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    name.len() <= LONGEST_NAME
        && is_letter(name.first())
        && is_letter(name.last())
        && name.iter().all(|&byte| byte == b'_' || byte.is_ascii_lowercase())
}

/// Writes a sealed ID behind the name of its key.
pub fn write(name: &str, sealed: u128) -> String {
    let mut text = String::with_capacity(name.len() + 1 + LENGTH);
    text.push_str(name);
    text.push('_');
    text.extend((0..LENGTH).rev().map(|digit| char::from(DIGITS[(sealed >> (5 * digit)) as usize % 32])));
    text
}

/// Reads a text as [`write()`] has written it, or as a UUID.
pub fn read(name: &str, text: &[u8]) -> Option<u128> {
    match text.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"_")) {
        Some(digits) => read_digits(digits),
        None => read_uuid(text),
    }
}

fn read_digits(digits: &[u8]) -> Option<u128> {
    if digits.len() != LENGTH || !(b'0'..=b'7').contains(&digits[0]) {
        return None;
    }
    digits.iter().try_fold(0, |number, &digit| {
        let value = DIGITS.iter().position(|&other| other == digit)?;
        Some(number << 5 | value as u128)
    })
}

fn read_uuid(text: &[u8]) -> Option<u128> {
    let text: &[u8; UUID] = text.try_into().ok()?;
    text.iter().enumerate().try_fold(0, |number, (place, &byte)| match HYPHENS.contains(&place) {
        true => (byte == b'-').then_some(number),
        false => Some(number << 4 | u128::from(char::from(byte).to_digit(16)?)),
    })
}
