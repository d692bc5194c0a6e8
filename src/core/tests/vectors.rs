//! IDs made by the original implementations: packing gives the ID, unpacking gives its parts.

use std::collections::HashMap;

use flake_core::{Definition, Field, FieldDefinition, Layout, Parts, RoleName, SequenceRule, find};

const FILES: [(&str, &str, usize); 5] = [
    ("twitter", include_str!("../../../tests/vectors/twitter.csv"), 97),
    ("si", include_str!("../../../tests/vectors/si.csv"), 146),
    ("uniqueid", include_str!("../../../tests/vectors/uniqueid.csv"), 118),
    ("base64id", include_str!("../../../tests/vectors/base64id.csv"), 74),
    ("published", include_str!("../../../tests/vectors/published.csv"), 6),
];

/// The layout of a vector: a built-in one or a relative, with the vector's epoch.
fn layout_of(name: &str, epoch_ms: i64) -> Layout {
    let mut fields: Vec<FieldDefinition>;
    let built_in = find(name.split('/').next().unwrap()).unwrap();
    fields = built_in.fields().iter().map(FieldDefinition::from).collect();
    let widths: Vec<u8> = name.split('/').skip(1).filter_map(|bits| bits.parse().ok()).collect();
    match name.split('/').next().unwrap() {
        "si" => fields.iter_mut().zip(widths).for_each(|(field, bits)| field.bits = bits),
        // 1.14 gave two of the zero bits to the generator.
        "uniqueid" if name.ends_with("/1.14") => (fields[2].bits, fields[3].bits) = (4, 8),
        _ => assert_eq!(built_in.name(), name, "a layout that this test does not know"),
    }
    let fields: Vec<Field> = fields.iter().map(Field::from).collect();
    let layout = Layout::new(name.to_owned(), epoch_ms * 1000, built_in.tick(), fields, SequenceRule::Reset).unwrap();
    if !name.contains('/') && built_in.epoch() == epoch_ms * 1000 {
        assert_eq!(layout.fields(), built_in.fields());
    }
    layout
}

#[test]
fn originals() {
    for (file, text, expected) in FILES {
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("layout,epoch_ms,unix_ms,fields,id"));
        let mut seen = 0;
        for line in lines {
            let [name, epoch_ms, unix_ms, fields, id] = line.split(',').collect::<Vec<_>>().try_into().expect(line);
            let layout = layout_of(name, epoch_ms.parse().unwrap());
            let at = unix_ms.parse::<i64>().unwrap() * 1000;
            let id = id.parse::<i64>().unwrap() as u64;
            let wanted: HashMap<&str, u64> = fields
                .split(' ')
                .map(|pair| pair.split_once('=').map(|(name, number)| (name, number.parse().unwrap())).unwrap())
                .collect();

            let parts = layout.unpack(id).expect(line);
            assert_eq!(layout.start_of(parts.tick), at, "{line}");
            let mut numbers: HashMap<&str, u64> = layout.numbers(id).map(|(f, n)| (&*f.name, n)).collect();
            assert_eq!(numbers.remove("timestamp"), Some(parts.tick), "{line}");
            assert_eq!(numbers, wanted, "{line}");

            // The way back, from the numbers of the vector alone; random bits are the lowest where there are any.
            let worker = match name.split('/').next().unwrap() {
                "twitter" | "snowflake" => wanted["datacenter"] * 32 + wanted["worker"],
                "uniqueid" => wanted["cluster"] * (layout.workers() / 16) + wanted["generator"],
                "base64id" => wanted["worker"],
                "si" => wanted["machine"],
                "si_single" => 0,
                other => panic!("{other}"),
            };
            let random = wanted.get("random").copied().unwrap_or(0);
            let made = Parts { tick: layout.tick_at(at).unwrap(), worker, sequence: wanted["sequence"], random };
            assert_eq!(layout.pack(&made), Ok(id), "{line}");
            assert_eq!(made, parts, "{line}");
            seen += 1;
        }
        assert_eq!(seen, expected, "vectors in {file}.csv");
    }
}

#[test]
fn definitions_give_the_built_in_layouts() {
    let definition = r#"{ "epoch": "2018-03-01T00:00:00Z", "tick": "1s", "sequence": "rolling",
        "fields": [ {"name": "timestamp", "bits": 32, "role": "timestamp"}, {"name": "worker", "bits": 9, "role": "worker"},
                    {"name": "sequence", "bits": 10, "role": "sequence"}, {"name": "random", "bits": 9, "role": "random"} ] }"#;
    let definition: Definition = serde_json::from_str(definition).unwrap();
    let layout = definition.layout("base64id").unwrap();
    let built_in = find("base64id").unwrap();
    assert_eq!((layout.epoch(), layout.tick(), layout.rule()), (built_in.epoch(), built_in.tick(), built_in.rule()));
    assert_eq!(layout.fields(), built_in.fields());
    assert_eq!(definition.fields[3].role, RoleName::Random);
}
