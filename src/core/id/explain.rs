//! Draws an ID as its bits, for people.

use std::borrow::Cow;
use std::fmt::Write;

use crate::{Error, Layout, Role};
use jiff::Timestamp;

/// A run of bits in a drawing: a field, or bits above the layout's width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The field's name, or "unused".
    pub name: Cow<'static, str>,
    /// The field's number, or None if its bits are the same in all IDs.
    pub number: Option<u64>,
    /// The bits themselves. A reversed timestamp holds other bits than its number.
    pub bits: u64,
    /// How many bits there are.
    pub width: u32,
}

impl Layout {
    /// Returns the 64 bits of an ID as runs, from the most significant bit down.
    pub fn runs(&self, id: u64) -> Result<Vec<Run>, Error> {
        let tick = self.tick_of(id)?;
        let mut runs = Vec::new();
        if self.width() < 64 {
            runs.push(Run { name: "unused".into(), number: None, bits: 0, width: 64 - self.width() });
        }
        for (field, bits) in self.fields_with_bits() {
            let number = match field.role {
                Role::Reserved { .. } => None,
                Role::Timestamp { .. } => Some(tick),
                _ => Some(bits.get(id)),
            };
            runs.push(Run { name: field.name.clone(), number, bits: bits.get(id), width: bits.width });
        }
        Ok(runs)
    }

    /// Shows the ID as numbers and as an instant in UTC, then its bits, and below them each field's width, name and number. The
    /// drawing is at most 100 columns wide if the fields' names are short.
    pub fn explain(&self, id: u64) -> Result<String, Error> {
        let start = self.start_of(self.tick_of(id)?);
        let title = format!("{} {}  0x{id:016x}  {}", self.name, id as i64, to_rfc3339(start));
        Ok(draw(&title, &self.runs(id)?))
    }
}

/// Draws a title, the bits of each run, and below each run its width, name and number.
pub(crate) fn draw(title: &str, runs: &[Run]) -> String {
    let mut columns = Vec::new();
    let mut line = String::new();
    for Run { bits, width, .. } in runs {
        columns.push(line.len());
        let _ = write!(line, "{bits:0width$b} ", width = *width as usize);
    }
    let mut text = format!("{title}\n\n{}", line.trim_end());
    for (place, Run { name, number, width, .. }) in runs.iter().enumerate().rev() {
        text.push('\n');
        let mut drawn = 0;
        for &column in &columns[..place] {
            let _ = write!(text, "{:column$}|", "", column = column - drawn);
            drawn = column + 1;
        }
        let plural = if *width == 1 { " " } else { "s" };
        let _ = write!(text, "{:column$}+- {width:2} bit{plural}  {name}", "", column = columns[place] - drawn);
        if let Some(number) = number {
            let _ = write!(text, " = {number}");
        }
    }
    text
}

/// Writes an instant as RFC 3339 does, or as microseconds since 1970 if it is after the year 9999.
pub(crate) fn to_rfc3339(instant: i64) -> String {
    Timestamp::from_microsecond(instant).map_or_else(|_| format!("{instant} us since 1970"), |time| time.to_string())
}
