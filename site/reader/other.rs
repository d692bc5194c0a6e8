//! IDs that no layout has: UUIDs, ULIDs, KSUIDs, TypeIDs, ObjectIds, and IDs of TikTok.

use flake_core::seal;
use serde::Serialize;

use crate::rank;

/// A kind of ID, and when this one was made if it says so.
#[derive(Serialize)]
pub struct Other {
    pub what: String,
    /// In microseconds since 1970. JavaScript would round a number.
    pub at: Option<String>,
    pub says: &'static str,
}

const RANDOM: &str = "Its bits are random, so it has no time.";
const SEALED: &str = "A UUID of version 8 is for what an application defines. It can be a public ID of flake.";
const UUID: &str = "A UUID";

/// Returns what a text is. A text that would be too early or in the future is rather something else.
pub fn read(text: &str, now: i64) -> Option<Other> {
    let found =
        uuid(text).or_else(|| type_id(text)).or_else(|| ulid(text)).or_else(|| ksuid(text)).or_else(|| object_id(text));
    found.filter(|other| {
        other.says == UUID || other.time().is_none_or(|at| (rank::EARLIEST..=now + rank::DAY).contains(&at))
    })
}

/// Returns when TikTok made an ID: its upper 32 bits are seconds.
pub fn tiktok(id: u64, now: i64) -> Option<i64> {
    let at = (id >> 32) as i64 * 1_000_000;
    (rank::OF_TIKTOK..=now + rank::DAY).contains(&at).then_some(at)
}

impl Other {
    fn new(what: impl Into<String>, at: Option<i64>, says: &'static str) -> Self {
        Self { what: what.into(), at: at.map(|at| at.to_string()), says }
    }

    pub fn of_tiktok(at: i64) -> Self {
        Self::new("ID of TikTok", Some(at), "Its upper 32 bits are seconds since 1970.")
    }

    fn time(&self) -> Option<i64> {
        self.at.as_ref()?.parse().ok()
    }
}

fn uuid(text: &str) -> Option<Other> {
    let text = text.trim_start_matches('{').trim_end_matches('}');
    let has_hyphens = text.len() == 36 && [8, 13, 18, 23].iter().all(|&place| text.as_bytes()[place] == b'-');
    let digits = if has_hyphens { text.replace('-', "") } else { text.to_owned() };
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let number = u128::from_str_radix(&digits, 16).ok()?;
    let version = number >> 76 & 0xf;
    if !has_hyphens {
        // A hash has as many digits.
        return (version == 7 && variant(number))
            .then(|| Other::new("UUID of version 7", Some(time_of_7(number)), "Written without hyphens."));
    }
    if number == 0 || number == u128::MAX {
        return Some(Other::new(if number == 0 { "Nil UUID" } else { "Max UUID" }, None, "All of its bits are equal."));
    }
    if !variant(number) {
        return Some(Other::new("UUID of an old variant", None, "It is older than the versions of RFC 9562."));
    }
    let what = format!("UUID of version {version}");
    Some(match version {
        1 => Other::new(
            what,
            Some(gregorian((number >> 96) | (number >> 80 & 0xffff) << 32 | (number >> 64 & 0xfff) << 48)),
            UUID,
        ),
        6 => Other::new(
            what,
            Some(gregorian((number >> 96) << 28 | (number >> 80 & 0xffff) << 12 | number >> 64 & 0xfff)),
            UUID,
        ),
        7 => Other::new(what, Some(time_of_7(number)), UUID),
        3 | 5 => Other::new(what, None, "It is the hash of a name, so it has no time."),
        4 => Other::new(what, None, RANDOM),
        8 => Other::new(what, None, SEALED),
        _ => Other::new(what, None, "RFC 9562 says nothing of a time in this version."),
    })
}

fn variant(number: u128) -> bool {
    number >> 62 & 0b11 == 0b10
}

fn time_of_7(number: u128) -> i64 {
    (number >> 80) as i64 * 1_000
}

/// Ticks of 100 nanoseconds since 15 October 1582.
fn gregorian(ticks: u128) -> i64 {
    (ticks as i64 - 0x01b2_1dd2_1381_4000) / 10
}

/// A prefix, `_`, and a UUID in base32. flake's public IDs have this form too, with UUIDs of version 8.
fn type_id(text: &str) -> Option<Other> {
    let (name, _) = text.rsplit_once('_')?;
    if !seal::is_name(name.as_bytes()) {
        return None;
    }
    let number = seal::read(name, text.as_bytes())?;
    match number >> 76 & 0xf {
        7 if variant(number) => {
            Some(Other::new("TypeID", Some(time_of_7(number)), "A prefix, and a UUID of version 7 in base32."))
        }
        8 if variant(number) => None,
        _ => Some(Other::new("TypeID", None, "A prefix, and a UUID in base32 of a version that has no time.")),
    }
}

