//! Rules that hold for every layout, built in or not.

mod bits;
mod generators;
mod layouts;
mod text;
mod time;

use proptest::prelude::ProptestConfig;

fn config() -> ProptestConfig {
    ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() }
}
