//! The loop that brings the kernel to the compiled plan.
//!
//! It owns when to run, in which order, and what came of it. What to want is the compiler's, how to get it the
//! effects'. The dataplane and the compiler are plugged in.

mod apply_order;
mod backends;
mod dataplane;
mod default_deny;
mod egress_backends;
mod openvpn;
mod proxies;
mod run_loop;
mod status;
mod transports;
mod trigger;
mod wireguard;

use std::future::Future;
use std::sync::Arc;

use gateway_core::facts::Facts;
use gateway_core::plan::Plan;
use jiff::Timestamp;
use tokio::sync::watch;

pub use apply_order::Subsystems;
pub use backends::{Host, Kernel};
pub use dataplane::KernelDataplane;
pub use default_deny::{Existing, install_default_deny};
pub use egress_backends::{EgressBackend, SyncedBackend};
pub use openvpn::Processes;
pub use proxies::Proxies;
pub use run_loop::{Handle, Settings, Stopped, start};
pub use status::{DriftItem, Severity, Status, Subsystem};
pub use transports::Transports;
pub use trigger::Reason;
pub use wireguard::{Tunnels, WireGuardState};

use crate::os::observe::KernelChanges;
use crate::os::{Outcome, netlink};

/// The programs and maps in the kernel.
pub trait Dataplane: Send + Sync + 'static {
    /// Attaches what has to be attached and makes the plan live. New authorisations stand before the plan is live,
    /// stale ones go after it.
    fn apply(&self, plan: &Plan) -> impl Future<Output = Outcome> + Send;
}

/// Where facts come from.
pub trait Observe: Send + Sync + 'static {
    fn facts(&self) -> impl Future<Output = Result<Facts, netlink::Error>> + Send;

    /// Tells that something was seen to change.
    fn changes(&self) -> watch::Receiver<KernelChanges>;
}

/// What the compiler made of the current state and the facts.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// Of the state that was compiled.
    pub revision: u64,
    pub plan: Plan,
}

/// The compiler over the state it knows.
pub trait Compile: Send + Sync + 'static {
    fn compile(&self, facts: &Facts, now: Timestamp) -> Compiled;

    /// Hears of each run before those who wait for it.
    fn finished(&self, _status: &Arc<Status>) {}
}

impl<F: Fn(&Facts, Timestamp) -> Compiled + Send + Sync + 'static> Compile for F {
    fn compile(&self, facts: &Facts, now: Timestamp) -> Compiled {
        self(facts, now)
    }
}

#[cfg(test)]
mod tests;
