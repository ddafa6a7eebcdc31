//! Egress of connections that the gateway itself makes, as objects and settings name it.

use crate::id::IfName;
use crate::problem::{Problems, code};

/// Name of the default route of the gateway itself.
pub const AUTO: &str = "auto";

/// Reports a name that is neither `auto` nor one of a tunnel or of an uplink.
pub(crate) fn check_egress(
    path: &str,
    egress: &str,
    is_tunnel: impl Fn(&str) -> bool,
    problems: &mut Problems,
) {
    if egress == AUTO || is_tunnel(egress) {
        return;
    }
    match egress.parse::<IfName>() {
        Ok(name) => problems.warn(path, format!("There is no tunnel {name}; it is taken for an uplink.")),
        Err(_) => {
            let message = "Expected auto, or the name of a tunnel or of an uplink.";
            problems.add(code::FORMAT, path, message);
        }
    }
}
