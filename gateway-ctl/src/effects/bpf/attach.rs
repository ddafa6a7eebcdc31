//! Programs on interfaces: tcx where the kernel has it (6.6), else clsact. What is attached is read
//! from the kernel, never remembered.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use aya::programs::links::{FdLink, Link as _, PinnedLink};
use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle, qdisc_add_clsact};
use aya::programs::{LinkOrder, SchedClassifier, TcAttachType};
use aya::util::KernelVersion;
use gateway_core::plan::Attachment;
use serde_json::Value;

use super::load::{GUARD, INGRESS};
use super::{Error, Programs};

/// How programs are attached on this kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachMode {
    Tcx,
    Clsact,
}

/// What was done to bring the attachments to the wanted state.
#[derive(Clone, Debug, Default)]
pub struct Attached {
    pub added: Vec<String>,
    pub failed: Vec<(String, String)>,
}

/// Our filter's place on a clsact qdisc: fixed, so that a restart finds and replaces it.
const PRIORITY: u16 = 71;
const HANDLE: u16 = 71;

impl AttachMode {
    pub fn of_this_kernel() -> AttachMode {
        let tcx = KernelVersion::current().is_ok_and(|version| version >= KernelVersion::new(6, 6, 0));
        if tcx { AttachMode::Tcx } else { AttachMode::Clsact }
    }
}

fn program_of(attachment: Attachment) -> (&'static str, TcAttachType) {
    match attachment {
        Attachment::Ingress => (INGRESS, TcAttachType::Ingress),
        Attachment::Guard => (GUARD, TcAttachType::Egress),
    }
}

impl Programs {
    /// Attaches what is wanted, replacing programs of an earlier run in place. Interfaces that do not
    /// exist are left for the next run. One that fails does not stop the others.
    pub fn attach(&mut self, want: &BTreeMap<String, Attachment>) -> Attached {
        let mut attached = Attached::default();
        for (interface, attachment) in want {
            if nix::net::if_::if_nametoindex(interface.as_str()).is_err()
                || self.is_attached(interface, *attachment)
            {
                continue;
            }
            match self.attach_one(interface, *attachment) {
                Ok(()) => attached.added.push(interface.clone()),
                Err(error) => attached.failed.push((interface.clone(), with_causes(&error))),
            }
        }
        attached
    }

    /// Whether the interface carries this very program, by what the kernel says.
    pub fn is_attached(&self, interface: &str, attachment: Attachment) -> bool {
        let (name, kind) = program_of(attachment);
        let Some(id) = self.program_id(name) else { return false };
        match AttachMode::of_this_kernel() {
            AttachMode::Tcx => SchedClassifier::query_tcx(interface, kind)
                .is_ok_and(|(_, programs)| programs.iter().any(|program| program.id() == id)),
            AttachMode::Clsact => clsact_program(interface, kind) == Some(id),
        }
    }

    /// Detaches what an earlier plan attached and this one does not want.
    pub fn prune(&mut self, want: &BTreeMap<String, Attachment>) -> Result<(), std::io::Error> {
        match AttachMode::of_this_kernel() {
            AttachMode::Tcx => self.prune_tcx(want),
            AttachMode::Clsact => prune_clsact(want),
        }
    }

    fn prune_tcx(&self, want: &BTreeMap<String, Attachment>) -> Result<(), std::io::Error> {
        let wanted: BTreeSet<PathBuf> =
            want.iter().map(|(interface, attachment)| self.pin(interface, *attachment)).collect();
        for entry in std::fs::read_dir(&self.links)? {
            let path = entry?.path();
            if !wanted.contains(&path) {
                std::fs::remove_file(path)?;
            }
        }
        Ok(())
    }

    fn attach_one(&mut self, interface: &str, attachment: Attachment) -> Result<(), Error> {
        let (name, kind) = program_of(attachment);
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Attach {
            program: name,
            interface: interface.to_owned(),
            source,
        };
        match AttachMode::of_this_kernel() {
            AttachMode::Tcx => self.attach_tcx(interface, attachment, name, kind),
            AttachMode::Clsact => self.attach_clsact(interface, name, kind),
        }
        .map_err(failed)?;
        if self.is_attached(interface, attachment) {
            return Ok(());
        }
        Err(failed("the kernel does not list the program after attaching it".into()))
    }

