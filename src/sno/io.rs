//! A sno as text, in the binary protocol, and cast to other types and back.

use std::ffi::{CStr, CString};

use flake_core::Sno;
use pgrx::PgSqlErrorCode::*;
use pgrx::prelude::*;

use super::datum::SnoDatum;
use crate::error::{Error, OrRaise, errsave};
use crate::postgres::entry_point::c_symbol;

#[pg_extern(sql = "")]
fn sno_in(text: &CStr, call: pg_sys::FunctionCallInfo) -> Option<SnoDatum> {
    match Sno::parse(text.to_bytes()) {
        Ok(sno) => Some(SnoDatum(sno)),
        Err(error) => {
            errsave(error, call);
            None
        }
    }
}

#[pg_extern(sql = "")]
fn sno_out(sno: SnoDatum) -> CString {
    CString::new(sno.0.encode()).unwrap_or_default()
}

#[pg_extern(sql = "")]
fn sno_send(sno: SnoDatum) -> Vec<u8> {
    sno.0.bytes().to_vec()
}

#[pg_extern(sql = "")]
#[allow(unsafe_code, reason = "reads the message of a receive function")]
fn sno_recv(mut message: pgrx::Internal) -> SnoDatum {
    // SAFETY: PostgreSQL gives a receive function a StringInfo whose cursor is within its data.
    let rest = unsafe {
        let Some(message) = message.get_mut::<pg_sys::StringInfoData>() else { return SnoDatum(Sno::ZERO) };
        let length = (message.len - message.cursor) as usize;
        let rest = std::slice::from_raw_parts(message.data.add(message.cursor as usize).cast::<u8>(), length);
        message.cursor = message.len;
        rest
    };
    let length = rest.len();
    let sno = Sno::from_slice(rest).map_err(|_| flake_core::Error::SnoBytes { length, received: true });
    SnoDatum(sno.or_raise())
}

#[pg_extern(sql = "")]
fn sno_from_bytea(bytes: &[u8]) -> SnoDatum {
    SnoDatum(Sno::from_slice(bytes).or_raise())
}

#[pg_extern(sql = "")]
fn sno_to_uuid(sno: SnoDatum) -> pgrx::Uuid {
    pgrx::Uuid::from_bytes(sno.0.encode())
}

#[pg_extern(sql = "")]
fn sno_from_uuid(uuid: pgrx::Uuid) -> SnoDatum {
    let sno = Sno::decode(uuid.as_bytes()).map_err(|_| {
        Error::of(ERRCODE_INVALID_TEXT_REPRESENTATION, "uuid does not contain a sno")
            .detail("A uuid contains a sno as its 16 characters from 2 to 9 and a to x.")
            .hint("Only a uuid that was cast from a sno can be cast back.")
    });
    SnoDatum(sno.or_raise())
}

#[pg_extern(sql = "")]
fn sno_encode(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&Sno::from_slice(bytes).or_raise().encode()).into_owned()
}

#[pg_extern(sql = "")]
fn sno_decode(text: &[u8]) -> Vec<u8> {
    Sno::parse(text).or_raise().bytes().to_vec()
}

c_symbol!(sno_in, sno_out, sno_recv, sno_send);
c_symbol!(sno_from_bytea, sno_to_uuid, sno_from_uuid, sno_encode, sno_decode);
