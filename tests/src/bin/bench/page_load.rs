//! `page_load_without_ipv6`: time in which a browser loads a small page from names with addresses of both families, on
//! a device whose IPv6 is blocked. The peer is the same load on a device that has no IPv6, in the same network.
//!
//! The bench also prints the load of a device that knows the IPv6 addresses already, so that it tries them first.

use std::net::IpAddr;

use anyhow::{Context, Result, ensure};
use gateway_tests::browser::{Browser, BrowserOptions};
use gateway_tests::certificate::ServerCertificate;
use gateway_tests::dns::Upstream;
use gateway_tests::name_server;
use gateway_tests::testbed::Testbed;
use gateway_tests::topology::{LAN_V4, server};
use gateway_tests::traffic::ping;
use gateway_tests::web_server::WebServer;
use serde_json::json;

use crate::row::{Row, Target, alternate};

const ROUNDS: usize = 41;
const SITE: &str = "www.example";
/// Names of the resources of the page.
const NAMES: [&str; 4] = ["a.example", "b.example", "c.example", "d.example"];
/// Resources of each name.
const RESOURCES: [&str; 3] = ["style.css", "script.js", "image.svg"];
const IMAGE: &str = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><rect width=\"9\" \
                     height=\"9\"/></svg>";
const SCRIPT: &str = "globalThis.scripts = (globalThis.scripts ?? 0) + 1;\n";
/// Returns the end of the load in milliseconds since its begin.
const DURATION: &str = "new Promise((resolve) => { const read = () => { \
                        const end = performance.getEntriesByType('navigation')[0].loadEventEnd; \
                        end > 0 ? resolve(end) : setTimeout(read); }; read(); })";
/// Returns the number of resources that came.
const COUNT: &str = "scripts + document.styleSheets.length + \
                     [...document.images].filter((image) => image.naturalWidth > 0).length";

pub(crate) fn run() -> Result<Vec<Row>> {
    let mut testbed = Testbed::prepare()?;
    let network = &testbed.network;
    let _upstream = Upstream::start(&network.internet)?;
    testbed.daemon.configure(&json!({"dns": {"upstream_servers": [name_server::ADDRESS]}}))?;
    testbed.daemon.start()?;
    let certificate = ServerCertificate::issue(&[&[SITE], &NAMES[..]].concat())?;
    let [style, script, image] = RESOURCES;
    let files = [("index.html", &*page()), (style, "p {}\n"), (script, SCRIPT), (image, IMAGE)];
    let addresses = [server(false), server(true)];
    let _web = WebServer::start(&network.internet, &addresses, &certificate, &files)?;
    let has_ipv6 = |host| ping(host, server(true));
    ensure!(has_ipv6(&network.laptop) && has_ipv6(&network.tv), "a device has no IPv6 before the block");
    let laptop = testbed.device(&network.laptop)?;
    let block = json!({"enabled": true, "scope": {"device_id": laptop}});
    testbed.api().post("/privacy/block-ipv6", &block)?;
    testbed.api().act("/enforce/reconcile")?;
    network.tv.namespace.sysctl("net.ipv6.conf.eth0.disable_ipv6", "1")?;
    ensure!(!has_ipv6(&network.laptop) && !has_ipv6(&network.tv), "a device has IPv6");

    let mut options = BrowserOptions { resolver: Some(LAN_V4.into()), ..BrowserOptions::default() };
    options.trust(&certificate, SITE);
    let informed = BrowserOptions { hosts: Some(hosts(&addresses)), ..options.clone() };
    let mut browsers = [
        Browser::start(&network.laptop.namespace, &options)?,
        Browser::start(&network.tv.namespace, &options)?,
        Browser::start(&network.laptop.namespace, &informed)?,
    ];
    for browser in &browsers {
        // The first load of a browser also starts its processes.
        load(browser)?;
    }
    let measured = alternate(&mut browsers, ROUNDS, |browser| load(browser))?;
    println!("load of a page, ms: median (rounds)");
    let names = ["IPv6 blocked", "no IPv6", "IPv6 blocked, its addresses known"];
    for (name, measured) in names.iter().zip(&measured) {
        println!("  {measured}  {name}");
    }
    println!("  {:.2} times as long if the addresses are known", measured[2].median / measured[1].median);
    Ok(vec![Row {
        bench: "page_load_without_ipv6",
        ours: measured[0].median,
        peer: measured[1].median,
        peer_name: "the same load by a device without IPv6".to_owned(),
        unit: "ms",
        target: Target::RatioAtMost(1.2),
    }])
}

fn page() -> String {
    let mut page = "<!doctype html>\n<title>A page</title>\n".to_owned();
    for name in NAMES {
        let [style, script, image] = RESOURCES.map(|file| format!("https://{name}/{file}"));
        page.push_str(&format!(
            "<link rel=\"stylesheet\" href=\"{style}\">\n<script src=\"{script}\"></script>\n<img src=\"{image}\">\n"
        ));
    }
    page
}

/// Returns the lines of a file of hosts with the names of the page.
fn hosts(addresses: &[IpAddr]) -> String {
    let names = format!("{SITE} {}", NAMES.join(" "));
    addresses.iter().map(|address| format!("{address} {names}\n")).collect()
}

/// Loads the page without a cache or an open connection. Returns the duration in milliseconds.
fn load(browser: &Browser) -> Result<f64> {
    let mut page = browser.open()?;
    page.load(&format!("https://{SITE}/"))?;
    let duration = page.evaluate(DURATION)?.as_f64().context("duration of a load")?;
    let count = page.evaluate(COUNT)?;
    ensure!(count == NAMES.len() * RESOURCES.len(), "{count} resources came");
    Ok(duration)
}
