//! XDP of the fast path: the interfaces that use it, and the obstacles on the others.

use std::collections::BTreeMap;
use std::fmt;

use gateway_model::settings::bootstrap::XdpMode;
use serde::{Deserialize, Serialize};

use crate::facts::{Link, LinkLayer};

/// XDP modes of interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XdpModes {
    /// Mode of all interfaces that are not listed.
    pub general: XdpMode,
    pub interfaces: BTreeMap<String, XdpMode>,
}

impl Default for XdpModes {
    fn default() -> Self {
        Self { general: XdpMode::Off, interfaces: BTreeMap::new() }
    }
}

impl XdpModes {
    pub fn of(&self, interface: &str) -> XdpMode {
        self.interfaces.get(interface).copied().unwrap_or(self.general)
    }
}

/// Abilities of a driver (`enum netdev_xdp_act` of linux/netdev.h).
pub mod abilities {
    /// It runs programs.
    pub const BASIC: u64 = 1;
    /// It sends what a program redirects to another interface.
    pub(crate) const REDIRECT: u64 = 2;
    /// It accepts frames that another interface redirects to it.
    pub(crate) const TRANSMIT: u64 = 4;
}

/// State of an interface, as far as it decides on XDP.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    pub link: &'a Link,
    /// VLAN interfaces are on it. Hardware and veth keep the tag outside of the frame, where XDP does not see it.
    pub has_vlans: bool,
    /// Kind of a queueing discipline that the kernel did not install by itself.
    pub shaper: Option<&'a str>,
    /// Bits of [`abilities`], `None` if the kernel does not report them.
    pub abilities: Option<u64>,
}

/// Obstacle to XDP on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The setting.
    Off,
    FastPathOff,
    /// A packet capture reads it.
    Captured,
    Absent,
    NoEthernet,
    /// The mode is `auto`, and the interface is virtual.
    Virtual(String),
    Vlans,
    Shaped(String),
    NoDriverSupport,
    UnknownSupport,
    /// The program is attached, but the interface accepts no frames of others.
    NoTransmit,
    /// The kernel refused the program or the attachment.
    Refused(String),
}

impl Obstacle {
    /// Returns the value of the API.
    pub const fn code(&self) -> &'static str {
        match self {
            Obstacle::Off => "off",
            Obstacle::FastPathOff => "fast_path_off",
            Obstacle::Captured => "captured",
            Obstacle::Absent => "absent",
            Obstacle::NoEthernet => "no_ethernet",
            Obstacle::Virtual(_) => "virtual",
            Obstacle::Vlans => "vlans",
            Obstacle::Shaped(_) => "shaped",
            Obstacle::NoDriverSupport => "no_driver_support",
            Obstacle::UnknownSupport => "unknown_support",
            Obstacle::NoTransmit => "no_transmit",
            Obstacle::Refused(_) => "refused",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::Off => f.write_str("XDP is off for this interface."),
            Obstacle::FastPathOff => f.write_str("The fast path is off."),
            Obstacle::Captured => f.write_str("A packet capture reads it, and would not see what XDP forwards."),
            Obstacle::Absent => f.write_str("The interface does not exist."),
            Obstacle::NoEthernet => f.write_str("The interface has no Ethernet frames."),
            Obstacle::Virtual(kind) => {
                write!(f, "The interface is virtual ({kind}): the mode auto leaves it out.")
            }
            Obstacle::Vlans => f.write_str("VLAN interfaces are on it, and XDP does not see their tags."),
            Obstacle::Shaped(kind) => {
                write!(f, "The queueing discipline {kind} shapes its traffic, and XDP would pass it by.")
            }
            Obstacle::NoDriverSupport => f.write_str("The driver does not support native XDP."),
            Obstacle::UnknownSupport => {
                f.write_str("The kernel does not report what the driver supports (Linux 6.3 does).")
            }
            Obstacle::NoTransmit => f.write_str(
                "The driver does not send frames of other interfaces. A veth needs GRO or an XDP program on its peer.",
            ),
            Obstacle::Refused(error) => write!(f, "The kernel refused: {error}."),
        }
    }
}

