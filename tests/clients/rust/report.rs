//! Reports what a client of Rust does with IDs, as a line of JSON. Each probe is called with IDs as texts.

use serde_json::{Value, json};

pub const HOLE: i64 = 42;

/// Itself, an array of it and another one, and how many rows were found by it.
pub type Kept = (i64, Vec<Option<i64>>, i64);

pub fn ids() -> Vec<i64> {
    std::env::args().skip(2).map(|id| id.parse().unwrap()).collect()
}

pub struct Report {
    pub kept: Vec<Kept>,
    pub hole: Kept,
    pub null: Option<i64>,
    pub read: Vec<Value>,
    pub written: Vec<String>,
    pub made: (i64, i64),
    pub error: (&'static str, String),
}

impl Report {
    pub fn print(self) {
        let text = |id: Option<i64>| id.map(|id| id.to_string());
        let strings =
            |(id, many, found): Kept| json!([id.to_string(), many.into_iter().map(text).collect::<Vec<_>>(), found]);
        println!(
            "{}",
            json!({
                "type": std::any::type_name_of_val(&self.made.0),
                "kept": self.kept.into_iter().map(strings).collect::<Vec<_>>(),
                "hole": strings(self.hole),
                "null": self.null,
                "read": self.read.iter().map(|document| document["id"].to_string()).collect::<Vec<_>>(),
                "written": self.written,
                "made": [self.made.0.to_string(), self.made.1],
                "error": self.error,
            })
        );
    }
}
