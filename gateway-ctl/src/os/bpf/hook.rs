//! Hooks of the programs, and their position there.

use aya::programs::TcAttachType;
use gateway_core::plan::Attachment;

use super::programs::{GUARD, INGRESS, LAN_EGRESS, WAN_INGRESS};

/// A program and its hook on an interface.
pub(super) struct Hook<'a> {
    pub interface: &'a str,
    pub index: u32,
    pub program: &'static str,
    pub kind: TcAttachType,
}

/// Position of a program in the list of its hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    First,
    /// Number of foreign programs that come before it.
    Behind(usize),
    /// Attached, but by a link that ends with its last descriptor.
    Unpinned,
    Detached,
}

impl std::fmt::Display for Placement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Placement::First => f.write_str("first"),
            Placement::Behind(count) => write!(f, "behind {count} other programs"),
            Placement::Unpinned => f.write_str("not pinned"),
            Placement::Detached => f.write_str("detached"),
        }
    }
}

/// Returns all programs of an attachment and their directions, in the order of attachment.
pub(super) fn programs_of(attachment: Attachment) -> impl Iterator<Item = (&'static str, TcAttachType)> {
    let programs: &[(&str, TcAttachType)] = match attachment {
        Attachment::Ingress => &[(INGRESS, TcAttachType::Ingress), (LAN_EGRESS, TcAttachType::Egress)],
        Attachment::Guard => &[(GUARD, TcAttachType::Egress), (WAN_INGRESS, TcAttachType::Ingress)],
    };
    programs.iter().copied()
}
