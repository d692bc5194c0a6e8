//! Reads a text in each layout.

use std::collections::BTreeMap;

use flake_core::{BUILTIN, Definition, Error, FieldDefinition, Layout, Run, Sno, TextForm, seal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::forms;
use crate::found::{self, Found};
use crate::other::{self, Other};
use crate::rank::{self, Standing};

/// The name of the visitor's layout in messages.
const OWN: &str = "your layout";

/// A text, and a layout of the visitor's. JavaScript would round numbers of 64 bits, so all numbers are texts here.
#[derive(Deserialize)]
struct Question {
    text: String,
    #[serde(default)]
    definition: String,
    /// The layout that the visitor has chosen, or an empty text.
    #[serde(default)]
    platform: String,
    /// Microseconds since 1970. Without it, every time is in the past.
    now: Option<String>,
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
    /// Whether the time is possible, as "early", "possible" or "future"; and how likely the layout is among others.
    standing: &'static str,
    score: u32,
    #[serde(skip)]
    id: u64,
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
    let found =
        found::within(&question.text).unwrap_or_else(|| Found { text: question.text.clone(), ..Found::default() });
    let text = &forms::ungrouped(forms::bare(&found.text));
    let now = question.now.as_ref().and_then(|now| now.parse().ok()).unwrap_or(i64::MAX - rank::DAY);
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
    let others = others(text, found.platform, now);
    for reading in &mut readings {
        judge(reading, found.platform, &question.platform, now);
    }
    // A stable sort: layouts of one score stay in the order of the list.
    readings.sort_by_key(|reading| std::cmp::Reverse(reading.score));
    json!({
        "read": text,
        "platform": found.platform,
        "beside": found.beside,
        "others": others,
        "is_small": forms::number(text).is_some_and(|number| number < 1 << 40),
        "layouts": BUILTIN.iter().map(Layout::name).chain(["sno"]).collect::<Vec<_>>(),
        "readings": readings,
        "refusals": refusals,
        "fault": fault,
        "is_rounded": forms::is_rounded(text),
        "public_id_of": key_of(text),
    })
}

/// Says how likely a reading is. The platform that the visitor or the address names comes first, also where the time is not possible.
fn judge(reading: &mut Reading, named: Option<&str>, chosen: &str, now: i64) {
    let (layout, at) = (reading.layout.as_str(), reading.at.parse().unwrap_or_default());
    let epoch = flake_core::built_in(layout).map_or(rank::EARLIEST, Layout::epoch);
    let standing = rank::standing(layout, epoch, at, now);
    reading.standing = match standing {
        // The visitor knows since when the own layout is used.
        Standing::Early if layout == OWN => "possible",
        Standing::Early => "early",
        Standing::Possible => "possible",
        Standing::Future => "future",
    };
    reading.score = match standing {
        _ if layout == chosen => 2 * rank::NAMED,
        _ if layout == OWN || chosen.is_empty() && named == Some(layout) => rank::NAMED,
        Standing::Possible if named.is_some() => 0,
        Standing::Possible => rank::score(layout, reading.id, at) + u32::from(reading.read_as != "number"),
        Standing::Early | Standing::Future => 0,
    };
}

/// Returns what the text is beside an ID of a layout.
fn others(text: &str, named: Option<&str>, now: i64) -> Vec<Other> {
    let tiktok = forms::number(text).filter(|_| named.is_none_or(|platform| platform == "tiktok"));
    let tiktok = tiktok.and_then(|id| other::tiktok(id, now)).map(Other::of_tiktok);
    other::read(text, now).into_iter().chain(tiktok).collect()
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
    if let Some(id) = forms::shortcode(text).filter(|_| layout.name() == "instagram") {
        ids.insert(id, "shortcode".to_owned());
    }
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
        standing: "",
        score: 0,
        id,
        numbers: layout.numbers(id).into_iter().map(|(name, number)| (name.to_owned(), number.to_string())).collect(),
        forms: texts,
        own_form: named(layout.text),
        bits: layout.runs(id)?.iter().zip(fields).map(|(run, role)| bits(run, role)).collect(),
    })
}

/// Reads a sno: its 16 characters, its ten bytes, or a UUID that was cast from it.
fn sno_of(text: &str) -> Result<(Sno, &'static str), Error> {
    match forms::bytes(text) {
        Some(bytes) if bytes.len() == 16 => Ok((Sno::parse(&bytes)?, "uuid")),
        Some(bytes) => Ok((Sno::from_slice(&bytes)?, "bytea")),
        None => Ok((Sno::parse(text.as_bytes())?, "text")),
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
        tick_length: flake_core::sno::TICK.to_string(),
        standing: "",
        score: 0,
        id: 0,
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
