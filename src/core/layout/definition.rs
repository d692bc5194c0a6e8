//! Layouts as JSON, as users read and write them.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::builtin::built_in;
use super::field::{Field, Reversal, Role};
use super::text_form::TextForm;
use super::{LONGEST_NAME, Layout};
use crate::{DefinitionFault, Error, Fault};

/// Each field takes at least one bit.
const MOST_FIELDS: usize = 64;
/// How many characters of a wrong text an error shows.
const MOST_SHOWN: usize = 200;

/// A layout as an object. Missing keys are taken from the built-in layout that `like` names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// A built-in layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub like: Option<String>,
    /// The instant of tick 0, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<String>,
    /// Length of a tick: a number and `us`, `ms` or `s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<String>,
    /// From the most significant bit down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fields: Option<Vec<FieldDefinition>>,
    /// The text form of IDs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<TextForm>,
}

/// A field as an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldDefinition {
    /// Name, unique in its layout.
    pub name: String,
    /// Width in bits.
    pub bits: u8,
    /// The purpose of the bits.
    pub role: RoleName,
    /// For a timestamp: whether its bits are stored in the opposite order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reversed: Option<bool>,
    /// For a worker field: its rank among several, coarsest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u8>,
    /// For reserved bits: the number that they hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<u64>,
}

/// The name of a [`Role`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names of Role's variants")]
pub enum RoleName {
    Timestamp,
    Worker,
    Sequence,
    Tag,
    Random,
    /// For built-in layouts only.
    #[serde(skip_deserializing)]
    Flag,
    Reserved,
}

impl Definition {
    /// Reads JSON. An unknown or missing key or a value of the wrong type is [`Error::Definition`], which names its path.
    pub fn from_json(name: &str, json: &str) -> Result<Self, Error> {
        let fault = |path: String, message: String| {
            invalid(name, DefinitionFault::Json { path: short(&path), message: short(&message) })
        };
        let value: Value = serde_json::from_str(json).map_err(|error| fault(String::from("."), error.to_string()))?;
        // Serde would accept a list for an object, its items in the order of the keys.
        let fields = value.get("fields").and_then(Value::as_array).into_iter().flatten().enumerate();
        let objects = std::iter::once((String::from("."), &value));
        for (path, value) in objects.chain(fields.map(|(number, field)| (format!("fields[{number}]"), field))) {
            if !value.is_object() {
                return Err(fault(path, "expected an object".to_owned()));
            }
        }
        serde_path_to_error::deserialize(&value).map_err(|error| {
            let path = error.path().to_string();
            let message = error.into_inner().to_string();
            let message = message.replace("expected u8", "expected a number from 0 to 255");
            fault(path, message.replace("expected u64", "expected a number not below 0"))
        })
    }

    /// Builds the layout that this defines.
    pub fn layout(&self, name: &str) -> Result<Layout, Error> {
        self.build(name).map_err(|fault| invalid(name, fault))
    }

    /// Builds a new layout. Unlike [`Definition::layout`], it refuses an invalid name and an epoch after `now`, so that
    /// layouts that exist can always be read.
    pub fn check_new(&self, name: &str, now: i64) -> Result<Layout, Error> {
        check_name(name).map_err(|fault| invalid(name, fault))?;
        let layout = self.layout(name)?;
        if layout.epoch > now {
            let epoch = self.epoch.clone().unwrap_or_default();
            return Err(invalid(name, DefinitionFault::Future(epoch)));
        }
        Ok(layout)
    }

    /// Returns the definition of a layout that stands alone, so that it means the same whatever becomes of the built-in layout
    /// that `like` names. A definition cannot have flags, nor two fields of one name: for these, `like` remains.
    pub fn resolved(self, layout: &Layout) -> Self {
        let alone = Self {
            like: None,
            epoch: Timestamp::from_microsecond(layout.epoch).ok().map(|epoch| epoch.to_string()),
            tick: Some(format!("{}us", layout.tick_length)),
            fields: Some(layout.fields.iter().map(FieldDefinition::from).collect()),
            text: Some(layout.text),
        };
        let is_same = !alone.fields.iter().flatten().any(|field| field.role == RoleName::Flag)
            && alone.layout(&layout.name).is_ok_and(|other| other == *layout);
        if is_same { alone } else { Self { like: self.like, fields: self.fields, ..alone } }
    }

