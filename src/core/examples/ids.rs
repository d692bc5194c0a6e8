//! Makes IDs outside of PostgreSQL, and reads them.
use std::time::{Duration, SystemTime};

use flake_core::{Answer, Generator, Node, Share, Slot, Start, built_in};

fn now() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().expect("the clock shows a time before 1970").as_micros() as i64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = built_in("twitter").ok_or("this layout is not built in")?;
    // Server 3 of 16 has 64 workers of its own, which it divides among 4 threads. This is its first thread.
    let (node, slot) = (Node::new(3, 16)?, Slot::new(0, 4)?);
    // An earlier process may have made IDs up to the current millisecond.
    let start = Start { free_from: now() + 1000, resumed: None };
    let mut generator = Generator::start(layout, &Share::new(layout, node, slot)?, start, i64::MIN, 0);
    let mut ids = Vec::new();
    while ids.len() < 5 {
        match generator.next(now(), || 0) {
            Answer::Issue(id) => ids.push(id),
            Answer::Exhausted => return Err("the layout has no more ticks".into()),
            _ => std::thread::sleep(Duration::from_micros(100)),
        }
    }
    for id in ids {
        println!("{}\n{}", layout.encode(id)?, layout.explain(id)?);
        assert_eq!(layout.node_of(id, node)?, Some(3));
    }
    Ok(())
}
