//! The resolver: it listens, looks up what was decided, remembers answers, and asks upstream.
//!
//! What is answered and why is decided by `gateway_core::dns`; who asks, by which way a question leaves and what becomes
//! of learned addresses comes from the daemon through the traits of [`hooks`].

pub mod cache;
mod downloads;
pub mod erase;
pub mod extfilter;
pub mod hooks;
pub mod lists;
pub mod query_log;
pub mod resolver;
pub mod room;
pub mod serve;
pub mod signing;
mod threads;
pub mod transfer;
pub mod upstream;
pub mod wall_clock;
pub mod wire;

// Former name of [`hooks`], which `lists` and `transfer` still use.
use hooks as seam;

pub use resolver::Resolver;
pub use serve::Settings;
pub use wall_clock::WallClock;

/// The thread that calls this gives way to those that answer.
fn give_way() {
    const NICE: i32 = 5;
    // Without it things are only slower.
    let _ = rustix::process::setpriority_process(None, NICE);
}
