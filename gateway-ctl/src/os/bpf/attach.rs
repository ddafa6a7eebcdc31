//! Attachment of programs to interfaces: tcx where the kernel has it (6.6), else clsact. The kernel is the only
//! source for the present attachments.
//!
//! The gateway's program is the first at its hook. A program before it could pass packets on, redirect them or change
//! their fwmark. While programs of another ABI version are attached, the new ones come directly behind them. A packet
//! then passes only if both let it pass, and it leaves with the mark of the newer plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use aya::programs::links::{FdLink, PinnedLink};
use aya::programs::tc::{SchedClassifierLink, TcAttachOptions};
use aya::programs::{LinkOrder, ProgramId, SchedClassifier};
use aya::util::KernelVersion;
use gateway_core::plan::Attachment;
use gateway_outbound::causes::with_causes;

use super::clsact;
use super::hook::{Hook, Placement, programs_of};
use super::syscall::PinnedTcx;
use super::{Error, Programs, xdp};
use crate::os::rcu::ExpeditedGracePeriods;

/// Attachment mechanism of this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    Tcx,
    Clsact,
}

/// Changes that brought the attachments to the wanted state.
#[derive(Clone, Debug, Default)]
pub struct AttachmentChanges {
    pub added: Vec<String>,
    pub failed: Vec<(String, String)>,
}

/// The kernel frees a link shortly after the removal of its pin.
const FREEING_ATTEMPTS: u32 = 50;
const FREEING_WAIT: Duration = Duration::from_millis(5);

impl AttachMode {
    pub fn of_this_kernel() -> AttachMode {
        let tcx = KernelVersion::current().is_ok_and(|version| version >= KernelVersion::new(6, 6, 0));
        if tcx { AttachMode::Tcx } else { AttachMode::Clsact }
    }

    /// Returns the enum value of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            AttachMode::Tcx => "tcx",
            AttachMode::Clsact => "clsact",
        }
    }
}

impl Programs {
    /// Attaches the wanted programs and replaces those of an earlier run in place. It skips interfaces that do not
    /// exist until the next run. A failure on one interface does not stop the others.
    pub fn attach(&mut self, want: &BTreeMap<String, Attachment>) -> AttachmentChanges {
        let mut attached = AttachmentChanges::default();
        let mut expedited = None;
        for (interface, attachment) in want {
            let Ok(index) = nix::net::if_::if_nametoindex(interface.as_str()) else { continue };
            let mut is_added = false;
            for (program, kind) in programs_of(*attachment) {
                let hook = Hook { interface, index, program, kind };
                if self.placement(&hook) == Placement::First {
                    continue;
                }
                expedited.get_or_insert_with(ExpeditedGracePeriods::begin);
                match self.attach_one(&hook) {
                    Ok(()) => is_added = true,
                    Err(error) => attached.failed.push((interface.clone(), with_causes(&error))),
                }
            }
            if is_added {
                attached.added.push(interface.clone());
            }
        }
        attached
    }

    /// Reports whether the interface has exactly these programs, each first at its hook, according to the kernel.
    pub fn is_attached(&self, interface: &str, attachment: Attachment) -> bool {
        self.deviation(interface, attachment).is_none()
    }

    /// Returns the difference between the attachment on an interface and the wanted one, or `None` if they are equal.
    pub fn deviation(&self, interface: &str, attachment: Attachment) -> Option<String> {
        let Ok(index) = nix::net::if_::if_nametoindex(interface) else {
            return Some(Placement::Detached.to_string());
        };
        programs_of(attachment)
            .map(|(program, kind)| self.placement(&Hook { interface, index, program, kind }))
            .find(|placement| *placement != Placement::First)
            .map(|placement| placement.to_string())
    }

    fn placement(&self, hook: &Hook<'_>) -> Placement {
        let Some(id) = self.program_id(hook.program) else { return Placement::Detached };
        match AttachMode::of_this_kernel() {
            AttachMode::Tcx => self.placement_tcx(hook, id),
            AttachMode::Clsact => clsact::placement(hook.index, hook.kind, id),
        }
    }

    fn placement_tcx(&self, hook: &Hook<'_>, id: u32) -> Placement {
        let Ok((_, programs)) = SchedClassifier::query_tcx(hook.interface, hook.kind) else {
            return Placement::Detached;
        };
        let older = self.programs_of_other_versions();
        let mut ids = programs.iter().map(|program| program.id()).filter(|id| !older.contains(id));
        match ids.position(|other| other == id) {
            None => Placement::Detached,
            Some(0) if self.pin(hook.index, hook.program).exists() => Placement::First,
            Some(0) => Placement::Unpinned,
            Some(count) => Placement::Behind(count),
        }
    }

