//! The network of the clients: two devices with a browser each, and servers in the internet for every protocol.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::process::Stdio;

use gateway_tests::browser::{Browser, BrowserOptions};
use gateway_tests::certificate::ServerCertificate;
use gateway_tests::dns::Upstream;
use gateway_tests::process::Process;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{Host, LAN_V4, OTHER_SERVER_V4, SERVER_V4, Topology, server};
use gateway_tests::wait::wait_ok;
use gateway_tests::web_server::WebServer;
use serde_json::json;
use tempfile::TempDir;

use crate::e2e::SOON;
use crate::e2e::dns_policy::resolving;
use crate::e2e::stun::Turn;

/// Address of a known public resolver.
pub(super) const KNOWN_ADDRESS: Ipv4Addr = Ipv4Addr::new(8, 8, 8, 8);
/// Name of a known public resolver.
pub(super) const KNOWN_NAME: &str = "doh.opendns.com";
/// Address of a public resolver that is not known.
pub(super) const UNKNOWN_ADDRESS: Ipv4Addr = OTHER_SERVER_V4;
/// Answer of both for every name.
pub(super) const PUBLIC_ANSWER: Ipv4Addr = SERVER_V4;
/// Name of the web server, at the address of the default server.
pub(super) const SITE: &str = "www.example";

/// The page of the site, whose functions call another browser.
const PAGE: &str = include_str!("page.html");

pub(super) struct Fixture {
    // Field order is drop order: programs before their network.
    laptop: Browser,
    tv: Browser,
    /// Browser in the internet.
    pub peer: Browser,
    _servers: Servers,
    _upstream: Upstream,
    pub certificate: ServerCertificate,
    pub testbed: Testbed,
    id_of_laptop: String,
}

/// Servers in the internet.
struct Servers {
    _web: WebServer,
    _resolver: PublicResolver,
    _turn: Turn,
}

impl Fixture {
    pub(super) fn build() -> Self {
        let (testbed, upstream) = resolving();
        let network = &testbed.network;
        let certificate =
            ServerCertificate::issue(&[SITE, KNOWN_NAME, &KNOWN_ADDRESS.to_string()]).expect("a certificate");
        let servers = Servers {
            _web: WebServer::start(
                &network.internet,
                &[server(false), server(true)],
                &certificate,
                &[("index.html", PAGE)],
            )
            .expect("a web server"),
            _resolver: PublicResolver::start(network, &certificate),
            _turn: Turn::start(network),
        };
        let id_of_laptop = testbed.device(&network.laptop).expect("a device");
        testbed.device(&network.tv).expect("a device");
        let mut options = BrowserOptions { resolver: Some(LAN_V4.into()), ..BrowserOptions::default() };
        options.trust(&certificate, SITE);
        let of_host = |host: &Host| Browser::start(&host.namespace, &options).expect("a browser");
        let (laptop, tv) = (of_host(&network.laptop), of_host(&network.tv));
        let mut options = BrowserOptions::default();
        options.trust(&certificate, SITE);
        options.arguments.extend([
            format!("--host-resolver-rules=MAP {SITE} {}", server(false)),
            // The devices cannot resolve the names of its addresses by mDNS.
            "--disable-features=WebRtcHideLocalIpsWithMdns".to_owned(),
        ]);
        let peer = Browser::start(&network.exit_a.namespace, &options).expect("a browser");
        Self { laptop, tv, peer, _servers: servers, _upstream: upstream, certificate, testbed, id_of_laptop }
    }

    /// Returns the browser of a device.
    pub(super) fn browser(&self, host: &Host) -> &Browser {
        if host.name == self.testbed.network.laptop.name { &self.laptop } else { &self.tv }
    }

    /// Sets the privacy class of the laptop, and returns when it is in force.
    pub(super) fn set_class_of_laptop(&self, class: &str) {
        let api = self.testbed.api();
        let path = format!("/devices/{}", self.id_of_laptop);
        let mut device = api.get(&path).expect("the device");
        device["privacy_class"] = json!(class);
        api.put(&path, &device).expect("stored");
        api.act("/enforce/reconcile").expect("reconciled");
    }
}

/// A resolver (dnsdist) over UDP, TCP, TLS and HTTPS, at a known address and an unknown one.
struct PublicResolver {
    // Field order is drop order: the process before its files.
    _process: Process,
    _directory: TempDir,
}

impl PublicResolver {
    fn start(network: &Topology, certificate: &ServerCertificate) -> Self {
        network.internet.ip(&format!("address add {KNOWN_ADDRESS}/32 dev lo")).expect("an address");
        let directory = tempfile::tempdir().expect("a directory");
        let files = format!("\"{}\", \"{}\"", certificate.file().display(), certificate.key_file().display());
        let configuration = format!(
            "setLocal(\"{KNOWN_ADDRESS}:53\")\nsetACL(\"0.0.0.0/0\")\nsetSecurityPollSuffix(\"\")\n\
             addTLSLocal(\"{KNOWN_ADDRESS}:853\", {files})\n\
             addDOHLocal(\"{KNOWN_ADDRESS}:443\", {files}, \"/dns-query\")\n\
             addDOHLocal(\"{UNKNOWN_ADDRESS}:443\", {files}, \"/dns-query\")\n\
             addAction(AllRule(), SpoofAction(\"{PUBLIC_ANSWER}\"))\n"
        );
        let file = directory.path().join("dnsdist.conf");
        fs::write(&file, configuration).expect("written");
        let mut command = network.internet.command("dnsdist");
        command.arg("--supervised").arg("-C").arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = network.internet.spawn(command).expect("dnsdist");
        let addresses: [(IpAddr, u16); 4] = [
            (KNOWN_ADDRESS.into(), 53),
            (KNOWN_ADDRESS.into(), 853),
            (KNOWN_ADDRESS.into(), 443),
            (UNKNOWN_ADDRESS.into(), 443),
        ];
        wait_ok(SOON, "dnsdist to listen", || {
            for address in addresses {
                network.internet.within(|| TcpStream::connect(address))?;
            }
            Ok(())
        })
        .expect("a resolver");
        Self { _process: process, _directory: directory }
    }
}
