//! Known public resolvers that answer DNS over HTTPS: their names and addresses.
//!
//! A list of our own, from the documentation of the operators. It is what the gateway knows on its first start.

use std::collections::BTreeSet;

use ipnet::IpNet;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Maximum number of names, and of networks, that feeds can add: a part of the maps of the program, which have room for two
/// plans.
const MAX_ENTRIES: usize = 7000;

/// Resolvers that feeds list, in addition to the built-in ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedServers {
    pub names: BTreeSet<String>,
    pub networks: BTreeSet<IpNet>,
    /// Time at which the newest feed was downloaded.
    pub updated: Option<Timestamp>,
}

impl FeedServers {
    /// Adds a name. Returns false if there is no room.
    pub fn add_name(&mut self, name: String) -> bool {
        self.names.len() < MAX_ENTRIES && {
            self.names.insert(name);
            true
        }
    }

    /// Adds a network. Returns false if there is no room.
    pub fn add_network(&mut self, network: IpNet) -> bool {
        self.networks.len() < MAX_ENTRIES && {
            self.networks.insert(network.trunc());
            true
        }
    }

    /// Adds the entries of another feed, as far as there is room.
    pub fn extend(&mut self, other: &FeedServers) {
        for name in &other.names {
            self.add_name(name.clone());
        }
        for network in &other.networks {
            self.add_network(*network);
        }
    }
}

/// Returns the addresses and networks of the resolvers.
pub fn networks() -> impl Iterator<Item = IpNet> {
    ADDRESSES.iter().filter_map(|text| match text.parse() {
        Ok(network) => Some(network),
        Err(_) => text.parse::<std::net::IpAddr>().ok().map(IpNet::from),
    })
}

