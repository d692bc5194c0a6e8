//! The README of the crate.

#[test]
fn the_readme_shows_the_example_that_tests_run() {
    let shows_it = include_str!("../README.md").contains(include_str!("../examples/ids.rs"));
    assert!(shows_it, "src/core/README.md does not contain src/core/examples/ids.rs");
}
