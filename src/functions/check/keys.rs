//! The check of keys: a dump by a role that may not read secrets lacks them.

use super::finding::Finding;
use crate::seal::{find, names};

pub fn secrets() -> Finding {
    let keys: Vec<_> = names().iter().filter_map(|name| find(name)).collect();
    let faults = keys.iter().filter_map(|key| Some((&key.name, Finding::from(&key.ranges().err()?))));
    let faults: Vec<_> = faults.collect();
    let Some((_, Finding { hint, .. })) = faults.first() else {
        return Finding::fine(match keys.len() {
            0 => "There are no keys of public IDs.".to_owned(),
            1 => "The key of public IDs has its secrets.".to_owned(),
            count => format!("All {count} keys of public IDs have their secrets."),
        });
    };
    let details: Vec<_> = faults.iter().map(|(name, finding)| format!("Key \"{name}\": {}", finding.detail)).collect();
    Finding { ok: Some(false), detail: details.join(" "), hint: hint.clone() }
}
