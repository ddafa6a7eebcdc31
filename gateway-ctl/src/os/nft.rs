//! The gateway's nftables table `inet gateway`, replaced as a whole in one transaction.
//!
//! It is the second line of defence behind the policy decisions, which BPF makes. It drops forwarded packets unless
//! they come from the LAN and leave through an egress. It masquerades sources and blocks unsolicited input from
//! outside. The gateway does not read tables of other programs.
//!
//! A seal identifies the installed rule set. The seal is a rule that matches no packet. Its comment holds the
//! fingerprint of the applied text and the digest of the resulting listing. An outsider who adds, removes or changes
//! a rule changes the listing. An outsider who replaces the table removes the seal.

mod error;
mod program;
mod ruleset;

use std::collections::BTreeMap;

use gateway_core::hexadecimal::hex;
use gateway_core::plan::{NftRuleset, names};
use sha2::{Digest, Sha256};

pub use error::Error;
pub use ruleset::{render, render_block};

use super::backend::{ABSENT, Backend};

/// A rule set to install.
#[derive(Clone, Debug)]
pub struct Nft {
    shape: &'static str,
    text: String,
}

/// State of the table in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledTable {
    /// Identifies the applied text. `None` if there is no seal.
    fingerprint: Option<String>,
    /// True if the table is unchanged since the gateway's transaction.
    intact: bool,
}

const SHAPE_GATEWAY: &str = "gateway";
const SHAPE_BLOCK: &str = "block";
const TABLE: &str = names::NFT_TABLE;

impl Nft {
    pub fn gateway(ruleset: &NftRuleset) -> Result<Self, Error> {
        Ok(Self { shape: SHAPE_GATEWAY, text: render(ruleset)? })
    }

    /// Returns the default-deny rule set. It forwards nothing and accepts input from the LAN and loopback only.
    pub fn block(lan: &[String]) -> Self {
        Self { shape: SHAPE_BLOCK, text: render_block(lan) }
    }

    /// Returns the wanted state of the table.
    pub fn want(&self) -> BTreeMap<(), InstalledTable> {
        BTreeMap::from([((), InstalledTable { fingerprint: Some(self.fingerprint()), intact: true })])
    }

    fn fingerprint(&self) -> String {
        format!("{}-{}", self.shape, digest(&self.text))
    }

    /// Returns the text of one transaction. If the table is unchanged, the transaction keeps its chains and exchanges
    /// only the rules. A recreated base chain drops packets between its registration and the commit.
    fn script(&self, have: Option<&InstalledTable>) -> String {
        let text = &self.text;
        let same_chains = have.is_some_and(|have| have.intact && have.shape() == Some(self.shape));
        let clear = if same_chains { "flush" } else { "delete" };
        format!("add table inet {TABLE}\n{clear} table inet {TABLE}\n{text}")
    }
}

impl InstalledTable {
    fn shape(&self) -> Option<&str> {
        self.fingerprint.as_deref()?.split('-').next()
    }

    /// Reports whether this is an unchanged rule set of a running gateway.
    pub fn is_live(&self) -> bool {
        self.intact && self.shape() == Some(SHAPE_GATEWAY)
    }

    fn parse(listing: &str) -> Self {
        let seal = listing.lines().find_map(|line| Some((line, seal_of(line)?)));
        let Some((line, seal)) = seal else { return Self { fingerprint: None, intact: false } };
        let unsealed = listing.replacen(&format!("{line}\n"), "", 1);
        let mut words = seal.split(' ');
        let fingerprint = words.next().map(str::to_owned);
        Self { fingerprint, intact: words.next() == Some(&digest(&unsealed)) }
    }
}

impl Backend for Nft {
    type Key = ();
    type Value = InstalledTable;
    type Error = Error;

    const NAME: &'static str = "nft";
    const REMOVE_FIRST: bool = false;

    async fn read(&self) -> Result<BTreeMap<(), InstalledTable>, Error> {
        let listing = program::list(TABLE).await?;
        Ok(listing.iter().map(|listing| ((), InstalledTable::parse(listing))).collect())
    }