    fn build(&self, name: &str) -> Result<Layout, DefinitionFault> {
        let known = |like: &String| built_in(like).ok_or_else(|| DefinitionFault::Like(short(like)));
        let model = self.like.as_ref().map(known).transpose()?;
        let missing = DefinitionFault::Missing;
        let epoch = match &self.epoch {
            Some(text) => parse_epoch(text)?,
            None => model.ok_or(missing("epoch"))?.epoch,
        };
        let tick_length = match &self.tick {
            Some(text) => parse_tick(text)?,
            None => model.ok_or(missing("tick"))?.tick_length,
        };
        let fields = match &self.fields {
            Some(fields) => custom_fields(fields)?,
            None => model.ok_or(missing("fields"))?.fields.to_vec(),
        };
        let mut layout = Layout::new(name.to_owned(), epoch, tick_length, fields)?;
        layout.text = self.text.or(model.map(|model| model.text)).unwrap_or(TextForm::Decimal);
        // Only the original generator knows when to set a flag, so such layouts are read-only.
        layout.generates = layout.geometry.flag.width == 0;
        Ok(layout)
    }
}

fn invalid(name: &str, reason: DefinitionFault) -> Error {
    Error::Definition { layout: Cow::Owned(short(name)), reason }
}

/// Returns the beginning of a text, which an error shows.
fn short(text: &str) -> String {
    text.chars().take(MOST_SHOWN).collect()
}

fn check_name(name: &str) -> Result<(), DefinitionFault> {
    let good = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(good) {
        return Err(DefinitionFault::Name(short(name)));
    }
    Ok(())
}

fn custom_fields(definitions: &[FieldDefinition]) -> Result<Vec<Field>, DefinitionFault> {
    if definitions.len() > MOST_FIELDS {
        return Err(DefinitionFault::TooManyFields(definitions.len()));
    }
    let mut fields: Vec<Field> = Vec::new();
    for (index, definition) in definitions.iter().enumerate() {
        check_name(&definition.name)?;
        if fields.iter().any(|field| field.name == definition.name) {
            return Err(DefinitionFault::Twice(definition.name.clone()));
        }
        let stray = [
            ("reversed", definition.reversed.is_some(), RoleName::Timestamp),
            ("rank", definition.rank.is_some(), RoleName::Worker),
            ("value", definition.value.is_some(), RoleName::Reserved),
        ];
        if let Some((key, ..)) = stray.into_iter().find(|(_, given, role)| *given && definition.role != *role) {
            return Err(DefinitionFault::Stray { key, number: index + 1 });
        }
        fields.push(Field::from(definition));
    }
    Ok(fields)
}

impl From<&FieldDefinition> for Field {
    fn from(field: &FieldDefinition) -> Self {
        let role = match field.role {
            RoleName::Timestamp if field.reversed == Some(true) => Role::Timestamp { reversed: Reversal::Always },
            RoleName::Timestamp => Role::Timestamp { reversed: Reversal::Never },
            RoleName::Worker => Role::Worker { rank: field.rank.unwrap_or(0) },
            RoleName::Sequence => Role::Sequence,
            RoleName::Tag => Role::Tag,
            RoleName::Random => Role::Random,
            RoleName::Flag => Role::Flag,
            RoleName::Reserved => Role::Reserved { value: field.value.unwrap_or(0) },
        };
        Self { name: field.name.clone().into(), bits: field.bits, role }
    }
}

impl From<&Field> for FieldDefinition {
    fn from(field: &Field) -> Self {
        let plain = |role| {
            let name = field.name.to_string();
            Self { name, bits: field.bits, role, reversed: None, rank: None, value: None }
        };
        match field.role {
            Role::Timestamp { reversed } => {
                Self { reversed: (reversed != Reversal::Never).then_some(true), ..plain(RoleName::Timestamp) }
            }
            Role::Worker { rank } => Self { rank: (rank > 0).then_some(rank), ..plain(RoleName::Worker) },
            Role::Sequence => plain(RoleName::Sequence),
            Role::Tag => plain(RoleName::Tag),
            Role::Random => plain(RoleName::Random),
            Role::Flag => plain(RoleName::Flag),
            Role::Reserved { value } => Self { value: (value > 0).then_some(value), ..plain(RoleName::Reserved) },
        }
    }
}

fn parse_epoch(text: &str) -> Result<i64, DefinitionFault> {
    let timestamp: Timestamp = text.parse().map_err(|_| DefinitionFault::Epoch(short(text)))?;
    if timestamp.subsec_nanosecond() % 1_000 != 0 {
        return Err(DefinitionFault::Epoch(short(text)));
    }
    Ok(timestamp.as_microsecond())
}

fn parse_tick(text: &str) -> Result<i64, DefinitionFault> {
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "us" => Some(1),
        "ms" => Some(1_000),
        "s" => Some(1_000_000),
        _ => None,
    };
    let number: Option<i64> = number.parse().ok();
    let tick = number.zip(unit).and_then(|(number, unit)| number.checked_mul(unit));
    match tick {
        Some(0) => Err(Fault::Tick.into()),
        Some(tick) => Ok(tick),
        None => Err(DefinitionFault::Tick(short(text))),
    }
}
