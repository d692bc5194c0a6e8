//! Reads a text in each layout.

use std::collections::BTreeMap;

use flake_core::{BUILTIN, Definition, Error, FieldDefinition, Layout, Run, Sno, TextForm, seal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::forms;

/// The name of the visitor's layout in messages.
const OWN: &str = "your layout";

/// A text, and a layout of the visitor's. JavaScript would round numbers of 64 bits, so all numbers are texts here.
#[derive(Deserialize)]
struct Question {
    text: String,
    #[serde(default)]
    definition: String,
}

/// One way to read the text.
#[derive(Serialize)]
struct Reading {
    layout: String,
    source: String,
    /// The form in which the text was read.
    read_as: String,
    /// When the ID's tick begins, and how long it is, in microseconds.
    at: String,
    tick_length: String,
    worker: Option<String>,
    sequence: Option<String>,
    numbers: Vec<(String, String)>,
    /// The texts of the ID, by form.
    forms: Vec<(String, String)>,
    /// The form of the layout's own texts.
    own_form: String,
    bits: Vec<Value>,
}

/// Why the text is not an ID of a layout.
#[derive(Serialize)]
struct Refusal {
    layout: String,
    reasons: Vec<String>,
}

/// Answers a question.
pub fn to(question: &[u8]) -> String {
    match serde_json::from_slice::<Question>(question) {
        Ok(question) => answer(&question).to_string(),
        Err(error) => json!({ "error": error.to_string() }).to_string(),
    }
}

fn answer(question: &Question) -> Value {
    let text = forms::bare(&question.text);
    let (own, fault) = match own(&question.definition) {
        Ok(layout) => (layout, None),
        Err(error) => (None, Some(error.to_string())),
    };
    let (mut readings, mut refusals) = (Vec::new(), Vec::new());
    for layout in own.iter().chain(BUILTIN) {
        match readings_of(layout, text) {
            (found, _) if !found.is_empty() => readings.extend(found),
            (_, reasons) => refusals.push(Refusal { layout: layout.name().to_owned(), reasons }),
        }
    }
    match sno_of(text) {
        Ok((sno, form)) => readings.push(reading_of_sno(sno, form)),
        Err(error) => refusals.push(Refusal { layout: "sno".to_owned(), reasons: vec![detailed(&error)] }),
    }
    json!({
        "read": text,
        "readings": readings,
        "refusals": refusals,
        "fault": fault,
        "is_rounded": forms::is_rounded(text),
        "public_id_of": key_of(text),
    })
}

fn own(definition: &str) -> Result<Option<Layout>, Error> {
    if definition.trim().is_empty() {
        return Ok(None);
    }
    Definition::from_json(OWN, definition)?.layout(OWN).map(Some)
}

/// Reads the text as a number, and as a text of the layout. Each way may fail, and both may succeed, with different IDs.
fn readings_of(layout: &Layout, text: &str) -> (Vec<Reading>, Vec<String>) {
    let mut ids = BTreeMap::new();
    let mut reasons = Vec::new();
    if let Some(id) = forms::number(text) {
        ids.insert(id, "number".to_owned());
    }
    if layout.text != TextForm::Decimal || ids.is_empty() {
        match layout.parse(text) {
            Ok(id) => drop(ids.entry(id).or_insert_with(|| named(layout.text))),
            Err(error) => reasons.push(detailed(&error)),
        }
    }
    let mut readings = Vec::new();
    for (id, read_as) in ids {
        match reading_of(layout, id, read_as) {
            Ok(reading) => readings.push(reading),
            Err(error) => reasons.insert(0, detailed(&error)),
        }
    }
    (readings, reasons)
}

fn reading_of(layout: &Layout, id: u64, read_as: String) -> Result<Reading, Error> {
    let parts = layout.unpack(id)?;
    let mut fields: Vec<Value> = layout.fields().iter().map(|field| json!(FieldDefinition::from(field).role)).collect();
    let has = |role: &str, fields: &[Value]| fields.iter().any(|field| field == role);
    let (worker, sequence) = (has("worker", &fields), has("sequence", &fields));
    if layout.width() < 64 {
        fields.insert(0, json!("unused"));
    }
    let mut texts = vec![("bigint".to_owned(), (id as i64).to_string())];
    for form in TextForm::ALL {
        let mut written = layout.clone();
        written.text = form;
        texts.push((named(form), written.encode(id)?));
    }
    Ok(Reading {
        layout: layout.name().to_owned(),
        source: layout.source.to_string(),
        read_as,
        at: layout.start_of(parts.tick).to_string(),
        tick_length: layout.tick_length().to_string(),
        worker: worker.then(|| parts.worker.to_string()),
        sequence: sequence.then(|| parts.sequence.to_string()),
        numbers: layout.numbers(id).into_iter().map(|(name, number)| (name.to_owned(), number.to_string())).collect(),
        forms: texts,
        own_form: named(layout.text),
        bits: layout.runs(id)?.iter().zip(fields).map(|(run, role)| bits(run, role)).collect(),
    })
}

/// Reads a sno: its 16 characters, its ten bytes, or a UUID that was cast from it.
fn sno_of(text: &str) -> Result<(Sno, &'static str), Error> {
    let decode = |digits: &[u8; 16]| Sno::decode(digits);
    match forms::bytes(text) {
        Some(bytes) if bytes.len() == 16 => Ok((Sno::parse(&bytes, decode)?, "uuid")),
        Some(bytes) => Ok((Sno::from_slice(&bytes)?, "bytea")),
        None => Ok((Sno::parse(text.as_bytes(), decode)?, "text")),
    }
}

fn reading_of_sno(sno: Sno, read_as: &str) -> Reading {
    let text = String::from_utf8_lossy(&sno.encode()).into_owned();
    let bytes: String = sno.bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let runs = sno.runs();
    let roles = ["timestamp", "flag", "tag", "worker", "sequence"];
    Reading {
        layout: "sno".to_owned(),
        source: "flake's type of 80 bits, after muyo/sno".to_owned(),
        read_as: read_as.to_owned(),
        at: sno.instant().to_string(),
        tick_length: flake_core::sno::UNIT.to_string(),
        worker: Some(sno.parts().partition.to_string()),
        sequence: Some(sno.parts().sequence.to_string()),
        numbers: runs.iter().filter_map(|run| Some((run.name.to_string(), run.number?.to_string()))).collect(),
        forms: vec![("text".to_owned(), text), ("bytea".to_owned(), format!("\\x{bytes}"))],
        own_form: "text".to_owned(),
        bits: runs.iter().zip(roles).map(|(run, role)| bits(run, json!(role))).collect(),
    }
}

fn bits(run: &Run, role: Value) -> Value {
    let digits = format!("{:0width$b}", run.bits, width = run.width as usize);
    json!({ "name": run.name, "role": role, "digits": digits, "number": run.number.map(|number| number.to_string()) })
}

/// Returns the name of a key whose public ID this can be. Only the key's secret opens it.
fn key_of(text: &str) -> Option<String> {
    let (name, _) = text.rsplit_once('_')?;
    (seal::is_name(name.as_bytes()) && seal::read(name, text.as_bytes()).is_some()).then(|| name.to_owned())
}

fn named(form: TextForm) -> String {
    json!(form).as_str().unwrap_or_default().to_owned()
}

/// Returns the message of an error, with the reason behind it.
fn detailed(error: &Error) -> String {
    match error {
        Error::MalformedText { fault, .. } | Error::SnoText { fault, .. } => fault.to_string(),
        Error::ImpossibleId { too_wide: true, width, .. } => format!("its IDs have {width} bits"),
        Error::ImpossibleId { field: Some((name, found, must_be)), .. } => {
            format!("its field \"{name}\" would be {found}, but must be {must_be}")
        }
        Error::ImpossibleId { .. } => "its time would be later than the type timestamptz can hold".to_owned(),
        error => error.to_string(),
    }
}
