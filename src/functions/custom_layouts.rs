//! flake_create_layout and flake_drop_layout, and the validation of every definition.

use flake_core::{BUILTIN, Definition, LONGEST_NAME, Layout, built_in, sno};
use pgrx::PgSqlErrorCode::*;
use pgrx::prelude::*;
use pgrx::spi::{quote_identifier, quote_literal};

use super::layout_uses;
use super::statements::run;
use super::stored::{refuse_table, writer};
use crate::clock;
use crate::error::{Error, OrRaise, listed, must_own, owner_only};
use crate::layouts::{catalog, custom, unknown};
use crate::postgres::encoding::{escape_non_ascii, to_utf8_lossy};
use crate::postgres::entry_point::c_symbol;
use crate::postgres::foreign_servers::is_name_taken;
use crate::postgres::json::{self, Json};
use crate::postgres::report::warning;
use crate::postgres::role::act_as;
use crate::seal;

/// How many custom layouts a new one is compared with.
const MOST_COMPARED: usize = 100;

#[pg_extern(sql = "")]
fn flake_create_layout(name: &[u8], definition: Json) {
    let owner = writer("flake_create_layout", c"flake_create_layout()");
    let name = escape_non_ascii(name, LONGEST_NAME);
    // Views already show sno under this name.
    if built_in(&name).is_some() || name == sno::NAME {
        taken(&name, "It is built in.").hint("Choose another name.").raise();
    }
    let definition = Definition::from_json(&name, &definition.0).or_raise();
    let layout = definition.check_new(&name, clock::now()).or_raise();
    if is_name_taken(&name) {
        let detail = "Custom layouts are foreign servers; a layout or another foreign server has this name.";
        taken(&name, detail).hint("Choose another name, or drop the layout with flake_drop_layout.").raise();
    }
    let json = serde_json::to_string(&definition.resolved(&layout)).unwrap_or_default();
    let (server, version, definition) =
        (quote_identifier(&name), quote_literal(catalog::fingerprint(&json)), quote_literal(json));
    let command = format!(
        "CREATE SERVER {server} VERSION {version} FOREIGN DATA WRAPPER flake_layout OPTIONS (definition {definition})"
    );
    act_as(owner, || run(command));
    warn_of_overlaps(&layout);
}

fn taken(name: &str, detail: &str) -> Error {
    Error::of(ERRCODE_DUPLICATE_OBJECT, format!("layout \"{name}\" already exists")).detail(detail)
}

/// Warns of layouts that may make the same IDs as a new one because no bit tells them apart. It does not warn of another name for
/// the same bits.
fn warn_of_overlaps(layout: &Layout) {
    let custom = custom::all().filter(|(name, _)| name != layout.name()).take(MOST_COMPARED);
    let custom = custom.filter_map(|(_, layout)| layout.ok());
    let others: Vec<_> = BUILTIN.iter().filter(|other| other.generates).chain(custom).collect();
    if others.iter().any(|other| other.same_bits(layout)) {
        return;
    }
    let others = others.into_iter().filter(|other| other.overlaps(layout));
    let mut names: Vec<_> = others.map(|other| other.name()).collect();
    let more = names.len().saturating_sub(3);
    names.truncate(3);
    if !names.is_empty() {
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        warning(
            format!("layout \"{}\" can make the same IDs as {}{more}", layout.name(), names.join(", ")),
            Some("Each of these layouts makes no ID twice, but can make an ID that another one has made."),
            "Use them for different columns.",
        );
    }
}

#[pg_extern(sql = "")]
fn flake_drop_layout(name: &[u8]) {
    writer("flake_drop_layout", c"flake_drop_layout()");
    let name = escape_non_ascii(name, LONGEST_NAME);
    let Some(stored) = catalog::find(&name) else {
        match built_in(&name) {
            Some(_) => Error::invalid(format!("cannot drop layout \"{name}\" because it is built in"))
                .detail("Only layouts made by flake_create_layout can be dropped.")
                .hint("The column \"source\" of the view flake_layouts shows which these are.")
                .raise(),
            None => unknown(&name).raise(),
        }
    };
    must_own(stored.owner, &format!("layout \"{name}\"")).or_raise();
    let mut uses = layout_uses::of(&name);
    uses.extend(layout_uses::sequences(&name));
    let keys = seal::all().filter(|key| key.shown().is_ok_and(|shown| shown.layout == name));
    uses.extend(keys.map(|key| format!("key \"{}\"", key.name)));
    if !uses.is_empty() {
        let message = format!("cannot drop layout \"{name}\" because other objects name it");
        Error::of(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST, message)
            .detail(format!("It is named in {}.", listed(uses.iter(), "others")))
            .hint("Drop or change these objects first; DROP SERVER drops the layout without this check.")
            .raise();
    }
    act_as(stored.owner, || run(format!("DROP SERVER {} CASCADE", quote_identifier(&name))));
}

/// PostgreSQL calls this with the options of CREATE SERVER and ALTER SERVER, including those in a dump. Any role may use the
/// wrapper, so that a dump can be restored, but only the owners of the extension and of the database may make layouts.
#[pg_extern(sql = "")]
fn flake_layout_validator(options: Array<&[u8]>, catalog: pg_sys::Oid) {
    let is_server = catalog == pg_sys::ForeignServerRelationId;
    // PostgreSQL lets a role with USAGE on a server make a user mapping of its own.
    if is_server || catalog == pg_sys::UserMappingRelationId {
        owner_only("create a layout").or_raise();
    }
    refuse_table(catalog);
    let definition = match (options.len(), options.iter().next().flatten()) {
        (0, _) if !is_server => return,
        (1, Some(option)) if is_server => {
            option.strip_prefix(b"definition=").filter(|json| json.len() <= json::MAX_BYTES)
        }
        _ => None,
    };
    let Some(json) = definition else {
        Error::invalid("a layout must have the option \"definition\" and no other")
            .detail("Foreign servers of the foreign-data wrapper flake_layout are layouts.")
            .hint("Create layouts with flake_create_layout.")
            .raise()
    };
    Definition::from_json("", &to_utf8_lossy(json)).and_then(|definition| definition.layout("")).or_raise();
}

c_symbol!(flake_create_layout, flake_drop_layout, flake_layout_validator);
