//! What runs beside the reconcile loop and watches or serves something.

pub mod backup;
pub mod bridges;
pub mod confirm;
pub mod deadman;
pub mod endings;
pub mod events;
pub mod extfilter;
pub mod moved_flows;
pub mod names;
pub mod notices;
pub mod open_files;
pub mod proxies;
pub mod storage;
pub mod stranded;
pub mod tunnels;
pub mod turns;
