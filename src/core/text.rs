//! The text forms of IDs: the digits of a number system, as many as the layout's bits need.
//!
//! Every form except decimal has a fixed length, and every form except base64url has digits in the order of ASCII. In the
//! others, texts sort like the IDs.

use serde::{Deserialize, Serialize};

use crate::{Error, Layout};

/// How a layout writes its IDs.
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

/// Why a text is not an ID. Positions are characters, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    /// Too few or too many characters.
    #[error("expected {expected} character{}, got {found}", if *expected == 1 { "" } else { "s" })]
    Length {
        /// How many characters there are.
        found: usize,
        /// How many characters the form needs.
        expected: usize,
    },
    /// A character that is not a digit of this form.
    #[error("character {position}, \"{}\", is not a digit of this text form", character.escape_default())]
    Character {
        /// The character.
        character: char,
        /// Its position.
        position: usize,
    },
    /// The number exceeds 64 bits.
    #[error("the number exceeds 64 bits at character {position}")]
    TooLarge {
        /// The position of the first character that makes it too large.
        position: usize,
    },
    /// A leading zero.
    #[error("character 1 is a leading zero")]
    LeadingZero,
}

const CROCKFORD: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ALPHANUMERIC: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE58: &[u8] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BASE64URL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64ORDERED: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~";

/// How many characters of a malformed text an error message shows.
const MAX_SHOWN: usize = 64;

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

    /// The form's name in SQL and in definitions.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Hex => "hex",
            Self::Crockford32 => "crockford32",
            Self::Base36 => "base36",
            Self::Base58 => "base58",
            Self::Base62 => "base62",
            Self::Base64url => "base64url",
            Self::Base64urlReversed => "base64url_reversed",
            Self::Base64ordered => "base64ordered",
        }
    }

    const fn digits(self) -> &'static [u8] {
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

    fn value(self, character: char) -> Option<u64> {
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
    fn length(self, bits: u32) -> usize {
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

impl Layout {
    /// Writes a possible ID as text.
    pub fn encode(&self, id: u64) -> Result<String, Error> {
        self.tick_of(id)?;
        let digits = self.text.digits();
        let base = digits.len() as u64;
        let mut rest = self.displayed(id);
        let mut text = Vec::with_capacity(20);
        let length = if self.text == TextForm::Decimal { 1 } else { self.text.length(self.width()) };
        while rest > 0 || text.len() < length {
            text.push(digits[(rest % base) as usize]);
            rest /= base;
        }
        text.reverse();
        Ok(text.into_iter().map(char::from).collect())
    }

    /// Reads the text of an ID.
    ///
    /// # Errors
    /// [`Error::MalformedText`]; [`Error::ImpossibleId`] if the layout cannot have made the number.
    pub fn parse(&self, text: &str) -> Result<u64, Error> {
        let number = self.number_of(text).map_err(|fault| {
            let text = text.chars().take(MAX_SHOWN).collect();
            Error::MalformedText { layout: self.name.clone(), text, fault }
        })?;
        let id = self.displayed(number);
        self.tick_of(id)?;
        Ok(id)
    }

    fn number_of(&self, text: &str) -> Result<u64, TextFault> {
        let base = self.text.digits().len() as u64;
        let mut number = 0u64;
        let mut found = 0;
        for character in text.chars() {
            found += 1;
            let position = found;
            let value = self.text.value(character).ok_or(TextFault::Character { character, position })?;
            number = number
                .checked_mul(base)
                .and_then(|number| number.checked_add(value))
                .ok_or(TextFault::TooLarge { position })?;
        }
        let decimal = self.text == TextForm::Decimal;
        let expected = if decimal { 1 } else { self.text.length(self.width()) };
        match found {
            0 => Err(TextFault::Length { found, expected }),
            _ if decimal && found > 1 && text.starts_with('0') => Err(TextFault::LeadingZero),
            _ if !decimal && found != expected => Err(TextFault::Length { found, expected }),
            _ => Ok(number),
        }
    }

    /// Converts an ID to the number that is written for it, and back.
    fn displayed(&self, id: u64) -> u64 {
        if self.text != TextForm::Base64urlReversed {
            return id;
        }
        let timestamp = self.geometry.timestamp;
        let reversed = timestamp.get(id).reverse_bits() >> (64 - timestamp.width);
        id & !timestamp.mask() | timestamp.put(reversed)
    }
}
