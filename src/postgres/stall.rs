//! Named points at which a test build waits, like PostgreSQL's injection points. Other builds do not have them.

/// Waits while the data directory has a file `flake.stall.NAME`. The process writes to the file that it has arrived.
#[cfg(feature = "stalls")]
pub fn at(name: &str) {
    let file = format!("flake.stall.{}", name.replace(' ', "_"));
    while let Ok(said) = std::fs::read_to_string(&file) {
        if !said.contains("here") {
            let _ = std::fs::write(&file, "here");
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Does nothing.
#[cfg(not(feature = "stalls"))]
#[inline]
pub fn at(_name: &str) {}