    fn attach_tcx(
        &mut self,
        interface: &str,
        attachment: Attachment,
        name: &'static str,
        kind: TcAttachType,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let pin = self.pin(interface, attachment);
        if self.replace_tcx(&pin, name).is_some() && self.is_attached(interface, attachment) {
            return Ok(());
        }
        // The pin is of a link whose interface is gone or has another name by now.
        if pin.exists() {
            std::fs::remove_file(&pin)?;
        }
        let program = self.program(name)?;
        // First in line: nothing may pass or steal packets before they are judged.
        let order = TcAttachOptions::TcxOrder(LinkOrder::first());
        let id = program.attach_with_options(interface, kind, order)?;
        let link: FdLink = program.take_link(id)?.try_into()?;
        link.pin(&pin)?;
        Ok(())
    }

    /// Puts this program into the link of an earlier run, without a gap.
    fn replace_tcx(&mut self, pin: &Path, name: &'static str) -> Option<()> {
        let link = SchedClassifierLink::try_from(FdLink::from(PinnedLink::from_pin(pin).ok()?)).ok()?;
        let program = self.program(name).ok()?;
        let id = program.attach_to_link(link).ok()?;
        // Held by the pin from here on.
        program.take_link(id).ok().map(drop)
    }

    fn attach_clsact(
        &mut self,
        interface: &str,
        name: &'static str,
        kind: TcAttachType,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        // Fails where the qdisc exists already, which is as good.
        let _ = qdisc_add_clsact(interface);
        let handle = TcHandle::new(0, HANDLE);
        let program = self.program(name)?;
        let earlier = SchedClassifierLink::attached(interface, kind, PRIORITY, handle, None)?;
        let id = match program.attach_to_link(earlier) {
            Ok(id) => id,
            Err(_) => {
                let options = NlOptions { priority: PRIORITY, handle, classid: None };
                program.attach_with_options(interface, kind, TcAttachOptions::Netlink(options))?
            }
        };
        // Dropping the link would detach the filter; it is to stay when this process goes.
        std::mem::forget(program.take_link(id)?);
        Ok(())
    }

    fn program_id(&self, name: &str) -> Option<u32> {
        self.ebpf.program(name)?.info().ok().map(|info| info.id())
    }

    /// Pin names must not contain a dot.
    fn pin(&self, interface: &str, attachment: Attachment) -> PathBuf {
        self.links.join(format!("{}-{}", program_of(attachment).0, interface.replace('.', "~")))
    }
}

/// Id of the program in our filter's place, read with tc(8): aya has no query for clsact.
fn clsact_program(interface: &str, kind: TcAttachType) -> Option<u32> {
    let direction = if matches!(kind, TcAttachType::Ingress) { "ingress" } else { "egress" };
    let filters = tc(&["filter", "show", "dev", interface, direction, "prio", &PRIORITY.to_string()]).ok()?;
    let ours = |filter: &&Value| {
        let name = filter.pointer("/options/bpf_name").and_then(Value::as_str).unwrap_or_default();
        name.starts_with(INGRESS) || name.starts_with(GUARD)
    };
    filters
        .iter()
        .filter(ours)
        .find_map(|filter| filter.pointer("/options/prog/id")?.as_u64())
        .and_then(|id| u32::try_from(id).ok())
}

/// There is no pin that tells where filters were put: every interface with a clsact is looked at.
fn prune_clsact(want: &BTreeMap<String, Attachment>) -> Result<(), std::io::Error> {
    let qdiscs = tc(&["qdisc", "show"])?;
    let clsact = qdiscs.iter().filter(|qdisc| qdisc["kind"] == "clsact");
    for interface in clsact.filter_map(|qdisc| qdisc["dev"].as_str()) {
        for attachment in [Attachment::Ingress, Attachment::Guard] {
            let (_, kind) = program_of(attachment);
            if want.get(interface) == Some(&attachment) || clsact_program(interface, kind).is_none() {
                continue;
            }
            let handle = TcHandle::new(0, HANDLE);
            SchedClassifierLink::attached(interface, kind, PRIORITY, handle, None)?
                .detach()
                .map_err(std::io::Error::other)?;
        }
    }
    Ok(())
}

/// What tc(8) shows, as a list.
fn tc(arguments: &[&str]) -> Result<Vec<Value>, std::io::Error> {
    let output = std::process::Command::new("tc").arg("-j").args(arguments).output()?;
    if !output.status.success() {
        return Err(std::io::Error::other(format!("tc {} ended with {}", arguments[0], output.status)));
    }
    // Some versions print nothing at all where there is nothing to show.
    if output.stdout.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    serde_json::from_slice(&output.stdout).map_err(std::io::Error::from)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
