//! Grace period for packets in flight.

use std::io;

use super::{Error, syscall};
use crate::os::rcu::ExpeditedGracePeriods;

const QUERY: libc::c_int = 0;
const GLOBAL: libc::c_int = 1;

/// Waits until no running program still reads the slot that was active before.
///
/// `MEMBARRIER_CMD_GLOBAL` is a full RCU grace period (membarrier(2)), and programs run under RCU. Kernels that run
/// with `nohz_full` refuse it. `MEMBARRIER_CMD_GLOBAL_EXPEDITED` is no substitute: it is a barrier on other
/// processors, and a program interrupted on one of them outlives it.
pub(super) fn grace() -> Result<(), Error> {
    let _expedited = ExpeditedGracePeriods::begin();
    let waited = match membarrier(GLOBAL) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EPERM)) => {
            syscall::wait_for_programs()
        }
        result => result.map(drop),
    };
    waited.map_err(Error::Grace)
}

/// Mechanism by which the daemon waits for packets in flight on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraceMode {
    Membarrier,
    /// A map of maps: each wait creates two maps.
    MapOfMaps,
}

/// Returns the mode of this kernel, or the error if no mode works.
pub fn grace_mode() -> Result<GraceMode, io::Error> {
    match membarrier(QUERY) {
        Ok(commands) if commands & libc::c_long::from(GLOBAL) != 0 => Ok(GraceMode::Membarrier),
        _ => syscall::wait_for_programs().map(|()| GraceMode::MapOfMaps),
    }
}

fn membarrier(command: libc::c_int) -> io::Result<libc::c_long> {
    // SAFETY: the call takes three integers and touches no memory of this process.
    let result = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_grace_modes_end() {
        match syscall::wait_for_programs() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return,
            waited => waited.unwrap(),
        }
        grace().unwrap();
        assert!(grace_mode().is_ok());
    }
}
