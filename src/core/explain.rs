//! An ID drawn as its bits, for people.

use std::fmt::Write;

use jiff::Timestamp;

use crate::{Error, Layout, Role};

impl Layout {
    /// The ID as numbers and as an instant in UTC, its bits, and under them each field's width, name and number. At most
    /// 100 columns wide where names are not longer than a word.
    pub fn explain(&self, id: u64) -> Result<String, Error> {
        let tick = self.tick_of(id)?;
        let mut groups = Vec::new();
        if self.width() < 64 {
            groups.push(("unused".to_owned(), 0, 64 - self.width()));
        }
        for (field, place) in self.placed_fields() {
            let number = if matches!(field.role, Role::Timestamp { .. }) { tick } else { place.get(id) };
            let label = match field.role {
                Role::Reserved { .. } => field.name.to_string(),
                _ => format!("{} = {number}", field.name),
            };
            groups.push((label, place.get(id), place.width));
        }
        let title = format!("{} {}  0x{id:016x}  {}", self.name, id as i64, utc(self.start_of(tick)));
        Ok(draw(&title, &groups))
    }
}

/// A title, then groups of bits in a row, and under each its width and label.
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

/// RFC 3339, or microseconds since 1970 after the year 9999.
pub(crate) fn utc(instant: i64) -> String {
    Timestamp::from_microsecond(instant).map_or_else(|_| format!("{instant} us since 1970"), |time| time.to_string())
}
