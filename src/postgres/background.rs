//! Background workers that run one function of this library and end.
#![allow(unsafe_code, reason = "pgrx offers no worker that needs no database and is waited for")]

use std::ffi::CStr;

use pgrx::pg_sys;

/// Runs a C function of this library in a process that sees nothing but the server's own settings, and waits for its end.
/// Returns whether it could be started, which takes a free one of `max_worker_processes`. It may raise an error.
pub fn run(name: &CStr, function: &CStr) -> bool {
    let mut worker = pg_sys::BackgroundWorker {
        bgw_flags: pg_sys::BGWORKER_SHMEM_ACCESS as i32,
        bgw_start_time: pg_sys::BgWorkerStartTime::BgWorkerStart_PostmasterStart,
        bgw_restart_time: pg_sys::BGW_NEVER_RESTART,
        ..Default::default()
    };
    copy(&mut worker.bgw_name, name);
    copy(&mut worker.bgw_type, name);
    copy(&mut worker.bgw_library_name, c"flake");
    copy(&mut worker.bgw_function_name, function);
    let mut handle = std::ptr::null_mut();
    // SAFETY: PostgreSQL copies the worker, and allocates the handle, which lasts as long as the statement.
    unsafe {
        worker.bgw_notify_pid = pg_sys::MyProcPid;
        pg_sys::RegisterDynamicBackgroundWorker(&raw mut worker, &raw mut handle)
            && pg_sys::WaitForBackgroundWorkerShutdown(handle) == pg_sys::BgwHandleStatus::BGWH_STOPPED
    }
}

fn copy(to: &mut [core::ffi::c_char], from: &CStr) {
    for (to, from) in to.iter_mut().zip(from.to_bytes_with_nul()) {
        *to = *from as core::ffi::c_char;
    }
}
