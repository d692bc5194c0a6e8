//! Draws an ID as its bits, for people.

use std::fmt::Write;

use crate::{Error, Layout, Role};
use jiff::Timestamp;

impl Layout {
    /// Shows the ID as numbers and as an instant in UTC, then its bits, and below them each field's width, name and number. The
    /// drawing is at most 100 columns wide if the fields' names are short.
    pub fn explain(&self, id: u64) -> Result<String, Error> {
        let tick = self.tick_of(id)?;
        let mut groups = Vec::new();
        if self.width() < 64 {
            groups.push(("unused".to_owned(), 0, 64 - self.width()));
        }
        for (field, bits) in self.fields_with_bits() {
            let number = if matches!(field.role, Role::Timestamp { .. }) { tick } else { bits.get(id) };
            let label = match field.role {
                Role::Reserved { .. } => field.name.to_string(),
                _ => format!("{} = {number}", field.name),
            };
            groups.push((label, bits.get(id), bits.width));
        }
        let title = format!("{} {}  0x{id:016x}  {}", self.name, id as i64, utc(self.start_of(tick)));
        Ok(draw(&title, &groups))
    }
}

/// Draws a title, a row of groups of bits, and below each group its width and label.
pub(crate) fn draw(title: &str, groups: &[(String, u64, u32)]) -> String {
    let mut columns = Vec::new();
    let mut line = String::new();
    for (_, bits, width) in groups {
        columns.push(line.len());
        let _ = write!(line, "{bits:0width$b} ", width = *width as usize);
    }
    let mut text = format!("{title}\n\n{}", line.trim_end());
    for (number, (label, _, width)) in groups.iter().enumerate().rev() {
        text.push('\n');
        let mut drawn = 0;
        for &column in &columns[..number] {
            let _ = write!(text, "{:column$}|", "", column = column - drawn);
            drawn = column + 1;
        }
        let plural = if *width == 1 { " " } else { "s" };
        let _ = write!(text, "{:column$}+- {width:2} bit{plural}  {label}", "", column = columns[number] - drawn);
    }
    text
}

/// Writes an instant as RFC 3339 does, or as microseconds since 1970 if it is after the year 9999.
pub(crate) fn utc(instant: i64) -> String {
    Timestamp::from_microsecond(instant).map_or_else(|_| format!("{instant} us since 1970"), |time| time.to_string())
}