impl Candidate<'_> {
    /// Decides whether the program is attached.
    pub fn attach(&self, mode: XdpMode) -> Result<(), Obstacle> {
        const NEEDED: u64 = abilities::BASIC | abilities::REDIRECT;
        let Candidate { link, has_vlans, shaper, abilities } = *self;
        if mode == XdpMode::Off {
            return Err(Obstacle::Off);
        }
        if link.link_layer != LinkLayer::Ethernet || link.mac.is_none() {
            return Err(Obstacle::NoEthernet);
        }
        if has_vlans {
            return Err(Obstacle::Vlans);
        }
        if mode == XdpMode::Auto {
            if !link.kind.is_empty() {
                return Err(Obstacle::Virtual(link.kind.clone()));
            }
            if let Some(kind) = shaper {
                return Err(Obstacle::Shaped(kind.to_owned()));
            }
        }
        match abilities {
            None => Err(Obstacle::UnknownSupport),
            Some(bits) if bits & NEEDED != NEEDED => Err(Obstacle::NoDriverSupport),
            Some(_) => Ok(()),
        }
    }

    /// Decides whether frames of other interfaces may leave by it, once the program is attached.
    pub fn send(&self) -> Result<(), Obstacle> {
        if let Some(kind) = self.shaper {
            return Err(Obstacle::Shaped(kind.to_owned()));
        }
        if self.abilities.is_some_and(|bits| bits & abilities::TRANSMIT != 0) {
            Ok(())
        } else {
            Err(Obstacle::NoTransmit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u64 = abilities::BASIC | abilities::REDIRECT | abilities::TRANSMIT;

    fn link(kind: &str) -> Link {
        Link { index: 3, up: true, mac: Some([2; 6]), mtu: 1500, kind: kind.into(), ..Link::default() }
    }

    fn candidate(link: &Link) -> Candidate<'_> {
        Candidate { link, has_vlans: false, shaper: None, abilities: Some(ALL) }
    }

    #[test]
    fn an_interface_has_its_own_mode_or_the_general_one() {
        let modes = XdpModes { general: XdpMode::Auto, interfaces: [("eth2".into(), XdpMode::Off)].into() };
        assert_eq!((modes.of("eth2"), modes.of("eth1")), (XdpMode::Off, XdpMode::Auto));
        assert_eq!(XdpModes::default().of("eth1"), XdpMode::Off);
    }

    #[test]
    fn auto_takes_physical_interfaces_without_shaping() {
        let (physical, virtual_link) = (link(""), link("veth"));
        assert_eq!(candidate(&physical).attach(XdpMode::Auto), Ok(()));
        assert_eq!(candidate(&physical).attach(XdpMode::Off), Err(Obstacle::Off));
        for kind in ["veth", "bridge", "vlan", "tun", "bond"] {
            let link = link(kind);
            assert_eq!(candidate(&link).attach(XdpMode::Auto), Err(Obstacle::Virtual(kind.into())));
        }
        assert_eq!(candidate(&virtual_link).attach(XdpMode::Native), Ok(()));
        let shaped = Candidate { shaper: Some("cake"), ..candidate(&physical) };
        assert_eq!(shaped.attach(XdpMode::Auto), Err(Obstacle::Shaped("cake".into())));
        assert_eq!(shaped.attach(XdpMode::Native), Ok(()));
        assert_eq!(shaped.send(), Err(Obstacle::Shaped("cake".into())), "the queue is not passed by");
    }

    #[test]
    fn no_mode_attaches_where_packets_would_change() {
        let physical = link("");
        let tun = Link { link_layer: LinkLayer::Other, ..link("tun") };
        for mode in [XdpMode::Auto, XdpMode::Native] {
            assert_eq!(candidate(&tun).attach(mode), Err(Obstacle::NoEthernet));
            let trunk = Candidate { has_vlans: true, ..candidate(&physical) };
            assert_eq!(trunk.attach(mode), Err(Obstacle::Vlans));
            let old = Candidate { abilities: None, ..candidate(&physical) };
            assert_eq!(old.attach(mode), Err(Obstacle::UnknownSupport));
            let none = Candidate { abilities: Some(0), ..candidate(&physical) };
            assert_eq!(none.attach(mode), Err(Obstacle::NoDriverSupport));
        }
        let receiver = Candidate { abilities: Some(ALL ^ abilities::TRANSMIT), ..candidate(&physical) };
        assert_eq!(receiver.attach(XdpMode::Auto), Ok(()));
        assert_eq!(receiver.send(), Err(Obstacle::NoTransmit));
    }
}
