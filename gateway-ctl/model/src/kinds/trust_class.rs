//! Trust classes: how much a device may do on the LAN and beyond.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::privacy_class::PrivacyClass;
use super::profile::Profile;
use crate::edit::EditError;
use crate::id_or_name::{check_reference, keep_builtin, keep_name, reference};
use crate::problem::{Problems, code};
use crate::references::{Hold, Ref};
use crate::resource::{Keys, Meta, Resource};
use crate::state::State;
use crate::validated::{check_free_text, check_name, text_enum};

text_enum! {
    /// Local networks that a device may reach.
    pub enum LanAccess {
        None = "none",
        /// Only the network it is in.
        Segment = "segment",
        Full = "full",
    }
}

text_enum! {
    /// Internet access of a device.
    pub enum Internet {
        None = "none",
        /// Only by policies; traffic that no policy matches is rejected.
        Policy = "policy",
        /// Traffic that no policy matches takes the default route.
        Direct = "direct",
    }
}

/// A trust class. Devices and groups name it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TrustClass {
    #[serde(flatten, skip_deserializing)]
    pub meta: Meta,
    pub name: String,
    pub description: String,
    /// 0 (none) to 100 (full).
    pub level: u8,
    pub lan_access: LanAccess,
    pub internet: Internet,
    /// May open the API, the dashboard and SSH of the gateway. Enforced as soon as a device has a class that may.
    pub admin_access: bool,
    /// May resolve names of the LAN: of hosts, local zones and private addresses.
    pub dns_local: bool,
    /// May see and offer services of other segments by mDNS. Nothing relays mDNS between segments yet.
    pub mdns: bool,
    /// Id or name of a route profile for devices of the class without one, for traffic that no policy matches.
    pub default_profile: Option<String>,
    /// Id or name of a privacy class for devices of the class.
    pub privacy_class: Option<String>,
    /// Came with the service: cannot be deleted or renamed.
    #[schemars(extend("readOnly" = true))]
    pub builtin: bool,
}

impl Default for TrustClass {
    fn default() -> TrustClass {
        TrustClass {
            meta: Meta::default(),
            name: String::new(),
            description: String::new(),
            level: 50,
            lan_access: LanAccess::Full,
            internet: Internet::Direct,
            admin_access: false,
            dns_local: true,
            mdns: true,
            default_profile: None,
            privacy_class: None,
            builtin: false,
        }
    }
}

impl TrustClass {
    /// Class of devices that name none.
    pub const DEFAULT: &'static str = "standard";
    pub const QUARANTINE: &'static str = "quarantine";
}

impl Resource for TrustClass {
    const NOUN: &'static str = "trust_class";
    const COLLECTION: &'static str = "trust_classes";
    const READ_ONLY: &'static [&'static str] = &["builtin"];
    const REQUIRED: &'static [&'static str] = &["name"];

    fn label(&self) -> &str {
        &self.name
    }

    fn builtin(now: Timestamp) -> Vec<TrustClass> {
        builtin(now)
    }

    fn alias(&self) -> Option<&str> {
        Some(&self.name)
    }

    fn validate(&self, state: &State, problems: &mut Problems) {
        check_name("name", &self.name, problems);
        check_free_text("description", &self.description, 1000, problems);
        if self.level > 100 {
            problems.add(code::RANGE, "level", "Must be from 0 to 100.");
        }
        check_reference::<Profile>("default_profile", &self.default_profile, state, problems);
        check_reference::<PrivacyClass>("privacy_class", &self.privacy_class, state, problems);
    }

    fn admit(&self, before: Option<&Self>, state: &State) -> Result<(), EditError> {
        keep_name(self, before, before.is_some_and(|before| before.builtin), state)
    }

    fn admit_delete(&self, _state: &State) -> Result<(), EditError> {
        keep_builtin(self, self.builtin)
    }

    fn refs(&self) -> Vec<Ref> {
        let profile = reference::<Profile>("default_profile", &self.default_profile, Hold::Firm);
        let class = reference::<PrivacyClass>("privacy_class", &self.privacy_class, Hold::Firm);
        profile.into_iter().chain(class).collect()
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", self.name.as_str());
    }

    fn carry_over(input: &mut Map<String, Value>, before: &Self) {
        input.insert("builtin".into(), before.builtin.into());
    }
}

/// The classes every installation has.
fn builtin(now: Timestamp) -> Vec<TrustClass> {
    let class =
        |slot: u32, name: &str, description: &str, level: u8, lan_access: LanAccess, internet: Internet| {
            let local = lan_access == LanAccess::Full;
            TrustClass {
                meta: Meta::builtin(0, slot, now),
                name: name.to_owned(),
                description: description.to_owned(),
                level,
                lan_access,
                internet,
                admin_access: level >= 80,
                dns_local: level > 0,
                mdns: local,
                default_profile: None,
                privacy_class: None,
                builtin: true,
            }
        };
    vec![
        class(
            1,
            "trusted",
            "Devices of the household or the staff that manage the gateway.",
            80,
            LanAccess::Full,
            Internet::Direct,
        ),
        class(
            2,
            TrustClass::DEFAULT,
            "Devices nothing else is known of.",
            50,
            LanAccess::Full,
            Internet::Direct,
        ),
        class(
            3,
            "iot",
            "Appliances: the internet, but no other device.",
            30,
            LanAccess::None,
            Internet::Direct,
        ),
        class(
            4,
            "guest",
            "Visitors: the internet, but no other device.",
            20,
            LanAccess::None,
            Internet::Direct,
        ),
        class(5, TrustClass::QUARANTINE, "Nothing passes.", 0, LanAccess::None, Internet::None),
    ]
}
