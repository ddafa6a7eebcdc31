//! Reconcile loop that brings the kernel to the compiled plan.
//!
//! It decides when to run and in which order, and records the results. The compiler decides the wanted state, and the
//! drivers in `os` apply it. The dataplane and the compiler are plugged in.

mod apply_order;
mod backends;
mod dataplane;
mod default_deny;
mod egress_backends;
mod generations;
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
pub use generations::Generations;
pub use openvpn::Processes;
pub use proxies::Proxies;
pub use run_loop::{Handle, Settings, Stopped, start};
pub use status::{DriftItem, Severity, Status, Subsystem};
pub use transports::Transports;
pub use trigger::{Check, Reason};
pub use wireguard::{Tunnels, WireGuardState};

use crate::os::observe::KernelChanges;
use crate::os::{Outcome, netlink};

/// Driver of the BPF programs and maps in the kernel.
pub trait Dataplane: Send + Sync + 'static {
    /// Attaches the missing programs and makes the plan live. Adds new fwmark authorisations before the plan goes
    /// live, and removes stale ones afterwards.
    fn apply(&self, plan: &Plan, check: Check) -> impl Future<Output = Outcome> + Send;
}

/// Source of facts.
pub trait Observe: Send + Sync + 'static {
    fn facts(&self) -> impl Future<Output = Result<Facts, netlink::Error>> + Send;

    /// Returns a receiver that wakes when a change was observed.
    fn changes(&self) -> watch::Receiver<KernelChanges>;
}

/// Plan that the compiler made of the current state and the facts.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    /// Revision of the compiled state.
    pub revision: u64,
    pub plan: Plan,
}

/// Compiler with access to the state.
pub trait Compile: Send + Sync + 'static {
    fn compile(&self, facts: &Facts, now: Timestamp) -> Compiled;

    /// Receives the result of each run before the callers that wait for it.
    fn finished(&self, _status: &Arc<Status>) {}
}

impl<F: Fn(&Facts, Timestamp) -> Compiled + Send + Sync + 'static> Compile for F {
    fn compile(&self, facts: &Facts, now: Timestamp) -> Compiled {
        self(facts, now)
    }
}

#[cfg(test)]
mod tests;
