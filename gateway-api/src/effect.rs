//! Effect of an endpoint. It determines which component writes the audit entry.

/// Effect of an endpoint. It determines which component writes the audit entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Changes nothing.
    Reads,
    /// Changes stored objects: the entry is written inside the store's transaction.
    Stores(Audit),
    /// Changes something else: the dispatcher writes the entry with the outcome.
    Acts(Audit),
}

impl Effect {
    pub fn audit(self) -> Option<Audit> {
        match self {
            Effect::Reads => None,
            Effect::Stores(audit) | Effect::Acts(audit) => Some(audit),
        }
    }
}

/// Action and resource type of an endpoint's audit entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Audit action, such as `create_routing_policy`.
    pub action: &'static str,
    /// Resource type, such as `routing_policy`.
    pub resource_type: &'static str,
}
