//! IDs as texts.

use crate::{Error, Layout, TextFault, TextForm};

/// How many characters of a malformed text an error message shows.
const MAX_SHOWN: usize = 64;

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
