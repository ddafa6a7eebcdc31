//! Synchronisation state of the kernel's wall clock (RFC 5905; adjtimex(2)).

use gateway_core::ntp::ClockQuality;

/// Reports whether an NTP client has declared the clock correct, and recently enough.
pub fn is_synchronised() -> bool {
    quality().is_synchronised
}

/// Returns the quality of the clock as its NTP client has declared it.
pub fn quality() -> ClockQuality {
    // SAFETY: all fields are integers, for which zeros are values. Mode 0 reads and changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole structure of that type, which lives through the call.
    let clock = unsafe { libc::adjtimex(&raw mut state) };
    ClockQuality {
        is_synchronised: clock >= 0 && clock != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0,
        max_error: u32::try_from(state.maxerror).unwrap_or(u32::MAX),
    }
}
