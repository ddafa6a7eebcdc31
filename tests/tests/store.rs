//! The store as a file among files: what a crash leaves of it, and what other programs can read of its secrets.

mod crash;
mod format;
