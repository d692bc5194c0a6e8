//! An ID drawn as its bits, for people.

use std::fmt::Write;

use jiff::Timestamp;

use crate::bits::Bits;
use crate::{Error, Layout, Role};

impl Layout {
    /// The ID as numbers and as an instant in UTC, its bits, and under them each field's width, name and number.
    /// At most 100 columns wide where names are not longer than a word.
    pub fn explain(&self, id: u64) -> Result<String, Error> {
        let tick = self.tick_of(id)?;
        let unused = Bits { shift: self.width().min(63), width: 64 - self.width() };
        let mut groups: Vec<(String, Bits)> = Vec::new();
        if unused.width > 0 {
            groups.push((format!("{}  unused", bits(unused.width)), unused));
        }
        for (field, place) in self.placed_fields() {
            let mut label = format!("{}  {}", bits(place.width), field.name);
            let number = if matches!(field.role, Role::Timestamp { .. }) { tick } else { place.get(id) };
            if !matches!(field.role, Role::Reserved { .. }) {
                let _ = write!(label, " = {number}");
            }
            groups.push((label, place));
        }

        let mut text = format!("{} {}  0x{id:016x}  {}\n\n", self.name, id as i64, utc(self.start_of(tick)));
        let mut columns = Vec::new();
        let mut line = String::new();
        for (_, place) in &groups {
            columns.push(line.len());
            let _ = write!(line, "{:0width$b} ", place.get(id), width = place.width as usize);
        }
        text.push_str(line.trim_end());
        for (number, (label, _)) in groups.iter().enumerate().rev() {
            text.push('\n');
            let mut drawn = 0;
            for &column in &columns[..number] {
                let _ = write!(text, "{:column$}|", "", column = column - drawn);
                drawn = column + 1;
            }
            let _ = write!(text, "{:column$}+- {label}", "", column = columns[number] - drawn);
        }
        Ok(text)
    }
}

fn bits(width: u32) -> String {
    format!("{width:2} bit{}", if width == 1 { " " } else { "s" })
}

/// RFC 3339, or microseconds since 1970 after the year 9999.
fn utc(instant: i64) -> String {
    Timestamp::from_microsecond(instant).map_or_else(|_| format!("{instant} us since 1970"), |time| time.to_string())
}