    async fn put(
        &self,
        _key: &(),
        want: &InstalledTable,
        have: Option<&InstalledTable>,
    ) -> Result<(), Error> {
        let fingerprint = self.fingerprint();
        if want.fingerprint.as_ref() != Some(&fingerprint) {
            return Err(Error::Mismatch);
        }
        program::apply("install the rule set", &self.script(have)).await?;
        let listing = program::list(TABLE)
            .await?
            .ok_or(Error::Refused { action: "list the rule set", message: "it is gone again".to_owned() })?;
        let seal = format!("{fingerprint} {}", digest(&listing));
        program::apply(
            "seal the rule set",
            &format!("add rule inet {TABLE} fingerprint return comment \"{seal}\"\n"),
        )
        .await
    }

    async fn remove(&self, _key: &(), _have: &InstalledTable) -> Result<(), Error> {
        program::apply("remove the table", &format!("add table inet {TABLE}\ndelete table inet {TABLE}\n"))
            .await
    }

    fn resource(_key: &()) -> String {
        format!("table inet {TABLE}")
    }

    fn differences(
        expected: Option<&InstalledTable>,
        actual: Option<&InstalledTable>,
    ) -> Vec<(&'static str, String, String)> {
        let show = |value: Option<&InstalledTable>| match value {
            None => ABSENT.to_owned(),
            Some(InstalledTable { fingerprint: None, .. }) => "not the gateway's".to_owned(),
            Some(InstalledTable { fingerprint: Some(fingerprint), intact: true }) => fingerprint.clone(),
            Some(InstalledTable { fingerprint: Some(fingerprint), intact: false }) => {
                format!("{fingerprint}, altered")
            }
        };
        vec![("rules", show(expected), show(actual))]
    }
}

/// Returns the comment of a seal.
fn seal_of(line: &str) -> Option<&str> {
    line.trim().strip_prefix("return comment \"")?.strip_suffix('"')
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text)[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(fingerprint: &str, listing: &str) -> String {
        let seal = format!("\t\treturn comment \"{fingerprint} {}\"\n", digest(listing));
        listing.replacen("chain fingerprint {\n", &format!("chain fingerprint {{\n{seal}"), 1)
    }

    const LISTING: &str =
        "table inet gateway {\n\tchain forward {\n\t\taccept\n\t}\n\n\tchain fingerprint {\n\t}\n}\n";

    #[test]
    fn a_sealed_listing_is_intact() {
        let installed = InstalledTable::parse(&sealed("gateway-1", LISTING));
        assert_eq!(installed, InstalledTable { fingerprint: Some("gateway-1".to_owned()), intact: true });
        assert!(installed.is_live());
    }

    #[test]
    fn any_change_breaks_the_seal() {
        let sealed = sealed("gateway-1", LISTING);
        for changed in [
            sealed.replace("accept", "drop"),
            sealed.replace("\t\taccept\n", ""),
            sealed.replace("\t\taccept\n", "\t\taccept\n\t\taccept\n"),
            sealed.replace("table inet gateway {\n", "table inet gateway {\n\tflags dormant\n\n"),
        ] {
            assert!(!InstalledTable::parse(&changed).intact, "{changed}");
        }
    }

    #[test]
    fn a_table_without_a_fingerprint_is_foreign() {
        assert_eq!(InstalledTable::parse(LISTING), InstalledTable { fingerprint: None, intact: false });
    }

    #[test]
    fn the_chains_stay_only_if_they_are_the_same() {
        let gateway = Nft::gateway(&NftRuleset::default()).unwrap();
        let have = gateway.want().remove(&()).unwrap();
        let altered = InstalledTable { intact: false, ..have.clone() };
        assert!(gateway.script(Some(&have)).contains("flush table inet gateway"));
        assert!(gateway.script(Some(&altered)).contains("delete table inet gateway"));
        assert!(gateway.script(None).contains("delete table inet gateway"));
        assert!(Nft::block(&[]).script(Some(&have)).contains("delete table inet gateway"));
    }
}
