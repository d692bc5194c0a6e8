//! IDs as texts.

use crate::layout::text_form::NO_DIGIT;
use crate::{Error, Layout, TextFault, TextForm};

/// How many characters of a malformed text an error message shows.
const MAX_SHOWN: usize = 64;

/// How many characters the longest text has: 64 bits in decimal.
pub const LONGEST_TEXT: usize = 20;

impl Layout {
    /// Writes a possible ID as text.
    pub fn encode(&self, id: u64) -> Result<String, Error> {
        Ok(self.encode_into(id, &mut [0; LONGEST_TEXT])?.iter().copied().map(char::from).collect())
    }

    /// Writes a possible ID as text, which is ASCII, into a buffer.
    pub fn encode_into<'a>(&self, id: u64, buffer: &'a mut [u8; LONGEST_TEXT]) -> Result<&'a [u8], Error> {
        self.tick_of(id)?;
        let number = self.displayed(id);
        let length = match self.text {
            TextForm::Decimal => number.checked_ilog10().map_or(1, |log| log as usize + 1),
            _ => self.text.length(self.width()),
        };
        let text = &mut buffer[..length];
        // A division by a constant takes a fraction of the time of one by a variable.
        let spell = match self.text.digits().len() {
            10 => spell::<10>,
            16 => spell::<16>,
            32 => spell::<32>,
            36 => spell::<36>,
            58 => spell::<58>,
            62 => spell::<62>,
            _ => spell::<64>,
        };
        spell(self.text.digits(), number, text);
        Ok(text)
    }

    /// Reads the text of an ID.
    ///
    /// # Errors
    /// [`Error::MalformedText`]; [`Error::ImpossibleId`] if the number cannot be an ID of the layout.
    pub fn parse(&self, text: &(impl AsRef<[u8]> + ?Sized)) -> Result<u64, Error> {
        let text = text.as_ref();
        let number = self.number_of(text).map_err(|fault| {
            let text = first_characters(text, MAX_SHOWN);
            Error::MalformedText { layout: self.name.clone(), text, fault }
        })?;
        let id = self.displayed(number);
        self.tick_of(id)?;
        Ok(id)
    }

    fn number_of(&self, text: &[u8]) -> Result<u64, TextFault> {
        let base = self.text.digits().len() as u64;
        let values = self.text.values();
        // The first digits cannot overflow, so one check for all of them suffices.
        let (fitting, rest) = text.split_at(text.len().min(self.text.fitting()));
        let (mut number, mut all) = (0u64, 0);
        for &byte in fitting {
            let value = values[usize::from(byte)];
            number = number.wrapping_mul(base).wrapping_add(value.into());
            all |= value;
        }
        if all == NO_DIGIT {
            return Err(first_other(text, values));
        }
        for (place, &byte) in rest.iter().enumerate() {
            let value = values[usize::from(byte)];
            if value == NO_DIGIT {
                return Err(first_other(text, values));
            }
            let position = fitting.len() + place + 1;
            let sum = number.checked_mul(base).and_then(|product| product.checked_add(value.into()));
            number = sum.ok_or(TextFault::TooLarge { position })?;
        }
        let decimal = self.text == TextForm::Decimal;
        let (found, expected) = (text.len(), self.text.length(self.width()));
        match found {
            0 => Err(TextFault::Length { found, expected }),
            _ if decimal && found > 1 && text.starts_with(b"0") => Err(TextFault::LeadingZero),
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

/// Returns the fault of a text that contains a character other than a digit.
#[cold]
fn first_other(text: &[u8], values: &[u8; 256]) -> TextFault {
    let place = text.iter().position(|&byte| values[usize::from(byte)] == NO_DIGIT).unwrap_or_default();
    let character = first_characters(&text[place..], 1).chars().next().unwrap_or_default();
    TextFault::Character { character, position: place + 1 }
}

/// Returns the first characters of a text of any length, even if it is not UTF-8.
fn first_characters(text: &[u8], number: usize) -> String {
    String::from_utf8_lossy(&text[..text.len().min(4 * number)]).chars().take(number).collect()
}

/// Writes the digits of a number, two at a time, until the text is full.
fn spell<const BASE: usize>(digits: &[u8], mut rest: u64, text: &mut [u8]) {
    let digits: &[u8; BASE] = digits.first_chunk().unwrap_or_else(|| unreachable!());
    let (first, pairs) = text.as_rchunks_mut();
    for [one, two] in pairs.iter_mut().rev() {
        let pair = (rest % (BASE * BASE) as u64) as usize;
        rest /= (BASE * BASE) as u64;
        *one = digits[pair / BASE];
        *two = digits[pair % BASE];
    }
    if let [one] = first {
        *one = digits[rest as usize];
    }
}
