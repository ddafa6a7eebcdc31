//! Backups: the configuration as a file that only its passphrase opens.

pub mod container;
