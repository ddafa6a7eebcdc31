//! The store as files: its state after a crash, and the readability of its secrets by other programs.

mod crash;
mod format;
