//! A sno as text, in the binary protocol, and cast to and from other types.

use std::ffi::{CStr, CString};

use flake_core::{Error, Sno};
use pgrx::prelude::*;

use super::SnoDatum;
use crate::error::{self, OrRaise};

#[pg_extern(sql = "")]
fn sno_in(text: &CStr, call: pg_sys::FunctionCallInfo) -> Option<SnoDatum> {
    match Sno::parse(text.to_bytes(), flake_sno_simd::decode) {
        Ok(sno) => Some(SnoDatum(sno)),
        // pg_input_is_valid and COPY (ON_ERROR ignore) ask for an error that they can go on after.
        Err(error) => {
            error::soften(error, call);
            None
        }
    }
}

#[pg_extern(sql = "")]
fn sno_out(sno: SnoDatum) -> CString {
    CString::new(flake_sno_simd::encode(&sno.0)).unwrap_or_default()
}

#[pg_extern(sql = "")]
fn sno_send(sno: SnoDatum) -> Vec<u8> {
    sno.0.bytes().to_vec()
}

#[pg_extern(sql = "")]
#[allow(unsafe_code, reason = "the message of a receive function")]
fn sno_recv(mut message: pgrx::Internal) -> SnoDatum {
    // SAFETY: a receive function is given a StringInfo whose cursor is within its data.
    let rest = unsafe {
        let Some(message) = message.get_mut::<pg_sys::StringInfoData>() else { return SnoDatum(Sno::ZERO) };
        let length = (message.len - message.cursor) as usize;
        let rest = std::slice::from_raw_parts(message.data.add(message.cursor as usize).cast::<u8>(), length);
        message.cursor = message.len;
        rest
    };
    let sno = Sno::from_slice(rest).map_err(|_| Error::SnoBytes { length: rest.len(), received: true });
    SnoDatum(sno.or_raise())
}

#[pg_extern(sql = "")]
fn sno_to_bytea(sno: SnoDatum) -> Vec<u8> {
    sno.0.bytes().to_vec()
}

#[pg_extern(sql = "")]
fn sno_from_bytea(bytes: &[u8]) -> SnoDatum {
    SnoDatum(Sno::from_slice(bytes).or_raise())
}

#[pg_extern(sql = "")]
fn sno_to_uuid(sno: SnoDatum) -> pgrx::Uuid {
    pgrx::Uuid::from_bytes(flake_sno_simd::encode(&sno.0))
}

#[pg_extern(sql = "")]
fn sno_from_uuid(uuid: pgrx::Uuid) -> SnoDatum {
    SnoDatum(flake_sno_simd::decode(uuid.as_bytes()).map_err(|_| Error::SnoUuid).or_raise())
}

#[pg_extern(sql = "")]
fn sno_encode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&flake_sno_simd::encode(&Sno::from_slice(bytes).or_raise())).into_owned()
}

#[pg_extern(sql = "")]
fn sno_decode(text: &[u8]) -> Vec<u8> {
    Sno::parse(text, flake_sno_simd::decode).or_raise().bytes().to_vec()
}
