//! flake_create_layout, flake_drop_layout, and the check of every definition.

use flake_core::{Definition, built_in, unknown_layout};
use pgrx::prelude::*;
use pgrx::spi::{quote_identifier, quote_literal};

use crate::clock;
use crate::error::{Error, OrRaise, raise};
use crate::layouts::custom;
use crate::postgres::encoding::{escape_non_ascii, to_utf8_lossy};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::json::Json;

#[pg_extern(sql = "")]
fn flake_create_layout(name: &[u8], definition: Json) {
    let name = escape_non_ascii(name);
    if built_in(&name).is_some() {
        raise(Error::NameTaken { layout: name.into(), is_built_in: true });
    }
    let definition = Definition::from_json(&name, &definition.0.to_string()).or_raise();
    definition.check_new(&name, clock::now()).or_raise();
    if custom::is_name_taken(&name) {
        raise(Error::NameTaken { layout: name.into(), is_built_in: false });
    }
    let json = serde_json::to_string(&definition).unwrap_or_default();
    let (server, version, definition) =
        (quote_identifier(&name), quote_literal(custom::fingerprint(&json)), quote_literal(json));
    run(&format!(
        "CREATE SERVER {server} VERSION {version} FOREIGN DATA WRAPPER flake_layout OPTIONS (definition {definition})"
    ));
}

#[pg_extern(sql = "")]
fn flake_drop_layout(name: &[u8]) {
    let name = escape_non_ascii(name);
    if built_in(&name).is_some() {
        raise(Error::DropBuiltIn { layout: name.into() });
    }
    if !custom::exists(&name) {
        raise(unknown_layout(&name, &custom::names()));
    }
    run(&format!("DROP SERVER {}", quote_identifier(&name)));
}

fn run(command: &str) {
    Spi::run(command).unwrap_or_else(|error| pgrx::error!("{error}"));
}

/// PostgreSQL calls this for the options of CREATE SERVER and ALTER SERVER, including those that pg_dump has written.
#[pg_extern(sql = "")]
fn flake_layout_validator(options: Array<&[u8]>, catalog: pg_sys::Oid) {
    let options: Vec<_> = options.iter().flatten().map(to_utf8_lossy).collect();
    let definition = match options.as_slice() {
        [] if catalog != pg_sys::ForeignServerRelationId => return,
        [option] if catalog == pg_sys::ForeignServerRelationId => option.strip_prefix("definition="),
        _ => None,
    };
    let Some(json) = definition else { raise(Error::NotALayout) };
    Definition::from_json("", json).and_then(|definition| definition.layout("")).or_raise();
}

c_symbol!(flake_create_layout, flake_drop_layout, flake_layout_validator);
