//! Capabilities of the contract that this version lacks, wholly or in part, and the sentences about them.
//!
//! Each row has a capability's standing, the clause that completes "this version …", and its name in "it needs …".
//! What takes a setting for it warns by `Problems::lacks`; rows of the API that need it answer 501. A capability that
//! lands gets the standing `InForce`: its warnings end.

/// State of a capability in this version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Missing,
    /// Partly in force.
    Partial,
    InForce,
}

macro_rules! capabilities {
    ($($name:ident: $standing:ident, $clause:literal, $needs:literal;)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Capability {
            $($name,)+
        }

        impl Capability {
            pub const ALL: &[Capability] = &[$(Capability::$name,)+];

            pub const fn standing(self) -> Standing {
                match self {
                    $(Capability::$name => Standing::$standing,)+
                }
            }

            /// Clause about the missing part: `this version takes the size of packets from the tunnel`.
            pub const fn clause(self) -> &'static str {
                match self {
                    $(Capability::$name => concat!("this version ", $clause),)+
                }
            }

            /// Returns what an operation needs that is not built: `the size of packets of a profile, which this version does not have`.
            pub const fn needs(self) -> &'static str {
                match self {
                    $(Capability::$name => concat!($needs, ", which this version does not have"),)+
                }
            }
        }
    };
}

capabilities! {
    Assistant: InForce, "has no assistant", "the assistant";
    Bluetooth: InForce, "has no Bluetooth", "the Bluetooth service";
    Federation: InForce, "does not sync with other gateways", "federation";
    ProfileMtu: Missing, "takes the size of packets from the tunnel", "the size of packets of a profile";
    SegmentIsolation: Missing, "does not see frames between hosts of one cable", "isolation in segments";
}

impl Capability {
    /// Warning of a field, or of a whole object (`path` is empty), that is stored for it. None once it is in force.
    pub fn warning(self, path: &str) -> Option<String> {
        let clause = self.clause();
        match (self.standing(), path) {
            (Standing::InForce, _) => None,
            (Standing::Partial, _) => Some(format!("Stored, with effect in part: {clause}.")),
            (Standing::Missing, "") => Some(format!("Stored, but without effect: {clause}.")),
            (Standing::Missing, _) => Some(format!("Stored without effect: {clause}.")),
        }
    }
}

/// Summary of an operation that is not built.
pub const NOT_SUPPORTED: &str = "Not supported by this version";

/// Message of a value that the contract knows and this version refuses.
pub fn refusal(what: impl std::fmt::Display) -> String {
    format!("{what} is not supported by this version.")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn capability_texts_are_unique() {
        let all = Capability::ALL;
        let clauses: BTreeSet<_> = all.iter().map(|it| it.clause()).collect();
        let needs: BTreeSet<_> = all.iter().map(|it| it.needs()).collect();
        assert_eq!((clauses.len(), needs.len()), (all.len(), all.len()));
    }

    #[test]
    fn warnings_tell_objects_from_fields_and_end_with_what_is_in_force() {
        for capability in Capability::ALL {
            let ends = capability.standing() == Standing::InForce;
            assert_eq!(capability.warning("").is_none(), ends, "{capability:?}");
            assert_eq!(capability.warning("field").is_none(), ends, "{capability:?}");
        }
        let warning = |path| Capability::ProfileMtu.warning(path).unwrap();
        let clause = "this version takes the size of packets from the tunnel.";
        assert_eq!(warning(""), format!("Stored, but without effect: {clause}"));
        assert_eq!(warning("mtu"), format!("Stored without effect: {clause}"));
    }
}