    /// Detaches programs of an earlier plan that this plan does not want.
    pub fn prune(&mut self, want: &BTreeMap<String, Attachment>) -> Result<(), std::io::Error> {
        match AttachMode::of_this_kernel() {
            AttachMode::Tcx => self.prune_tcx(want),
            AttachMode::Clsact => clsact::prune(want),
        }
    }

    fn prune_tcx(&self, want: &BTreeMap<String, Attachment>) -> Result<(), std::io::Error> {
        let mut wanted = BTreeSet::<PathBuf>::new();
        for (interface, attachment) in want {
            let Ok(index) = nix::net::if_::if_nametoindex(interface.as_str()) else { continue };
            wanted.extend(programs_of(*attachment).map(|(program, _)| self.pin(index, program)));
        }
        for entry in std::fs::read_dir(&self.links)? {
            let path = entry?.path();
            // The fast path detaches its own.
            if !wanted.contains(&path) && !xdp::is_pin(&path) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn attach_one(&mut self, hook: &Hook<'_>) -> Result<(), Error> {
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Attach {
            program: hook.program,
            interface: hook.interface.to_owned(),
            source,
        };
        match AttachMode::of_this_kernel() {
            AttachMode::Tcx => self.attach_tcx(hook),
            AttachMode::Clsact => self.attach_clsact(hook),
        }
        .map_err(failed)?;
        match self.placement(hook) {
            Placement::First => Ok(()),
            placement => Err(failed(format!("after attaching it the program is {placement}").into())),
        }
    }

    fn attach_tcx(&mut self, hook: &Hook<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let pin = self.pin(hook.index, hook.program);
        if let Ok(earlier) = PinnedTcx::open(&pin) {
            let is_ours = self.program_id(hook.program) == Some(earlier.program);
            let is_replaced =
                earlier.interface == hook.index && !is_ours && self.replace_tcx(&pin, hook.program).is_some();
            if is_replaced && self.placement(hook) == Placement::First {
                return Ok(());
            }
            // The link is behind foreign programs, or its interface is gone. In the first case the kernel refuses to
            // attach the program a second time. It is therefore detached for the duration of two calls.
            if earlier.interface == hook.index {
                earlier.detach()?;
            }
        }
        if pin.exists() {
            std::fs::remove_file(&pin)?;
        }
        self.wait_until_freed(hook);
        let order = match self.older_program_on(hook) {
            Some(older) => LinkOrder::after_program_id(older),
            // First in the list: no program may pass or redirect packets before their evaluation.
            None => LinkOrder::first(),
        };
        let program = self.program(hook.program)?;
        let id = program.attach_with_options(hook.interface, hook.kind, TcAttachOptions::TcxOrder(order))?;
        let link: FdLink = program.take_link(id)?.try_into()?;
        link.pin(&pin)?;
        Ok(())
    }

    fn wait_until_freed(&self, hook: &Hook<'_>) {
        for _ in 0..FREEING_ATTEMPTS {
            if self.placement(hook) != Placement::Unpinned {
                return;
            }
            sleep(FREEING_WAIT);
        }
    }

    /// Returns the last program of another ABI version at the hook.
    fn older_program_on(&self, hook: &Hook<'_>) -> Option<ProgramId> {
        let older = self.programs_of_other_versions();
        if older.is_empty() {
            return None;
        }
        let (_, programs) = SchedClassifier::query_tcx(hook.interface, hook.kind).ok()?;
        let id = programs.iter().map(|program| program.id()).rfind(|id| older.contains(id))?;
        // SAFETY: the kernel has just listed the program under this id.
        Some(unsafe { ProgramId::new(id) })
    }

    /// Puts this program into the link of an earlier run, without a gap.
    fn replace_tcx(&mut self, pin: &Path, name: &'static str) -> Option<()> {
        let link = SchedClassifierLink::try_from(FdLink::from(PinnedLink::from_pin(pin).ok()?)).ok()?;
        let program = self.program(name).ok()?;
        let id = program.attach_to_link(link).ok()?;
        // The pin holds the link from here on.
        program.take_link(id).ok().map(drop)
    }

    pub(super) fn program_id(&self, name: &str) -> Option<u32> {
        self.ebpf.program(name)?.info().ok().map(|info| info.id())
    }

    /// Returns the path of the pin, by interface index: a renamed interface keeps its programs.
    fn pin(&self, index: u32, program: &str) -> PathBuf {
        self.links.join(format!("{program}-{index}"))
    }
}
