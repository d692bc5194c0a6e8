//! `cargo pgrx package` reads the install script from a section of the library. pgrx's macros that write to it are switched off
//! together with its generator of SQL, so this file puts the whole script into the section as one entry.

use pgrx::pgrx_sql_entity_graph::section::{ENTITY_CUSTOM_SQL, EntryWriter, bool_len, str_len, u8_len, u32_len};

const SCRIPT: &str = concat!(include_str!("../../sql/flake.sql"), include_str!("../../sql/sno.sql"));
const NAME: &str = "flake";
const PAYLOAD: usize = u8_len() + str_len(SCRIPT) + 4 * str_len(NAME) + 3 * u32_len() + 2 * bool_len();
const ENTRY: usize = u32_len() + PAYLOAD;

pgrx::pgrx_sql_entity_graph::__pgrx_schema_entry!(
    INSTALL_SCRIPT,
    ENTRY,
    // The entry's module, path, file, line and name. The entry is not marked as first or last, requires nothing, and creates
    // nothing.
    EntryWriter::<ENTRY>::new()
        .u32(PAYLOAD as u32)
        .u8(ENTITY_CUSTOM_SQL)
        .str(SCRIPT)
        .str(NAME)
        .str(NAME)
        .str(NAME)
        .u32(0)
        .str(NAME)
        .bool(false)
        .bool(false)
        .u32(0)
        .u32(0)
        .finish()
);
