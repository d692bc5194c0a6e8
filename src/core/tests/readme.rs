//! The crate's page for others.

#[test]
fn the_readme_shows_the_example_that_tests_run() {
    assert!(include_str!("../README.md").contains(include_str!("../examples/ids.rs")));
}
