//! An extension of this database.
#![allow(unsafe_code, reason = "scans a catalog")]

use std::ffi::CStr;

use pgrx::pg_sys;

/// The schema for those objects of this extension that no role uses by name. Only superusers may use it.
pub const INTERNAL_SCHEMA: &CStr = c"flake_internal";

/// The schema for the functions that plans contain in the place of filters by time. Every role may use it.
pub const PLAN_SCHEMA: &CStr = c"flake_plan";

/// The catalog's entry of an extension.
#[derive(Clone, Copy)]
pub struct Extension {
    pub oid: pg_sys::Oid,
    pub owner: pg_sys::Oid,
    pub schema: pg_sys::Oid,
}

impl Extension {
    /// Returns the name of a function, or None if it does not belong to the extension.
    pub fn name_of_function(self, function: pg_sys::Oid) -> Option<String> {
        // SAFETY: it looks the function up in the catalog; the result is a C string.
        unsafe {
            if pg_sys::getExtensionOfObject(pg_sys::ProcedureRelationId, function) != self.oid {
                return None;
            }
            let name = pg_sys::get_func_name(function);
            (!name.is_null()).then(|| CStr::from_ptr(name).to_string_lossy().into_owned())
        }
    }

    /// Returns the type of this name in the extension's schema.
    pub fn type_of_name(self, name: &CStr) -> Option<pg_sys::Oid> {
        let (cache, none) = (pg_sys::SysCacheIdentifier::TYPENAMENSP as _, pg_sys::Datum::null());
        // SAFETY: it looks the type up in the catalog.
        let found = unsafe {
            let name = name.as_ptr().into();
            pg_sys::GetSysCacheOid(cache, pg_sys::Anum_pg_type_oid as i16, name, self.schema.into(), none, none)
        };
        (found != pg_sys::Oid::INVALID).then_some(found)
    }
}

/// Returns the extension with this name.
pub fn find(name: &CStr) -> Option<Extension> {
    let lock = pg_sys::AccessShareLock as pg_sys::LOCKMODE;
    // SAFETY: a scan of a catalog by its index, as PostgreSQL's own extension.c does it.
    unsafe {
        let catalog = pg_sys::table_open(pg_sys::ExtensionRelationId, lock);
        let mut key = pg_sys::ScanKeyData::default();
        pg_sys::ScanKeyInit(
            &raw mut key,
            pg_sys::Anum_pg_extension_extname as pg_sys::AttrNumber,
            pg_sys::BTEqualStrategyNumber as pg_sys::StrategyNumber,
            pg_sys::F_NAMEEQ.into(),
            pg_sys::Datum::from(name.as_ptr()),
        );
        let index = pg_sys::Oid::from(pg_sys::ExtensionNameIndexId);
        let scan = pg_sys::systable_beginscan(catalog, index, true, std::ptr::null_mut(), 1, &raw mut key);
        let row = pg_sys::systable_getnext(scan);
        let found = (!row.is_null()).then(|| {
            let form = &*pg_sys::GETSTRUCT(row).cast::<pg_sys::FormData_pg_extension>();
            Extension { oid: form.oid, owner: form.extowner, schema: form.extnamespace }
        });
        pg_sys::systable_endscan(scan);
        pg_sys::table_close(catalog, lock);
        found
    }
}
