//! The text forms of IDs: the digits of a number system, as many as the layout's bits need.
//!
//! Every form except decimal has a fixed length, and every form except base64url has digits in the order of ASCII. In the
//! others, texts sort like the IDs.

use serde::{Deserialize, Serialize};

/// How a layout writes its IDs. In SQL and in definitions, a form has the name that it is serialized as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TextForm {
    /// The unsigned number without leading zeros.
    Decimal,
    /// Hexadecimal in lower case; upper case is accepted.
    Hex,
    /// Crockford's base 32; lower case is accepted, O is read as 0, I and L as 1.
    Crockford32,
    /// 0-9, A-Z; lower case is accepted.
    Base36,
    /// 0-9, A-Z, a-z without 0, O, I and l.
    Base58,
    /// 0-9, A-Z, a-z.
    Base62,
    /// The digits of RFC 4648's URL-safe alphabet: A-Z, a-z, 0-9, -, _.
    Base64url,
    /// The same for the ID with its timestamp's bits reversed, so that the first characters change fastest.
    #[serde(rename = "base64url_reversed")]
    Base64urlReversed,
    /// 64 digits in the order of ASCII: 0-9, A-Z, _, a-z, ~.
    Base64ordered,
}

const CROCKFORD: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ALPHANUMERIC: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE58: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BASE64URL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64ORDERED: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";

impl TextForm {
    /// Every form.
    pub const ALL: [Self; 9] = [
        Self::Decimal,
        Self::Hex,
        Self::Crockford32,
        Self::Base36,
        Self::Base58,
        Self::Base62,
        Self::Base64url,
        Self::Base64urlReversed,
        Self::Base64ordered,
    ];

    pub(crate) const fn digits(self) -> &'static [u8] {
        match self {
            Self::Decimal => ALPHANUMERIC.split_at(10).0,
            Self::Hex => b"0123456789abcdef",
            Self::Crockford32 => CROCKFORD,
            Self::Base36 => ALPHANUMERIC.split_at(36).0,
            Self::Base58 => BASE58,
            Self::Base62 => ALPHANUMERIC,
            Self::Base64url | Self::Base64urlReversed => BASE64URL,
            Self::Base64ordered => BASE64ORDERED,
        }
    }

    pub(crate) fn value(self, character: char) -> Option<u64> {
        let byte = u8::try_from(character).ok()?;
        let byte = match self {
            Self::Hex => byte.to_ascii_lowercase(),
            Self::Base36 => byte.to_ascii_uppercase(),
            Self::Crockford32 => match byte.to_ascii_uppercase() {
                b'O' => b'0',
                b'I' | b'L' => b'1',
                other => other,
            },
            _ => byte,
        };
        self.digits().iter().position(|&digit| digit == byte).map(|value| value as u64)
    }

    /// How many digits the largest number of `bits` bits has.
    pub(crate) fn length(self, bits: u32) -> usize {
        let base = self.digits().len() as u128;
        let mut length = 0;
        let mut numbers = 1u128;
        while numbers < 1 << bits {
            numbers *= base;
            length += 1;
        }
        length
    }
}
