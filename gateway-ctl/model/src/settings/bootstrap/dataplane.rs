//! Dataplane: how packets of established flows leave.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::id::IfName;
use crate::problem::{Problems, code};
use crate::validated::text_enum;

text_enum! {
    /// Fast path of established flows.
    #[derive(Default)]
    pub enum FastPathMode {
        /// Packets of established flows pass the IP stack by.
        #[default]
        On = "on",
        /// All packets go through the IP stack.
        Off = "off",
    }
}

text_enum! {
    /// Use of XDP by the fast path.
    #[derive(Default)]
    pub enum XdpMode {
        /// On physical interfaces whose driver supports it, without traffic shaping.
        Auto = "auto",
        #[default]
        Off = "off",
        /// On any interface whose driver supports it.
        Native = "native",
    }
}

/// XDP mode of one interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpInterface {
    pub interface: IfName,
    pub mode: XdpMode,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dataplane {
    pub fast_path: FastPathMode,
    pub xdp: XdpMode,
    /// Interfaces with another mode than `xdp`.
    pub xdp_interfaces: Vec<XdpInterface>,
    /// Maximum number of entries in the conntrack table. The kernel's maximum is raised to it; a lower one of the kernel
    /// counts. LAN hosts are cut to their fair shares before the table is full.
    pub conntrack_max: usize,
}

impl Default for Dataplane {
    fn default() -> Self {
        Self {
            fast_path: FastPathMode::default(),
            xdp: XdpMode::default(),
            xdp_interfaces: Vec::new(),
            conntrack_max: 262_144,
        }
    }
}

const MAX_INTERFACES: usize = 128;
/// An entry takes some 300 bytes of memory.
const CONNTRACK_RANGE: RangeInclusive<usize> = 1024..=16_777_216;

impl Dataplane {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if !CONNTRACK_RANGE.contains(&self.conntrack_max) {
            let message = format!("Must be from {} to {}.", CONNTRACK_RANGE.start(), CONNTRACK_RANGE.end());
            problems.add(code::RANGE, "dataplane.conntrack_max", message);
        }
        let list = &self.xdp_interfaces;
        if list.len() > MAX_INTERFACES {
            problems.add(code::RANGE, "dataplane.xdp_interfaces", format!("At most {MAX_INTERFACES}."));
        }
        for (index, XdpInterface { interface, .. }) in list.iter().enumerate() {
            if list[..index].iter().any(|other| other.interface == *interface) {
                let path = format!("dataplane.xdp_interfaces[{index}].interface");
                problems.add(code::DUPLICATE, path, format!("{interface} is given twice."));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    #[test]
    fn an_interface_has_one_mode() {
        let text =
            "dataplane: { fast_path: 'on', xdp: auto, xdp_interfaces: [{ interface: eth2, mode: native }] }";
        let parsed = parse(text).expect("valid");
        assert_eq!(parsed.dataplane.xdp_interfaces.len(), 1);
        for (text, path) in [
            ("dataplane: { xdp: generic }", "dataplane.xdp"),
            ("dataplane: { conntrack_max: 1000 }", "dataplane.conntrack_max"),
            (
                "dataplane: { xdp_interfaces: [{ interface: a, mode: auto }, { interface: a, mode: native }] }",
                "dataplane.xdp_interfaces[1].interface",
            ),
            ("dataplane: { xdp_interfaces: [{ interface: a }] }", "dataplane.xdp_interfaces[0].mode"),
        ] {
            let errors = parse(text).expect_err("refused");
            assert_eq!(errors.iter().map(|error| error.path.as_str()).collect::<Vec<_>>(), [path]);
        }
    }
}