/// Names of the resolvers; the names below them belong to them, too.
pub const NAMES: &[&str] = &[
    "adblock.dns.mullvad.net",
    "adfree.usableprivacy.net",
    "adult-filter-dns.cleanbrowsing.org",
    "all.dns.mullvad.net",
    "anycast.uncensoreddns.org",
    "asia.dnscepat.id",
    "base.dns.mullvad.net",
    "basic.rethinkdns.com",
    "canadianshield.cira.ca",
    "child-noads.joindns4.eu",
    "child.joindns4.eu",
    "chrome.cloudflare-dns.com",
    "cloudflare-dns.com",
    "common.dot.dns.yandex.net",
    "dns-doh.dnsforfamily.com",
    "dns-family.adguard.com",
    "dns-unfiltered.adguard.com",
    "dns.12345fund.com",
    "dns.360.cn",
    "dns.aa.net.uk",
    "dns.adguard-dns.com",
    "dns.adguard.com",
    "dns.alekberg.net",
    "dns.alidns.com",
    "dns.arapurayil.com",
    "dns.bebasid.com",
    "dns.belnet.be",
    "dns.brahma.world",
    "dns.caliph.dev",
    "dns.circl.lu",
    "dns.cloudflare.com",
    "dns.comss.one",
    "dns.decloudus.com",
    "dns.digitale-gesellschaft.ch",
    "dns.digitalsize.net",
    "dns.dns-over-https.com",
    "dns.dnsguard.pub",
    "dns.dnsoverhttps.net",
    "dns.dnswarden.com",
    "dns.east.comss.one",
    "dns.elemental.software",
    "dns.fdn.fr",
    "dns.flatuslifir.is",
    "dns.furrydns.de",
    "dns.google",
    "dns.google.com",
    "dns.hinet.net",
    "dns.hostux.net",
    "dns.iij.jp",
    "dns.jupitrdns.net",
    "dns.karl-fritz.de",
    "dns.melalandia.tk",
    "dns.mullvad.net",
    "dns.nextdns.io",
    "dns.njal.la",
    "dns.novg.net",
    "dns.oszx.co",
    "dns.pumplex.com",
    "dns.quad9.net",
    "dns.rubyfish.cn",
    "dns.sb",
    "dns.seby.io",
    "dns.surfsharkdns.com",
    "dns.sustain.hosting",
    "dns.switch.ch",
    "dns.telekom.de",
    "dns.tuna.tsinghua.edu.cn",
    "dns.twnic.tw",
    "dns.unfiltered.rethinkdns.com",
    "dns.vultr.comss.one",
    "dns.wevpn.com",
    "dns0.eu",
    "dns1.dnscrypt.ca",
    "dns1.ryan-palmer.com",
    "dns10.quad9.net",
    "dns11.quad9.net",
    "dns12.quad9.net",
    "dns2.dnscrypt.ca",
    "dns4all.eu",
    "dns64.cloudflare-dns.com",
    "dns64.dns.google",
    "dns9.quad9.net",
    "dnsforge.de",
    "dnsnl-noads.alekberg.net",
    "dnsnl.alekberg.net",
    "dnsse-noads.alekberg.net",
    "dnsse.alekberg.net",
    "doh-2.seby.io",
    "doh-ch.blahdns.com",
    "doh-de.blahdns.com",
    "doh-fi.blahdns.com",
    "doh-ipv6.crypto.sx",
    "doh-jp.blahdns.com",
    "doh-sg.blahdns.com",
    "doh.360.cn",
    "doh.42l.fr",
    "doh.apad.pro",
    "doh.appliedprivacy.net",
    "doh.armadillodns.net",
    "doh.au.ahadns.net",
    "doh.bortzmeyer.fr",
    "doh.captnemo.in",
    "doh.centraleu.pi-dns.com",
    "doh.chi.ahadns.net",
    "doh.cleanbrowsing.org",
    "doh.crypto.sx",
    "doh.defaultroutes.de",
    "doh.dns.sb",
    "doh.dnslify.com",
    "doh.dnswarden.com",
    "doh.eastas.pi-dns.com",
    "doh.eastau.pi-dns.com",
    "doh.eastus.pi-dns.com",
    "doh.es.ahadns.net",
    "doh.familyshield.opendns.com",
    "doh.ffmuc.net",
    "doh.fi.ahadns.net",
    "doh.gslb2.xfinity.com",
    "doh.in.ahadns.net",
    "doh.it.ahadns.net",
    "doh.la.ahadns.net",
    "doh.li",
    "doh.libredns.gr",
    "doh.mullvad.net",
    "doh.nl.ahadns.net",
    "doh.no.ahadns.net",
    "doh.northeu.pi-dns.com",
    "doh.ny.ahadns.net",
    "doh.opendns.com",
    "doh.pl.ahadns.net",
    "doh.post-factum.tk",
    "doh.powerdns.org",
    "doh.pub",
    "doh.safesurfer.io",
    "doh.sandbox.opendns.com",
    "doh.seby.io",
    "doh.securedns.eu",
    "doh.this.web.id",
    "doh.tiar.app",
    "doh.tiarap.org",
    "doh.umbrella.com",
    "doh.westus.pi-dns.com",
    "doh.xfinity.com",
    "eu-ubuntu.dnscepat.id",
    "eu1.dns.lavate.ch",
    "extended.dns.mullvad.net",
    "family-filter-dns.cleanbrowsing.org",
    "family.adguard-dns.com",
    "family.cloudflare-dns.com",
    "family.dns.mullvad.net",
    "fi.doh.dns.snopyta.org",
    "firefox.dns.nextdns.io",
    "free.bravedns.com",
    "free.shecan.ir",
    "freedns.controld.com",
    "helios.plan9-dns.com",
    "hydra.plan9-dns.com",
    "i.233py.com",
    "ibuki.cgnat.net",
    "jcdns.fun",
    "jp.tiar.app",
    "jp.tiarap.org",
    "kids.dns0.eu",
    "kronos.plan9-dns.com",
    "max.rethinkdns.com",
    "mozilla-resolver.nextdns.io",
    "mozilla.cloudflare-dns.com",
    "noads.joindns4.eu",
    "ns1.fdn.fr",
    "odvr.nic.cz",
    "one.one.one.one",
    "ordns.he.net",
    "pdns.itxe.net",
    "pluton.plan9-dns.com",
    "protective.joindns4.eu",
    "rdns.faelix.net",
    "resolver-eu.lelux.fi",
    "resolver.dnsprivacy.org.uk",
    "resolver.sunet.se",
    "resolver.unstoppable.io",
    "resolver1.absolight.net",
    "safe.dot.dns.yandex.net",
    "security-filter-dns.cleanbrowsing.org",
    "security.cloudflare-dns.com",
    "sky.rethinkdns.com",
    "southeastasia.doh.dns.snopyta.org",
    "uncensored.any.dns.nixnet.xyz",
    "uncensored.lux1.dns.nixnet.xyz",
    "unfiltered.adguard-dns.com",
    "unfiltered.joindns4.eu",
    "v.dnscrypt.uk",
    "v.recipes",
    "wikimedia-dns.org",
    "zero.dns0.eu",
];

