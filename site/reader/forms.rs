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

/// Returns a number without what groups its digits by three, or the text itself.
pub fn ungrouped(text: &str) -> String {
    let mut groups = text.split([',', '.', ' ', '_', '\'', '’', '\u{a0}', '\u{202f}']);
    let is_first = groups.next().is_some_and(|first| is_digits(first) && first.len() <= 3);
    let are_threes = groups.clone().count() > 1 && groups.all(|group| is_digits(group) && group.len() == 3);
    if is_first && are_threes { text.chars().filter(char::is_ascii_digit).collect() } else { text.to_owned() }
}

/// Reads the code of a post in an address of Instagram: the digits of its ID in base64. The ID of today has eleven.
pub fn shortcode(text: &str) -> Option<u64> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digit = |byte: u8| DIGITS.iter().position(|&digit| digit == byte);
    // Digits alone are rather a number.
    let can_be = (9..=11).contains(&text.len()) && !is_digits(text);
    let number =
        can_be.then(|| text.bytes().try_fold(0u128, |number, byte| Some(number << 6 | digit(byte)? as u128)))??;
    u64::try_from(number).ok()
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
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

#[cfg(test)]
mod tests {
    use super::{shortcode, ungrouped};

    #[test]
    fn grouped_digits_are_a_number() {
        for text in [
            "1,541,815,603,606,036,480",
            "1 541 815 603 606 036 480",
            "1.541.815.603.606.036.480",
            "1_541_815_603_606_036_480",
        ] {
            assert_eq!(ungrouped(text), "1541815603606036480");
        }
        for text in ["1.5", "1,541", "1,54,815", "0AWE5HZP3SKTT", "", "1.5418156036060365e+18"] {
            assert_eq!(ungrouped(text), text);
        }
    }

    #[test]
    fn a_shortcode_is_base64() {
        assert_eq!(shortcode("CkNhKCWSPR7"), Some(2_958_166_355_503_281_275));
        for text in ["dQw4w9WgXcQ", "12345678901", "hello world", "short"] {
            assert_eq!(shortcode(text), None, "{text}");
        }
    }
}
