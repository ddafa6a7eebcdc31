//! References of groups of settings to objects, as the state finds them. The groups themselves need the state, so that it
//! cannot ask them.

/// Text in a group that names an object. The reference is loose: without the object, the group has no effect until it names
/// another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SettingReference {
    /// Key and noun of the group.
    pub key: &'static str,
    pub noun: &'static str,
    pub field: &'static str,
    /// Noun of the kind that it names.
    pub target: &'static str,
}

const fn egress(key: &'static str, noun: &'static str) -> SettingReference {
    SettingReference { key, noun, field: "egress", target: "tunnel" }
}

pub(crate) const SETTING_REFERENCES: &[SettingReference] = &[
    egress("alerts.email", "alert_email"),
    egress("alerts.mqtt", "alert_mqtt"),
    egress("alerts.webhook", "alert_webhook"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Tunnel;
    use crate::resource::Resource;
    use crate::settings::group::GROUPS;
    use crate::state::State;

    #[test]
    fn each_egress_of_a_group_is_a_reference() {
        let state = State::default();
        let with_egress = GROUPS.iter().filter(|group| group.shown(&state).get("egress").is_some());
        let expected: Vec<SettingReference> =
            with_egress.map(|group| egress(group.key, group.noun)).collect();
        assert_eq!(SETTING_REFERENCES, expected);
        assert!(SETTING_REFERENCES.iter().all(|reference| reference.target == Tunnel::NOUN));
    }
}
