//! Counter of clear DNS queries at the end of the uplink, for any sender and any case of the names. The gateway's own probes
//! of an upstream ask for the name servers of the root, and are counted apart.

use anyhow::{Context, Result};
use gateway_tests::netns::Namespace;

const TABLE: &str = "table inet clear {\n counter questions { }\n counter probes { }\n chain come {\n \
                     type filter hook prerouting priority -300\n \
                     iifname \"up0\" udp dport 53 @th,160,24 0x000002 counter name probes return\n \
                     iifname \"up0\" meta l4proto { tcp, udp } th dport { 53, 853 } counter name questions\n }\n}\n";

pub(super) struct Clear<'a>(&'a Namespace);

impl<'a> Clear<'a> {
    /// Starts the counter.
    pub(super) fn start(internet: &'a Namespace) -> Result<Clear<'a>> {
        internet.nft(TABLE)?;
        Ok(Clear(internet))
    }

    pub(super) fn of(internet: &'a Namespace) -> Clear<'a> {
        Clear(internet)
    }

    pub(super) fn count(&self) -> Result<u64> {
        let said = self.0.run("nft", &["list", "counter", "inet", "clear", "questions"])?;
        let mut words = said.split_whitespace().skip_while(|word| *word != "packets").skip(1);
        words.next().and_then(|word| word.parse().ok()).with_context(|| format!("no count in {said}"))
    }
}
