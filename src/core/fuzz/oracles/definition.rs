//! Definitions. An accepted definition makes a layout, and the same layout again after it was written and stored. Two layouts have
//! the same key exactly if they make the same IDs.

use flake_core::{BUILTIN, Definition, Error, FieldDefinition, Layout, RoleName, TextForm};

use super::choices::Choices;
use super::{generators, layout};

/// Reads lines of JSON up to an empty line; the rest are decisions.
pub fn written(data: &[u8]) {
    let end = data.windows(2).position(|pair| pair == b"\n\n").unwrap_or(data.len());
    let (lines, rest) = data.split_at(end);
    let Ok(lines) = std::str::from_utf8(lines) else { return };
    let mut choices = Choices(rest);
    let layouts: Vec<Layout> = lines.lines().take(3).filter_map(|line| accepted(line, &mut choices)).collect();
    for pair in layouts.windows(2) {
        layout::related(&pair[0], &pair[1], &mut choices);
        generators::never_repeat(&pair[0], &pair[1], &mut choices);
    }
}

/// Builds a definition from decisions, and another one that differs a little.
pub fn built(data: &[u8]) {
    let mut choices = Choices(data);
    let one = definition(&mut choices);
    let mut other = one.clone();
    for _ in 0..choices.byte() % 3 {
        change(&mut other, &mut choices);
    }
    let layouts = [one, other].map(|definition| accepted(&serde_json::to_string(&definition).unwrap(), &mut choices));
    if let [Some(one), Some(other)] = layouts {
        layout::related(&one, &other, &mut choices);
        generators::never_repeat(&one, &other, &mut choices);
    }
}

/// Returns the layout, if the definition is accepted.
fn accepted(json: &str, choices: &mut Choices<'_>) -> Option<Layout> {
    let read = Definition::from_json("fuzz", json).and_then(|read| Ok((read.check_new("fuzz", i64::MAX)?, read)));
    let (new, read) = match read {
        Ok(found) => found,
        Err(Error::Definition { layout, .. }) => {
            assert_eq!(layout, "fuzz");
            return None;
        }
        Err(other) => panic!("{other:?}"),
    };
    let again = |definition: &Definition| {
        let written = serde_json::to_string(definition).unwrap();
        let read = Definition::from_json("fuzz", &written).unwrap();
        assert_eq!(read, *definition);
        read.check_new("fuzz", i64::MAX).unwrap()
    };
    assert_eq!(again(&read), new);
    let stored = read.resolved(&new);
    assert_eq!(again(&stored), new);
    assert_eq!(stored.clone().resolved(&new), stored);
    layout::holds(&new, choices);
    Some(new)
}

fn definition(choices: &mut Choices<'_>) -> Definition {
    let is_alone = choices.byte() > 63;
    let mut definition = Definition {
        like: (!is_alone).then(|| choices.pick(BUILTIN).name().to_owned()),
        epoch: is_alone.then(|| epoch(choices)),
        tick: is_alone.then(|| tick(choices)),
        fields: None,
        text: choices.flag().then(|| choices.pick(&TextForm::ALL)),
    };
    if is_alone || choices.flag() {
        let mut fields: Vec<FieldDefinition> = (0..choices.byte() % 9).map(|number| field(number, choices)).collect();
        let place = usize::from(choices.byte()) % (fields.len() + 1);
        let bits = 1 + choices.byte() % 63;
        let reversed = choices.pick(&[None, Some(false), Some(true)]);
        let name = "t".to_owned();
        fields.insert(
            place,
            FieldDefinition { name, bits, role: RoleName::Timestamp, reversed, rank: None, value: None },
        );
        definition.fields = Some(fields);
    }
    definition
}

fn field(number: u8, choices: &mut Choices<'_>) -> FieldDefinition {
    use RoleName::*;
    let role = choices.pick(&[Worker, Sequence, Tag, Random, Reserved, Worker, Reserved, Timestamp]);
    let bits = 1 + choices.byte() % choices.pick(&[2, 4, 8, 24, 80]);
    FieldDefinition {
        name: if number == 8 { choices.pick(&["", "t", "é", "f0"]).to_owned() } else { format!("f{number}") },
        bits: if choices.byte() == 255 { 0 } else { bits },
        role,
        reversed: (role == Timestamp && choices.flag()).then_some(true),
        rank: (role == Worker && choices.flag()).then(|| choices.byte() % 4),
        value: (role == Reserved)
            .then(|| choices.pick(&[0, 0, 1, u64::MAX >> (64 - u32::from(bits.min(64))), u64::MAX])),
    }
}

fn change(definition: &mut Definition, choices: &mut Choices<'_>) {
    let fields = definition.fields.get_or_insert_default();
    let at = usize::from(choices.byte()) % fields.len().max(1);
    match choices.byte() % 8 {
        3 => widen_timestamp(fields),
        0 => definition.epoch = Some(epoch(choices)),
        1 => definition.tick = Some(tick(choices)),
        2 => definition.text = Some(choices.pick(&TextForm::ALL)),
        4 => fields.insert(at, field(7, choices)),
        5 if !fields.is_empty() => fields[at].bits = choices.byte(),
        6 if !fields.is_empty() => fields[at].role = choices.pick(&[RoleName::Worker, RoleName::Random, RoleName::Tag]),
        _ if !fields.is_empty() => fields[at].name = "g".to_owned(),
        _ => {}
    }
    if definition.fields.as_ref().is_some_and(Vec::is_empty) {
        definition.fields = None;
    }
}

/// Lets the timestamp take the bits of the field above it.
fn widen_timestamp(fields: &mut Vec<FieldDefinition>) {
    let timestamp = fields.iter().position(|field| field.role == RoleName::Timestamp);
    if let Some(at @ 1..) = timestamp {
        let above = fields.remove(at - 1);
        fields[at - 1].bits = fields[at - 1].bits.saturating_add(above.bits);
    }
}

fn epoch(choices: &mut Choices<'_>) -> String {
    let epochs =
        ["2024-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "-004713-11-24T00:00:00Z", "2024-01-01T00:00:00.000001+01"];
    choices.pick(&epochs).to_owned()
}

fn tick(choices: &mut Choices<'_>) -> String {
    choices
        .pick(&[
            "1ms",
            "1us",
            "16us",
            "17us",
            "1000us",
            "10ms",
            "1s",
            "3600s",
            "9223372036854s",
            "9223372036854775807us",
        ])
        .to_owned()
}
