//! Layouts as JSON: the form in which users read and write them.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::DefinitionFault;
use crate::{Error, Field, Layout, Role, SequenceRule};

/// A layout as an object with `epoch`, `tick`, `fields` and `sequence`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// The instant of tick 0, in RFC 3339.
    pub epoch: String,
    /// Length of a tick: a number and `us`, `ms` or `s`.
    pub tick: String,
    /// From the most significant bit down.
    pub fields: Vec<FieldDefinition>,
    /// What becomes of the sequence when a tick begins.
    #[serde(default = "reset")]
    pub sequence: SequenceRule,
}

/// A field as an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldDefinition {
    /// Name, unique in its layout.
    pub name: String,
    /// Width in bits.
    pub bits: u8,
    /// What the bits are for.
    pub role: RoleName,
    /// Of a timestamp: its bits are stored in the opposite order.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reversed: bool,
    /// Of a worker: where it stands among several, coarsest first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rank: u8,
    /// Of reserved bits: what they hold.
    #[serde(default, skip_serializing_if = "is_default")]
    pub value: u64,
}

/// A role without its particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names of Role's variants")]
pub enum RoleName {
    Timestamp,
    Worker,
    Sequence,
    Random,
    Reserved,
}

fn reset() -> SequenceRule {
    SequenceRule::Reset
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Definition {
    /// The layout that this defines.
    pub fn layout(&self, name: impl Into<Cow<'static, str>>) -> Result<Layout, Error> {
        let name = name.into();
        let fields = self.fields.iter().map(Field::from).collect();
        let build = || {
            let (epoch, tick) = (parse_epoch(&self.epoch)?, parse_tick(&self.tick)?);
            Ok(Layout::new(name.clone(), epoch, tick, fields, self.sequence)?)
        };
        build().map_err(|reason| Error::Definition { layout: name.clone(), reason })
    }
}

impl From<&FieldDefinition> for Field {
    fn from(field: &FieldDefinition) -> Self {
        let role = match field.role {
            RoleName::Timestamp => Role::Timestamp { reversed: field.reversed },
            RoleName::Worker => Role::Worker { rank: field.rank },
            RoleName::Sequence => Role::Sequence,
            RoleName::Random => Role::Random,
            RoleName::Reserved => Role::Reserved { value: field.value },
        };
        Self { name: field.name.clone().into(), bits: field.bits, role }
    }
}

impl From<&Field> for FieldDefinition {
    fn from(field: &Field) -> Self {
        let (mut reversed, mut rank, mut value) = Default::default();
        let role = match field.role {
            Role::Timestamp { reversed: r } => {
                reversed = r;
                RoleName::Timestamp
            }
            Role::Worker { rank: r } => {
                rank = r;
                RoleName::Worker
            }
            Role::Sequence => RoleName::Sequence,
            Role::Random => RoleName::Random,
            Role::Reserved { value: v } => {
                value = v;
                RoleName::Reserved
            }
        };
        Self { name: field.name.to_string(), bits: field.bits, role, reversed, rank, value }
    }
}

fn parse_epoch(text: &str) -> Result<i64, DefinitionFault> {
    let timestamp: Timestamp = text.parse().map_err(|_| DefinitionFault::Epoch(text.to_owned()))?;
    Ok(timestamp.as_microsecond())
}

fn parse_tick(text: &str) -> Result<i64, DefinitionFault> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match &text[digits..] {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        _ => 0,
    };
    let number: i64 = text[..digits].parse().unwrap_or(0);
    match number.checked_mul(unit) {
        Some(tick) if tick > 0 => Ok(tick),
        _ => Err(DefinitionFault::Tick(text.to_owned())),
    }
}
