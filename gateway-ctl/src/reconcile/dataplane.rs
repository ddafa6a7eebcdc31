//! BPF programs and maps in the kernel, as a subsystem of the reconcile loop.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_core::plan::{Attachment, Plan};
use gateway_core::shared::Shared;
use parking_lot::Mutex;

use super::generations::Generations;
use super::status::PLAN;
use super::{Check, Dataplane};
use crate::os::bpf::{AttachMode, FastPath, Programs, Xdp};
use crate::os::{DriftEntry, Failure, Outcome};

/// Loaded programs, shared with the readers of counters.
#[derive(Clone)]
pub struct KernelDataplane {
    inner: Arc<Mutex<Inner>>,
    fast_path: FastPath,
    xdp: Xdp,
}

/// Function that is called with each plan that is live after a run, and its generation.
type ActivationHook = Box<dyn Fn(u32, &Plan) + Send>;

struct Inner {
    programs: Programs,
    generations: Option<Generations>,
    on_activated: Option<ActivationHook>,
    /// Attachments after the last run. A difference means that another program changed them.
    attached: BTreeMap<String, Attachment>,
    /// Attachments that the last run wanted.
    want: BTreeMap<String, Attachment>,
    last: Option<LastPlan>,
}

struct LastPlan {
    dataplane: Shared<gateway_core::plan::Dataplane>,
    generation: u32,
}

impl KernelDataplane {
    pub fn new(programs: Programs) -> KernelDataplane {
        let (fast_path, xdp) = (programs.fast_path.clone(), programs.xdp.clone());
        let inner = Inner {
            programs,
            generations: None,
            on_activated: None,
            attached: BTreeMap::new(),
            want: BTreeMap::new(),
            last: None,
        };
        KernelDataplane { inner: Arc::new(Mutex::new(inner)), fast_path, xdp }
    }

    /// Numbers plans by this source, so that a number does not return after a restart of the host.
    pub fn number_by(&self, generations: Generations) {
        self.inner.lock().generations = Some(generations);
    }

    /// Registers the function that is called after each run with the plan that is live, and its generation. The plan may be
    /// the same as before. The function must not block.
    pub fn on_activated(&self, hook: impl Fn(u32, &Plan) + Send + 'static) {
        self.inner.lock().on_activated = Some(Box::new(hook));
    }

    /// Returns the fast path, which does not wait for a plan that is being written.
    pub fn fast_path(&self) -> &FastPath {
        &self.fast_path
    }

    /// Returns the XDP programs of the fast path.
    pub fn xdp(&self) -> &Xdp {
        &self.xdp
    }

    /// Runs a function on the programs. Blocks while a plan is being written.
    pub fn with<T>(&self, run: impl FnOnce(&mut Programs) -> T) -> T {
        run(&mut self.inner.lock().programs)
    }

    /// Reports whether programs, their order and pins are as the last run left them. Blocks like
    /// [`with`](Self::with).
    pub fn is_intact(&self) -> bool {
        self.inner.lock().is_intact()
    }
}

impl Dataplane for KernelDataplane {
    async fn apply(&self, plan: &Plan, check: Check) -> Outcome {
        let (this, plan) = (self.clone(), plan.clone());
        match tokio::task::spawn_blocking(move || this.inner.lock().apply(&plan, check)).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::failure("dataplane", &error),
        }
    }
}

impl Inner {
    /// Applies a plan: guards first, then the plan, then the programs of new LAN interfaces. No packet is evaluated
    /// by a plan that does not know its interface, and none leaves through an interface without a guard. Rules and
    /// nftables block the new LAN interfaces until their program is attached. Where another ABI version enforces its
    /// last plan, all programs of this version come after the plan, and those of that version are then removed.
    fn apply(&mut self, plan: &Plan, check: Check) -> Outcome {
        let mut outcome = Outcome::default();
        self.restore_pins(&mut outcome);
        let deviations = self.deviations(&plan.attach);
        let is_handover = !self.programs.other_versions().is_empty();
        let mut added = Vec::new();
        if !is_handover {
            let guards = plan.attach.iter().filter(|(_, kind)| **kind == Attachment::Guard);
            let guards = guards.map(|(name, kind)| (name.clone(), *kind)).collect();
            self.attach(&guards, &mut outcome, &mut added);
        }
        let is_applied = self.apply_maps(plan, check, &mut outcome);
        if is_applied && let (Some(hook), Some(last)) = (&self.on_activated, &self.last) {
            hook(last.generation, plan);
        }
        // Without any plan, the programs block by themselves.
        if is_applied || self.programs.live().is_ok_and(|slot| slot.is_none()) {
            outcome.failed.retain(|failure| !plan.attach.contains_key(&failure.resource));
            self.attach(&plan.attach, &mut outcome, &mut added);
        }
        for (name, actual) in deviations {
            outcome.drift.push(DriftEntry {
                resource: name.clone(),
                field: "program".into(),
                expected: "first".into(),
                actual,
                repaired: self.programs.is_attached(&name, plan.attach[&name]),
            });
        }
        self.attached = plan
            .attach
            .iter()
            .filter(|(name, kind)| self.programs.is_attached(name, **kind))
            .map(|(name, kind)| (name.clone(), *kind))
            .collect();
        self.want.clone_from(&plan.attach);
        // On clsact, the programs of this version have replaced them; elsewhere they guard where these are not attached.
        if outcome.failed.is_empty() || is_applied && AttachMode::of_this_kernel() == AttachMode::Clsact {
            note(&mut outcome, self.programs.retire_other_versions());
        }
        // Only after the new plan is live: until then, the attachments of an earlier plan stay in force.
        if is_applied {
            note(&mut outcome, self.programs.prune(&plan.attach));
        }
        outcome
    }

