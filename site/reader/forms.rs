//! The forms in which people have IDs: as numbers, as texts, and in quotes, URNs and addresses.

/// Returns a text without what surrounds an ID: spaces, quotes, the beginning of a URN, the `n` of a JavaScript literal.
pub fn bare(text: &str) -> &str {
    let text = text.trim().trim_matches(['"', '\'', '`', '<', '>', '@']);
    let text = if text.starts_with("urn:") { text.rsplit(':').next().unwrap_or(text) } else { text };
    match text.strip_suffix('n') {
        Some(number) if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => number,
        _ => text,
    }
}

/// Reads a number of 64 bits: decimal with or without a sign, hexadecimal behind `0x`, or binary behind `0b`.
pub fn number(text: &str) -> Option<u64> {
    let radix = |prefix, radix| {
        let digits = text.strip_prefix(prefix).filter(|digits| !digits.starts_with('+'))?;
        u64::from_str_radix(digits, radix).ok()
    };
    let is_plain = text.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit());
    let decimal = || text.parse::<u64>().ok().or_else(|| Some(text.parse::<i64>().ok()? as u64)).filter(|_| is_plain);
    radix("0x", 16).or_else(|| radix("0b", 2)).or_else(decimal)
}

/// Reads bytes in hexadecimal: as `bytea` shows them, or as a UUID.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = match text.strip_prefix("\\x") {
        Some(digits) => digits.to_owned(),
        None if text.len() == 36 => text.replace('-', ""),
        None => return None,
    };
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2));
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}

/// Returns whether a number is written as JavaScript writes one that it has rounded.
pub fn is_rounded(text: &str) -> bool {
    text.contains(['.', 'e', 'E']) && text.parse::<f64>().is_ok_and(|number| number.abs() >= 9_007_199_254_740_992.0)
}
