//! Long-running parts of the daemon that own a socket or a clock.
