//! The only caller of the system clock.