const ADDRESSES: &[&str] = &[
    // AdGuard
    "94.140.14.14",
    "94.140.15.15",
    "94.140.14.15",
    "94.140.15.16",
    "94.140.14.140",
    "94.140.14.141",
    "2a10:50c0::ad1:ff",
    "2a10:50c0::ad2:ff",
    "2a10:50c0::bad1:ff",
    "2a10:50c0::bad2:ff",
    "2a10:50c0::1:ff",
    "2a10:50c0::2:ff",
    // AliDNS, DNSPod
    "223.5.5.5",
    "223.6.6.6",
    "2400:3200::1",
    "2400:3200:baba::1",
    "1.12.12.12",
    "120.53.53.53",
    // CleanBrowsing
    "185.228.168.9",
    "185.228.169.9",
    "185.228.168.10",
    "185.228.169.11",
    "185.228.168.168",
    "185.228.169.168",
    // Cloudflare
    "1.1.1.1",
    "1.0.0.1",
    "1.1.1.2",
    "1.0.0.2",
    "1.1.1.3",
    "1.0.0.3",
    "2606:4700:4700::1111",
    "2606:4700:4700::1001",
    "2606:4700:4700::1112",
    "2606:4700:4700::1002",
    "2606:4700:4700::1113",
    "2606:4700:4700::1003",
    "2606:4700:4700::64",
    "2606:4700:4700::6400",
    // Control D
    "76.76.2.0/24",
    "76.76.10.0/24",
    "2606:1a40::/48",
    "2606:1a40:1::/48",
    // CZ.NIC
    "193.17.47.1",
    "185.43.135.1",
    "2001:148f:ffff::1",
    "2001:148f:fffe::1",
    // Digitale Gesellschaft
    "185.95.218.42",
    "185.95.218.43",
    "2a05:fc84::42",
    "2a05:fc84::43",
    // DNS.SB
    "185.222.222.222",
    "45.11.45.11",
    "2a09::",
    "2a11::",
    // dns0.eu
    "193.110.81.0",
    "185.253.5.0",
    "193.110.81.9",
    "185.253.5.9",
    "193.110.81.1",
    "185.253.5.1",
    "2a0f:fc80::",
    "2a0f:fc81::",
    // Freifunk Munich
    "5.1.66.255",
    "185.150.99.255",
    "2001:678:e68:f000::",
    "2001:678:ed0:f000::",
    // Google
    "8.8.8.8",
    "8.8.4.4",
    "2001:4860:4860::8888",
    "2001:4860:4860::8844",
    "2001:4860:4860::64",
    "2001:4860:4860::6464",
    // Mullvad
    "194.242.2.2",
    "194.242.2.3",
    "194.242.2.4",
    "194.242.2.5",
    "194.242.2.6",
    "194.242.2.9",
    "2a07:e340::2",
    "2a07:e340::3",
    "2a07:e340::4",
    "2a07:e340::5",
    "2a07:e340::6",
    "2a07:e340::9",
    // NextDNS
    "45.90.28.0/24",
    "45.90.30.0/24",
    "2a07:a8c0::/33",
    "2a07:a8c1::/33",
    // OpenDNS
    "208.67.222.222",
    "208.67.220.220",
    "208.67.222.123",
    "208.67.220.123",
    "208.67.222.2",
    "208.67.220.2",
    "146.112.41.2",
    "146.112.41.3",
    "2620:119:35::35",
    "2620:119:53::53",
    "2620:119:35::123",
    "2620:119:53::123",
    // Quad9
    "9.9.9.9",
    "149.112.112.112",
    "9.9.9.10",
    "149.112.112.10",
    "9.9.9.11",
    "149.112.112.11",
    "9.9.9.12",
    "149.112.112.12",
    "2620:fe::fe",
    "2620:fe::9",
    "2620:fe::10",
    "2620:fe::fe:10",
    "2620:fe::11",
    "2620:fe::fe:11",
    // SWITCH, TWNIC, Wikimedia, Yandex
    "130.59.31.248",
    "130.59.31.251",
    "101.101.101.101",
    "101.102.103.104",
    "185.71.138.138",
    "2001:67c:930::1",
    "77.88.8.8",
    "77.88.8.1",
    "77.88.8.88",
    "77.88.8.2",
    "77.88.8.7",
    "77.88.8.3",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gateway_common::wire::ServerNames;
    use gateway_model::domain::DomainName;

    use super::*;

    #[test]
    fn every_entry_is_read_once() {
        let networks: BTreeSet<IpNet> = networks().map(|network| network.trunc()).collect();
        assert_eq!(networks.len(), ADDRESSES.len());
        let names: BTreeSet<&str> = NAMES.iter().copied().collect();
        assert_eq!(names.len(), NAMES.len());
        assert!(names.iter().all(|name| DomainName::parse(name).is_ok()));
        let keys: BTreeSet<u64> = names.iter().filter_map(|name| ServerNames::key(name)).collect();
        assert_eq!(keys.len(), NAMES.len(), "names that the kernel program does not find");
    }
}
