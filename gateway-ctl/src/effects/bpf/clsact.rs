//! Programs as filters on a clsact qdisc, for kernels before 6.6.

use std::collections::BTreeMap;

use aya::programs::TcAttachType;
use aya::programs::links::Link as _;
use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle, qdisc_add_clsact};
use gateway_core::plan::Attachment;
use serde_json::Value;

use super::Programs;
use super::attach::{Hook, Placement, programs_of};
use super::load::{GUARD, INGRESS, WAN_INGRESS};

/// Our filter's place on a clsact qdisc: fixed, so that a restart finds and replaces it.
const PRIORITY: u16 = 71;
const HANDLE: u16 = 71;

impl Programs {
    pub(super) fn attach_clsact(
        &mut self,
        hook: &Hook<'_>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let Hook { interface, program: name, kind, .. } = *hook;
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
}

/// Where the program is among the filters of an interface. Filters of others with a lower preference come before it,
/// and cannot be moved: they are reported until somebody removes them.
pub(super) fn placement(interface: &str, kind: TcAttachType, id: u32) -> Placement {
    if installed(interface, kind) != Some(id) {
        return Placement::Detached;
    }
    match filters(interface, kind, &[]).map(|filters| foreign_before(&filters)) {
        Ok(0) => Placement::First,
        Ok(count) => Placement::Behind(count),
        Err(_) => Placement::Detached,
    }
}

/// How many preferences lower than ours have filters.
fn foreign_before(filters: &[Value]) -> usize {
    let preferences = filters.iter().filter_map(|filter| filter["pref"].as_u64());
    let before: std::collections::BTreeSet<u64> =
        preferences.filter(|pref| *pref < u64::from(PRIORITY)).collect();
    before.len()
}

fn filters(interface: &str, kind: TcAttachType, more: &[&str]) -> Result<Vec<Value>, std::io::Error> {
    let direction = if matches!(kind, TcAttachType::Ingress) { "ingress" } else { "egress" };
    tc(&[&["filter", "show", "dev", interface, direction], more].concat())
}

/// Id of the program in our filter's place, read with tc(8): aya has no query for clsact.
fn installed(interface: &str, kind: TcAttachType) -> Option<u32> {
    let filters = filters(interface, kind, &["prio", &PRIORITY.to_string()]).ok()?;
    let ours = |filter: &&Value| {
        let name = filter.pointer("/options/bpf_name").and_then(Value::as_str).unwrap_or_default();
        [INGRESS, GUARD, WAN_INGRESS].iter().any(|program| name.starts_with(program))
    };
    filters
        .iter()
        .filter(ours)
        .find_map(|filter| filter.pointer("/options/prog/id")?.as_u64())
        .and_then(|id| u32::try_from(id).ok())
}

/// There is no pin that tells where filters were put: every interface with a clsact is looked at.
pub(super) fn prune(want: &BTreeMap<String, Attachment>) -> Result<(), std::io::Error> {
    let qdiscs = tc(&["qdisc", "show"])?;
    let clsact = qdiscs.iter().filter(|qdisc| qdisc["kind"] == "clsact");
    for interface in clsact.filter_map(|qdisc| qdisc["dev"].as_str()) {
        for kind in [TcAttachType::Ingress, TcAttachType::Egress] {
            let is_wanted = want
                .get(interface)
                .is_some_and(|attachment| programs_of(*attachment).any(|(_, wanted)| wanted == kind));
            if is_wanted || installed(interface, kind).is_none() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_with_a_lower_preference_come_first() {
        // tc lists each filter once as its chain and once with its handle.
        let shown = r#"[
            {"protocol":"all","pref":1,"kind":"matchall","chain":0},
            {"protocol":"all","pref":1,"kind":"matchall","chain":0,"options":{"handle":1}},
            {"protocol":"all","pref":71,"kind":"bpf","chain":0,"options":{"handle":"0x47","bpf_name":"gw_guard"}},
            {"protocol":"all","pref":99,"kind":"matchall","chain":0}]"#;
        let filters: Vec<Value> = serde_json::from_str(shown).unwrap();
        assert_eq!(foreign_before(&filters), 1);
        assert_eq!(foreign_before(&filters[2..]), 0);
    }
}
