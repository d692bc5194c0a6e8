//! IDs of the original implementations: flake makes the ID from its numbers, and reads the numbers and the text from the ID.

use std::collections::{BTreeMap, HashMap, HashSet};

use flake_core::{BUILTIN, Definition, FieldDefinition, Layout, RoleName, built_in};
use jiff::Timestamp;

const FILES: [(&str, &str); 7] = [
    ("twitter", include_str!("../../../tests/vectors/twitter.csv")),
    ("si", include_str!("../../../tests/vectors/si.csv")),
    ("uniqueid", include_str!("../../../tests/vectors/uniqueid.csv")),
    ("base64id", include_str!("../../../tests/vectors/base64id.csv")),
    ("relatives", include_str!("../../../tests/vectors/relatives.csv")),
    ("presets", include_str!("../../../tests/vectors/presets.csv")),
    ("published", include_str!("../../../tests/vectors/published.csv")),
];
const DEFINITIONS: &str = include_str!("../../../tests/vectors/layouts.json");

/// The layout of a vector: a built-in one, a built-in one with another epoch, or one that is defined in layouts.json.
fn layout_of(definitions: &HashMap<String, Definition>, name: &str, epoch_ms: i64) -> Layout {
    let epoch = Some(Timestamp::from_millisecond(epoch_ms).unwrap().to_string());
    match (built_in(name), definitions.get(name)) {
        (Some(layout), _) if layout.epoch() == epoch_ms * 1000 => layout.clone(),
        (Some(_), _) => Definition::from_json(name, &format!(r#"{{"like": "{name}"}}"#))
            .and_then(|like| Definition { epoch, ..like }.layout(name))
            .unwrap(),
        (None, Some(definition)) => Definition { epoch, ..definition.clone() }.layout(name).unwrap(),
        (None, None) => panic!("{name} is nowhere"),
    }
}

#[test]
fn ids_of_the_originals_are_read_and_made_alike() {
    let definitions: HashMap<String, Definition> = serde_json::from_str(DEFINITIONS).unwrap();
    for (file, text) in FILES {
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("layout,epoch_ms,unix_us,fields,id,text"));
        let mut seen = 0;
        for line in lines {
            let [name, epoch, at, fields, id, text] = line.split(',').collect::<Vec<_>>().try_into().expect(line);
            let layout = layout_of(&definitions, name, epoch.parse().unwrap());
            let at = at.parse::<i64>().unwrap();
            let id = id.parse::<i64>().unwrap() as u64;
            let wanted: BTreeMap<String, u64> = fields
                .split(' ')
                .map(|pair| pair.split_once('=').unwrap())
                .map(|(name, number)| (name.to_owned(), number.parse().unwrap()))
                .collect();

            let tick = layout.tick_of(id).expect(line);
            assert_eq!(layout.start_of(tick), at, "{line}");
            let mut numbers: BTreeMap<String, u64> =
                layout.numbers(id).into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
            assert_eq!(layout.make(tick, &numbers), Ok(id), "{line}");
            assert_eq!(numbers.remove("timestamp"), Some(tick), "{line}");
            assert_eq!(numbers, wanted, "{line}");
            assert_eq!(layout.make(layout.tick_at(at).unwrap(), &wanted), Ok(id), "{line}");

            // The worker number, computed from its fields, the coarsest first.
            let coarsest = ["datacenter", "cluster", "worker", "machine", "node", "shard", "idc"];
            let finer = [("datacenter", "worker", 5), ("cluster", "generator", 0), ("worker", "process", 5)];
            let mut worker = coarsest.iter().find_map(|field| wanted.get(*field)).copied().unwrap_or(0);
            if let Some((_, field, bits)) =
                finer.iter().find(|(c, f, _)| wanted.contains_key(*c) && wanted.contains_key(*f))
            {
                let bits = if *bits == 0 { layout.workers().trailing_zeros() - 4 } else { *bits };
                worker = worker << bits | wanted[*field];
            }
            let parts = layout.unpack(id).unwrap();
            assert_eq!(parts.worker, worker, "{line}, with worker fields {coarsest:?} and {finer:?}");
            if wanted.get("mode") != Some(&1) {
                assert_eq!(layout.pack(&parts), Ok(id), "{line}");
            }

            if !text.is_empty() {
                assert_eq!(layout.encode(id).as_deref(), Ok(text), "{line}");
                assert_eq!(layout.parse(text), Ok(id), "{line}");
            }
            assert_eq!(layout.parse(&layout.encode(id).unwrap()), Ok(id), "{line}");
            seen += 1;
        }
        assert!(seen > 0, "no vectors in {file}.csv");
    }
}

#[test]
fn every_built_in_layout_has_vectors() {
    let names: HashSet<&str> =
        FILES.iter().flat_map(|(_, text)| text.lines()).filter_map(|line| line.split(',').next()).collect();
    let missing: Vec<&str> = BUILTIN.iter().map(Layout::name).filter(|name| !names.contains(name)).collect();
    assert!(missing.is_empty(), "no file in tests/vectors has IDs of {missing:?}");
}

#[test]
fn the_newest_uniqueid_reads_older_ones() {
    let newest = built_in("uniqueid_v3").unwrap();
    let lines = FILES[2].1.lines().filter(|line| line.starts_with("uniqueid,") || line.starts_with("uniqueid/"));
    let mut seen = 0;
    for line in lines {
        let columns: Vec<&str> = line.split(',').collect();
        let id = columns[4].parse::<i64>().unwrap() as u64;
        let numbers: HashMap<&str, u64> = newest.numbers(id).into_iter().collect();
        for pair in columns[3].split(' ') {
            let (name, number) = pair.split_once('=').unwrap();
            assert_eq!(numbers[name].to_string(), number, "{line}");
        }
        seen += 1;
    }
    assert_eq!(seen, 118);
}

#[test]
fn every_built_in_layout_can_be_defined() {
    for layout in BUILTIN {
        let definition = Definition {
            like: None,
            epoch: Some(Timestamp::from_microsecond(layout.epoch()).unwrap().to_string()),
            tick: Some(format!("{}us", layout.tick_length())),
            fields: Some(layout.fields().iter().map(FieldDefinition::from).collect()),
            text: Some(layout.text),
        };
        let json = serde_json::to_string(&definition).unwrap();
        let flagged = definition.fields.iter().flatten().any(|field| field.role == RoleName::Flag);
        match Definition::from_json("again", &json).and_then(|read| read.layout("again")) {
            Ok(again) => {
                assert!(again.same_bits(layout), "{json}");
                assert_eq!((again.text, again.fields()), (layout.text, layout.fields()));
            }
            // Only built-in layouts have several fields of one name, or a flag.
            Err(error) => assert!(flagged, "{error}"),
        }
    }
}
