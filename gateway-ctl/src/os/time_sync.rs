//! Whether the kernel's wall clock is synchronised (RFC 5905; adjtimex(2)).

/// True once an NTP client has told the kernel that the clock is right, until that is too long ago.
pub fn is_synchronised() -> bool {
    // SAFETY: all fields are integers, for which zeros are values; modes 0 asks and changes nothing.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole structure of that type, which lives through the call.
    let clock = unsafe { libc::adjtimex(&raw mut state) };
    clock >= 0 && clock != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0
}
