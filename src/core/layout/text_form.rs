//! The text forms of IDs: the digits of a number system, as many as the layout's bits need.
//!
//! Every form except decimal has a fixed length, and every form except base64url has digits in the order of ASCII. In the
//! others, texts sort like the IDs.

use serde::{Deserialize, Serialize};

use crate::layout::bits::Bits;

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

    /// The value of each byte as a digit, or [`NO_DIGIT`].
    pub(crate) fn values(self) -> &'static [u8; 256] {
        &TABLES[self as usize].values
    }

    /// How many digits fit into 64 bits, even if each is the greatest one.
    pub(crate) fn fitting(self) -> usize {
        TABLES[self as usize].fitting
    }

    /// How many digits a number of `bits` bits has. In decimal, it has at least so many.
    pub(crate) const fn length(self, bits: u32) -> usize {
        TABLES[self as usize].lengths[bits as usize] as usize
    }
}

/// All bits are set, which no digit has.
pub(crate) const NO_DIGIT: u8 = u8::MAX;

/// Values that follow from a form's digits.
struct Table {
    /// The value of each byte.
    values: [u8; 256],
    fitting: usize,
    /// The lengths of numbers, by their bits.
    lengths: [u8; 65],
}

/// The forms' tables, in the order of [`TextForm::ALL`].
static TABLES: [Table; TextForm::ALL.len()] = {
    let mut tables = [const { Table::EMPTY }; TextForm::ALL.len()];
    let mut form = 0;
    while form < tables.len() {
        tables[form] = Table::of(TextForm::ALL[form]);
        form += 1;
    }
    tables
};

impl Table {
    const EMPTY: Self = Self { values: [NO_DIGIT; 256], fitting: 0, lengths: [1; 65] };

    const fn of(form: TextForm) -> Self {
        let mut table = Self::EMPTY;
        let digits = form.digits();
        let mut value = 0;
        while value < digits.len() {
            table.set(form, digits[value], value as u8);
            value += 1;
        }
        if matches!(form, TextForm::Crockford32) {
            table.set(form, b'O', 0);
            table.set(form, b'I', 1);
            table.set(form, b'L', 1);
        }
        table.fitting = u64::MAX.ilog(digits.len() as u64) as usize;
        let mut width = 1;
        while width <= 64 && !matches!(form, TextForm::Decimal) {
            let largest = Bits { shift: 0, width }.max();
            table.lengths[width as usize] = largest.ilog(digits.len() as u64) as u8 + 1;
            width += 1;
        }
        table
    }

    const fn set(&mut self, form: TextForm, digit: u8, value: u8) {
        self.values[digit as usize] = value;
        if matches!(form, TextForm::Hex | TextForm::Crockford32 | TextForm::Base36) {
            self.values[digit.to_ascii_lowercase() as usize] = value;
            self.values[digit.to_ascii_uppercase() as usize] = value;
        }
    }
}