fn ulid(text: &str) -> Option<Other> {
    let digits = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let is_ulid = text.len() == 26 && text.as_bytes()[0] <= b'7';
    let number = is_ulid
        .then(|| positions(&text.to_ascii_uppercase(), digits))??
        .iter()
        .fold(0, |number: u128, &digit| number << 5 | u128::from(digit));
    Some(Other::new("ULID", Some(time_of_7(number)), "48 bits of milliseconds, and 80 random bits, in base32."))
}

fn ksuid(text: &str) -> Option<Other> {
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let positions = (text.len() == 27).then(|| positions(text, digits))??;
    // 160 bits, from the least significant 32 on.
    let mut words = [0u32; 5];
    for digit in positions {
        let mut carry = u64::from(digit);
        for word in &mut words {
            carry += u64::from(*word) * 62;
            *word = carry as u32;
            carry >>= 32;
        }
        if carry > 0 {
            return None;
        }
    }
    let at = (i64::from(words[4]) + 1_400_000_000) * 1_000_000;
    Some(Other::new("KSUID", Some(at), "32 bits of seconds, and 128 random bits, in base62."))
}

fn object_id(text: &str) -> Option<Other> {
    let is_hex = text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let seconds = is_hex.then(|| u32::from_str_radix(&text[..8], 16).ok())??;
    Some(Other::new(
        "ObjectId of MongoDB",
        Some(i64::from(seconds) * 1_000_000),
        "32 bits of seconds, 40 random bits and a counter, in hexadecimal.",
    ))
}

fn positions(text: &str, digits: &[u8]) -> Option<Vec<u8>> {
    text.bytes().map(|byte| Some(digits.iter().position(|&digit| digit == byte)? as u8)).collect()
}

#[cfg(test)]
mod tests {
    use super::{read, tiktok};

    /// 2026-01-01.
    const NOW: i64 = 1_767_225_600_000_000;

    #[test]
    fn each_kind_is_known_by_its_form() {
        for (text, what, at) in [
            ("017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "UUID of version 7", Some(1_645_557_742_000)),
            ("017F22E279B07CC398C4DC0C0C07398F", "UUID of version 7", Some(1_645_557_742_000)),
            ("c232ab00-9414-11ec-b3c8-9f6bdeced846", "UUID of version 1", Some(1_645_557_742_000)),
            ("1ec9414c-232a-6b00-b3c8-9f6bdeced846", "UUID of version 6", Some(1_645_557_742_000)),
            ("919108f7-52d1-4320-9bac-f847db4148a8", "UUID of version 4", None),
            ("00000000-0000-0000-0000-000000000000", "Nil UUID", None),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "ULID", Some(1_469_922_850_259)),
            ("0ujtsYcgvSTl8PAuAdqWYSMnLOv", "KSUID", Some(1_507_608_047_000)),
            ("507f1f77bcf86cd799439011", "ObjectId of MongoDB", Some(1_350_508_407_000)),
            ("user_01h455vb4pex5vsknk084sn02q", "TypeID", Some(1_688_096_058_518)),
        ] {
            let other = read(text, NOW).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((other.what.as_str(), other.at), (what, at.map(|at: i64| (at * 1000).to_string())), "{text}");
        }
    }

    #[test]
    fn others_are_unknown() {
        // A public ID of flake, a hash, a ULID of the year 10889, KSUIDs that are too large and of the future, an ObjectId of 1970.
        for text in [
            "usr_75ddtqrrhdhagam34yy93n037g",
            "d41d8cd98f00b204e9800998ecf8427e",
            "7ZZZZZZZZZZZZZZZZZZZZZZZZZ",
            "zzzzzzzzzzzzzzzzzzzzzzzzzzz",
            "aWgEPTl1tmebfsQzFP4bxwgy80V",
            "000000000000000000000001",
            "hello",
            "",
        ] {
            assert!(read(text, NOW).is_none(), "{text}");
        }
    }

    #[test]
    fn tiktok_has_seconds() {
        assert_eq!(tiktok(6_718_335_390_845_095_173, NOW), Some(1_564_234_353_000_000));
        assert_eq!(tiktok(1_541_815_603_606_036_480, NOW), None);
    }
}
