use pgrx::prelude::*;
pgrx::pg_module_magic!(name = c"flake", version = c"0.1.0");
#[pg_extern(sql = "")]
fn flake_probe(layout: &str) -> i64 {
    layout.len() as i64
}
extension_sql_file!("../sql/flake.sql", name = "flake", finalize);
