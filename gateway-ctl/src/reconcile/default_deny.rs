//! Default deny: nothing is forwarded from the LAN.
//!
//! It applies at early boot, before the first plan, and if the store cannot be read. Two independent mechanisms
//! enforce it: a forward chain that drops everything, and ip rules that reject traffic from the LAN. The rules match
//! interfaces by name, so they may exist before the interface. An ordinary run takes both over: it adds its own rules
//! before it removes these.
//!
//! Decision 0007 says why.

use std::collections::BTreeMap;

use gateway_core::plan::{Family, RuleAction, RuleKey, RuleValue, names};

use crate::os::nft::{self, Nft};
use crate::os::rule::Rules;
use crate::os::{Backend, LastApplied, Netlink, Outcome, SyncPass, sync};

/// Treatment of an existing rule set of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keep it until the first plan, if it is unchanged since the last run. Used after a restart.
    Keep,
    /// Replace it: all existing permissions end.
    Replace,
}

/// Installs default deny in the network namespace of the calling thread. Needs a tokio runtime.
pub async fn install_default_deny(lan: &[String], existing: Existing) -> Outcome {
    let mut outcome = block_rules(lan).await;
    outcome.absorb(block_forwarding(lan, existing).await);
    outcome
}

async fn block_forwarding(lan: &[String], existing: Existing) -> Outcome {
    let nft = Nft::block(lan);
    let live = match nft.read().await {
        Ok(have) => have.values().any(nft::InstalledTable::is_live),
        // An unreadable table is replaced.
        Err(_) => false,
    };
    if live && existing == Existing::Keep {
        return Outcome::default();
    }
    sync(&nft, &nft.want(), &mut LastApplied::default()).await
}

async fn block_rules(lan: &[String]) -> Outcome {
    let netlink = match Netlink::open() {
        Ok(netlink) => netlink,
        Err(error) => return Outcome::failure(Rules::NAME, &error),
    };
    let rules = Rules::new(netlink);
    let want = Rules::want(&wanted_rules(lan));
    let mut memory = LastApplied::default();
    let mut pass = SyncPass::open(&rules, &want, &memory).await;
    // Remove nothing: other rules may be in force.
    pass.put().await;
    pass.close(&mut memory)
}

fn wanted_rules(lan: &[String]) -> BTreeMap<RuleKey, RuleValue> {
    let mut rules = BTreeMap::new();
    for (interface, priority) in lan.iter().zip((names::RULE_FIRST..=names::RULE_LAST).rev()) {
        for family in [Family::V4, Family::V6] {
            let value = RuleValue {
                source: None,
                fwmark: None,
                input_interface: Some(interface.clone()),
                output_interface: None,
                action: RuleAction::Prohibit,
                suppress_prefix_length: None,
            };
            rules.insert(RuleKey { family, priority }, value);
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lan_interface_is_refused_in_both_families_after_all_other_rules() {
        let rules = wanted_rules(&["lan0".to_owned(), "lan1".to_owned()]);
        assert_eq!(rules.len(), 4);
        for (key, value) in &rules {
            assert!(key.priority >= names::RULE_LAST - 1);
            assert_eq!(value.action, RuleAction::Prohibit);
        }
    }
}
