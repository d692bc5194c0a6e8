//! Makes IDs outside of PostgreSQL, in the threads of a server, and reads them.
use std::thread;
use std::time::{Duration, SystemTime};

use flake_core::{Answer, Generator, Lanes, Layout, Node, OwnCursors, Part, built_in};

fn now() -> i64 {
    SystemTime::UNIX_EPOCH.elapsed().expect("the clock shows a time before 1970").as_micros() as i64
}

/// A thread of the server makes a few IDs. Returns None if the layout has no more ticks.
fn make(mut generator: Generator<&Layout>, cursors: &OwnCursors) -> Option<Vec<u64>> {
    let mut ids = Vec::new();
    while ids.len() < 3 {
        match generator.next(now(), cursors, || 0) {
            Answer::Issue(id) => ids.push(id),
            Answer::Exhausted => return None,
            _ => thread::sleep(Duration::from_micros(100)),
        }
    }
    Some(ids)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let layout = built_in("twitter").ok_or("this layout is not built in")?;
    // Server 3 of 16 has 64 workers of its own.
    let node = Node::new(3, 16)?;
    let lanes = Lanes::new(layout, Part::whole(node))?;
    // The threads share the cursors, so no ID is made twice. Each begins with another lane, so they seldom meet.
    let cursors = &OwnCursors::new(&lanes);
    // An earlier process may have made IDs up to the current millisecond.
    let min_tick_start = now() + 1000;
    let ids = thread::scope(|scope| {
        let begin = |number: u64| {
            let generator = Generator::start(layout, &lanes, number % lanes.count, min_tick_start);
            scope.spawn(move || make(generator, cursors))
        };
        let threads: Vec<_> = (0..4).map(begin).collect();
        threads.into_iter().map(|thread| thread.join().ok().flatten()).collect::<Option<Vec<_>>>()
    });
    for id in ids.ok_or("a thread has made no IDs")?.concat() {
        println!("{}\n{}", layout.encode(id)?, layout.explain(id)?);
        assert_eq!(layout.node_of(id, node)?, Some(3));
    }
    Ok(())
}
