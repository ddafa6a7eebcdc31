//! What runs beside the reconcile loop and watches or serves something.

pub mod deadman;
pub mod events;
pub mod tunnels;
