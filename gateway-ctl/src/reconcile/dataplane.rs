//! The programs and maps in the kernel as a subsystem of the loop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gateway_core::plan::{Attachment, Plan};

use super::Dataplane;
use crate::effects::bpf::Programs;
use crate::effects::{DriftEntry, Failure, Outcome};

/// The loaded programs, shared with those who read counters.
#[derive(Clone)]
pub struct KernelDataplane {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    programs: Programs,
    /// What the last run left attached and live: what differs from it is somebody else's doing.
    attached: BTreeMap<String, Attachment>,
    last: Option<Last>,
}

struct Last {
    dataplane: gateway_core::plan::Dataplane,
    generation: u32,
}

impl KernelDataplane {
    pub fn new(programs: Programs) -> KernelDataplane {
        let inner = Inner { programs, attached: BTreeMap::new(), last: None };
        KernelDataplane { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Runs something on the programs; blocks for as long as a plan is being written.
    pub fn with<T>(&self, run: impl FnOnce(&mut Programs) -> T) -> T {
        run(&mut self.lock().programs)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // What a panicking run left is read from the kernel again by the next one.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dataplane for KernelDataplane {
    async fn apply(&self, plan: &Plan) -> Outcome {
        let (this, plan) = (self.clone(), plan.clone());
        match tokio::task::spawn_blocking(move || this.lock().apply(&plan)).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::failure("dataplane", &error),
        }
    }
}

impl Inner {
    fn apply(&mut self, plan: &Plan) -> Outcome {
        let mut outcome = Outcome::default();
        let lost: Vec<String> = self
            .attached
            .iter()
            .filter(|(name, kind)| plan.attach.get(*name) == Some(*kind))
            .filter(|(name, kind)| exists(name) && !self.programs.is_attached(name, **kind))
            .map(|(name, _)| name.clone())
            .collect();
        // First the programs: until the flip they go by the plan that is live, or block.
        let attached = self.programs.attach(&plan.attach);
        outcome.put += attached.added.len();
        for name in &lost {
            outcome.drift.push(DriftEntry {
                resource: name.clone(),
                field: "program".into(),
                expected: "attached".into(),
                actual: "detached".into(),
                repaired: attached.added.contains(name),
            });
        }
        outcome
            .failed
            .extend(attached.failed.into_iter().map(|(resource, error)| Failure { resource, error }));
        self.attached = plan
            .attach
            .iter()
            .filter(|(name, kind)| self.programs.is_attached(name, **kind))
            .map(|(name, kind)| (name.clone(), *kind))
            .collect();
        match self.programs.apply(&plan.dataplane) {
            Ok(swap) => {
                let same = self.last.as_ref().filter(|last| last.dataplane == plan.dataplane);
                if let Some(last) = same.filter(|_| swap.changed) {
                    outcome.drift.push(DriftEntry {
                        resource: "policy maps".into(),
                        field: "content".into(),
                        expected: format!("generation {}", last.generation),
                        actual: format!("{} entries changed", swap.puts + swap.removes),
                        repaired: true,
                    });
                }
                outcome.put += swap.puts;
                outcome.removed += swap.removes;
                self.last = Some(Last { dataplane: plan.dataplane.clone(), generation: swap.generation });
            }
            Err(error) => outcome.failed.push(Failure::new("plan", &error)),
        }
        // Only once the new plan stands: until then what an earlier one attached goes on holding.
        if outcome.failed.is_empty()
            && let Err(error) = self.programs.prune(&plan.attach)
        {
            outcome.failed.push(Failure::new("pins", &error));
        }
        outcome
    }
}

fn exists(interface: &str) -> bool {
    nix::net::if_::if_nametoindex(interface).is_ok()
}
