//! Programs as filters on a clsact qdisc, for kernels before 6.6.

use std::collections::{BTreeMap, BTreeSet};

use aya::programs::TcAttachType;
use aya::programs::links::Link as _;
use aya::programs::tc::{NlOptions, SchedClassifierLink, TcAttachOptions, TcHandle, qdisc_add_clsact};
use gateway_core::plan::Attachment;
use nix::net::if_::if_nameindex;

use super::Programs;
use super::filters::{self, Filter};
use super::hook::{Hook, Placement, programs_of};
use super::programs::{GUARD, INGRESS, LAN_EGRESS, WAN_INGRESS};

/// Preference of the gateway's filter on a clsact qdisc. It is fixed, so a restart finds and replaces the filter.
const PRIORITY: u16 = 71;
const HANDLE: u16 = 71;

impl Programs {
    pub(super) fn attach_clsact(
        &mut self,
        hook: &Hook<'_>,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let Hook { interface, index, program: name, kind } = *hook;
        // Fails if the qdisc already exists, which is no error.
        let _ = qdisc_add_clsact(interface);
        if filters::is_impossible(index, kind)? {
            return Err(
                "the qdisc `ingress` of another program leaves no place at egress before Linux 6.6: \
                        replace it by `clsact`, which takes the same filters"
                    .into(),
            );
        }
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
        // Dropping the link would detach the filter, which must outlive this process.
        std::mem::forget(program.take_link(id)?);
        Ok(())
    }
}

/// Returns the position of the program among the filters of an interface. Foreign filters with a lower preference
/// come before it and cannot be moved. They are reported until an administrator removes them.
pub(super) fn placement(interface: u32, kind: TcAttachType, id: u32) -> Placement {
    let Ok(filters) = filters::list(interface, kind) else { return Placement::Detached };
    if installed(&filters) != Some(id) {
        return Placement::Detached;
    }
    match foreign_before(&filters) {
        0 => Placement::First,
        count => Placement::Behind(count),
    }
}

/// Returns the number of lower preferences that have filters.
fn foreign_before(filters: &[Filter]) -> usize {
    let preferences = filters.iter().map(|filter| filter.preference);
    preferences.filter(|preference| *preference < PRIORITY).collect::<BTreeSet<_>>().len()
}

/// Returns the id of the program that the gateway's filter runs.
fn installed(filters: &[Filter]) -> Option<u32> {
    let in_place = filters.iter().filter(|filter| filter.preference == PRIORITY);
    let ours = |name: &str| {
        [INGRESS, LAN_EGRESS, GUARD, WAN_INGRESS].iter().any(|program| name.starts_with(program))
    };
    in_place
        .filter_map(|filter| filter.program.as_ref())
        .find(|program| ours(&program.name))
        .map(|program| program.id)
}

/// Removes unwanted filters. No pin records the attached filters, so this checks every interface.
pub(super) fn prune(want: &BTreeMap<String, Attachment>) -> Result<(), std::io::Error> {
    for interface in &if_nameindex()? {
        let Ok(name) = interface.name().to_str() else { continue };
        for kind in [TcAttachType::Ingress, TcAttachType::Egress] {
            let is_wanted = want
                .get(name)
                .is_some_and(|attachment| programs_of(*attachment).any(|(_, wanted)| wanted == kind));
            let index = interface.index();
            if is_wanted
                || installed(&filters::list(index, kind)?).is_none()
                || filters::is_impossible(index, kind)?
            {
                continue;
            }
            let handle = TcHandle::new(0, HANDLE);
            SchedClassifierLink::attached(name, kind, PRIORITY, handle, None)?
                .detach()
                .map_err(std::io::Error::other)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::filters::BpfProgram;
    use super::*;

    fn filter(preference: u16, program: Option<&str>) -> Filter {
        let program = program.map(|name| BpfProgram { name: name.to_owned(), id: u32::from(preference) });
        Filter { preference, program }
    }

    #[test]
    fn filters_with_a_lower_preference_come_first() {
        // The kernel reports each preference once by itself and once with its filter.
        let filters =
            [filter(1, None), filter(1, None), filter(71, None), filter(71, Some(GUARD)), filter(99, None)];
        assert_eq!(foreign_before(&filters), 1);
        assert_eq!(foreign_before(&filters[2..]), 0);
    }

    #[test]
    fn installed_program_has_our_preference_and_name() {
        assert_eq!(installed(&[filter(71, None), filter(71, Some(GUARD))]), Some(71));
        assert_eq!(installed(&[filter(70, Some(GUARD)), filter(71, Some("foreign"))]), None);
    }
}
