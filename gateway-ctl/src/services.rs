//! What runs beside the reconcile loop and watches or serves something.

pub mod backup;
pub mod bridges;
pub mod confirm;
pub mod deadman;
pub mod events;
pub mod names;
pub mod proxies;
pub mod stranded;
pub mod tunnels;
pub mod turns;
