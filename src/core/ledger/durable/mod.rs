//! Reserved time, in the file of a server and in a page of each database.
//!
//! 1. A record is S = (acceptances, until\[0\], until\[1\]) and its writer, a random number that a server draws when its ledger
//!    begins. Two records unite by the greater of each number. A change goes to the file first, then to memory, then to the page, with
//!    the WAL flushed. So memory is never above the file, and a server that has replayed the commit of an ID has replayed a record
//!    above the ID. `acceptances` counts calls of flake_accept_clock; its last bit is the *generation*, which says which half of
//!    the server's IDs is made. Published watermarks belong to a number of acceptances, and a greater one removes them.
//! 2. An ID of the instant t needs `until` of its generation above t in the file and in the page of its database, and its tick begins
//!    at the floor or later. A session that rolls back looks at the page before its next ID, because the transaction may have
//!    created the page.
//! 3. A session that reads or writes a page by another writer counts it first: the page's `until` of the generation in force is a
//!    floor, and its acceptances are in force if they are more. At the start, `until` in the file is the floor.

pub mod file;
pub mod page;
pub mod record;
pub mod record_format;
