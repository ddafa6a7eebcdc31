//! Tests of the daemon's parts against this machine's kernel. They need root, and fail without it.

mod answers;
mod differential;
mod effects;
mod flow_budget;
mod wireguard;
