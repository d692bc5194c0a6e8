//! The check of keys: a dump by a role that may not read secrets lacks them, and a dump of some schemas lacks keys or layouts.

use std::collections::{BTreeMap, BTreeSet};

use pgrx::check_for_interrupts;

use super::finding::{Finding, described};
use crate::error::listed;
use crate::layouts::known;
use crate::postgres::memory::{collect_or_raise, push};
use crate::seal::{CREATE_OR_IMPORT, Key, all};

/// Finds that the layout of a key does not exist. The key seals and opens IDs, but cannot be rotated.
fn unknown_layout(key: &Key) -> Option<Finding> {
    let name = key.shown().ok()?.layout;
    let detail = || format!("Its layout \"{name}\" does not exist, so flake_rotate_key refuses it.");
    let hint = "Create the layout again, or name the right one by ALTER SERVER.";
    known(name.as_bytes()).is_none().then(|| Finding::wrong(detail(), hint))
}

/// Finds keys that lack a secret, and keys that objects name although they do not exist. `named` has the objects of each key.
pub fn secrets(named: &BTreeMap<String, BTreeSet<String>>) -> Finding {
    let keys = collect_or_raise(all());
    let mut faults = Vec::new();
    for key in &keys {
        check_for_interrupts!();
        let fault = key.ranges().err().map(|error| Finding::from(&error)).or_else(|| unknown_layout(key));
        fault.into_iter().for_each(|fault| push(&mut faults, (&key.name, fault)));
    }
    // Keys are in the order of their names.
    let exists = |name: &String| keys.binary_search_by(|key| key.name.cmp(name)).is_ok();
    for (name, objects) in named.iter().filter(|(name, _)| !exists(name)) {
        let objects = listed(objects.iter(), "others");
        let fault = format!("It does not exist, and is named in {objects}.");
        push(&mut faults, (name, Finding::wrong(fault, CREATE_OR_IMPORT)));
    }
    let Some((_, Finding { hint, .. })) = faults.first() else {
        return Finding::fine(match keys.len() {
            0 => "There are no keys of public IDs.".to_owned(),
            1 => "The key of public IDs has its secrets.".to_owned(),
            count => format!("All {count} keys of public IDs have their secrets."),
        });
    };
    let details = collect_or_raise(faults.iter().map(|(name, finding)| format!("Key \"{name}\": {}", finding.detail)));
    Finding { ok: Some(false), detail: described(details.iter()), hint: hint.clone() }
}
