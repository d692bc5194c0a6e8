//! Named points at which a test build waits, like PostgreSQL's injection points. Other builds do not have them.

/// Waits while the data directory has a file `flake.injection_point.NAME`. The process appends its number to the file when it has arrived.
#[cfg(feature = "injection_points")]
pub fn run(name: &str) {
    let file = format!("flake.injection_point.{}", name.replace(' ', "_"));
    let here = format!("here: {}\n", std::process::id());
    while let Ok(said) = std::fs::read_to_string(&file) {
        if !said.contains(&here) {
            let appended = std::fs::OpenOptions::new().append(true).open(&file);
            let _ = appended.and_then(|mut file| std::io::Write::write_all(&mut file, here.as_bytes()));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// Does nothing.
#[cfg(not(feature = "injection_points"))]
#[inline]
pub fn run(_name: &str) {}