    fn restore_pins(&self, outcome: &mut Outcome) {
        let unpinned = self.programs.unpinned_maps();
        if let Err(error) = self.programs.restore_pins() {
            outcome.failed.push(Failure::new("pins", &error));
        }
        if !unpinned.is_empty() {
            outcome.drift.push(DriftEntry {
                resource: "maps".into(),
                field: "pins".into(),
                expected: "present".into(),
                actual: format!("{} missing", unpinned.len()),
                repaired: self.programs.unpinned_maps().is_empty(),
            });
        }
    }

    /// Returns the attachments of the last run that another program displaced since.
    fn deviations(&self, want: &BTreeMap<String, Attachment>) -> Vec<(String, String)> {
        let kept = self.attached.iter().filter(|(name, kind)| want.get(*name) == Some(*kind) && exists(name));
        kept.filter_map(|(name, kind)| Some((name.clone(), self.programs.deviation(name, *kind)?))).collect()
    }

    fn attach(
        &mut self,
        want: &BTreeMap<String, Attachment>,
        outcome: &mut Outcome,
        added: &mut Vec<String>,
    ) {
        let attached = self.programs.attach(want);
        for (resource, error) in attached.failed {
            outcome.failed.push(Failure { resource, error });
        }
        for name in attached.added.into_iter().filter(|name| !added.contains(name)).collect::<Vec<_>>() {
            outcome.put += 1;
            added.push(name);
        }
    }

    /// Writes the plan into the maps. Returns `true` if it is live.
    fn apply_maps(&mut self, plan: &Plan, check: Check, outcome: &mut Outcome) -> bool {
        // A panic on the way leaves no last plan, so the next run reads the maps.
        let last = self.last.take();
        let is_same = last.as_ref().is_some_and(|last| last.dataplane == plan.dataplane);
        if is_same && check == Check::Plan && last.as_ref().is_some_and(|last| self.is_live(last)) {
            self.last = last;
            return true;
        }
        if let Some(generations) = &mut self.generations
            && let Ok(newest) = self.programs.newest_generation()
        {
            self.programs.number_from(generations.next(newest));
        }
        // A plan that differs from the last one is not the active one, unless another program wrote it.
        let swapped = match last.is_some() && !is_same {
            true => self.programs.activate(&plan.dataplane),
            false => self.programs.apply(&plan.dataplane),
        };
        match swapped {
            Ok(swap) => {
                if let Some(last) = last.filter(|_| is_same && swap.changed) {
                    outcome.drift.push(DriftEntry {
                        resource: "policy maps".into(),
                        field: "content".into(),
                        expected: format!("generation {}", last.generation),
                        actual: format!("{} entries changed", swap.puts + swap.removes),
                        repaired: true,
                    });
                }
                // A plan may differ in its actions or its header only.
                outcome.put += swap.puts.max(usize::from(swap.changed));
                outcome.removed += swap.removes;
                self.last = Some(LastPlan { dataplane: plan.dataplane.clone(), generation: swap.generation });
                true
            }
            Err(error) => {
                outcome.failed.push(Failure::new(PLAN, &error));
                false
            }
        }
    }

    /// Reports whether the generation of the last plan is the active one.
    fn is_live(&self, last: &LastPlan) -> bool {
        self.programs.generation().is_ok_and(|generation| generation == last.generation)
    }

    /// Reports whether all wanted programs are attached, each first at its hook, and all maps are pinned.
    fn is_intact(&self) -> bool {
        let displaced =
            |(name, kind): (&String, &Attachment)| exists(name) && !self.programs.is_attached(name, *kind);
        !self.want.iter().any(displaced) && self.programs.unpinned_maps().is_empty()
    }
}

fn note(outcome: &mut Outcome, cleared: std::io::Result<()>) {
    if let Err(error) = cleared {
        outcome.failed.push(Failure::new("pins", &error));
    }
}

#[expect(clippy::disallowed_methods, reason = "looks an interface up, and changes nothing")]
fn exists(interface: &str) -> bool {
    nix::net::if_::if_nametoindex(interface).is_ok()
}
