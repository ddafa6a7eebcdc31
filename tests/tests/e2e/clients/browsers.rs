//! Chromium on a device: a page over HTTP/3, and a call to a browser in the internet.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gateway_tests::browser::Page;
use gateway_tests::topology::{Host, server, wan};
use serde_json::{Value, json};

use super::Outcome::{self, FellBack, Stopped, Succeeded};
use super::fixture::{Fixture, SITE};
use crate::e2e::stun;

/// Number of loads after which a browser would use HTTP/3, which it begins with one of the first.
const LOADS: usize = 6;
static LOAD_NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Loads the page until it comes by HTTP/3.
pub(super) fn load_page(fixture: &Fixture, host: &Host, time: Duration) -> Outcome {
    load_by_http3(&mut fixture.browser(host).open().expect("a page"), time)
}

/// Loads the page into an open one until it comes by HTTP/3.
pub(super) fn load_by_http3(page: &mut Page, time: Duration) -> Outcome {
    let begun = Instant::now();
    for load in 1.. {
        // A page of another URL is in no cache.
        let number = LOAD_NUMBER.fetch_add(1, Ordering::Relaxed);
        if page.load(&format!("https://{SITE}/?{number}")).is_err() {
            return Stopped;
        }
        if page.protocol().expect("a protocol") == "h3" {
            return Succeeded;
        }
        if load >= LOADS && begun.elapsed() >= time {
            break;
        }
    }
    FellBack
}

/// Opens a data channel to the peer, and sends a message there and back.
pub(super) fn call_peer(fixture: &Fixture, host: &Host, time: Duration) -> Outcome {
    let mut page = fixture.browser(host).open().expect("a page");
    page.load(&format!("https://{SITE}/")).expect("loaded");
    let mut peer = fixture.peer.open().expect("a page");
    let call = Call::place(&mut page, &mut peer, time / 2);
    let is_echoed = is_echoed(&mut page, time / 2);
    match (call.has_visible_address, is_echoed) {
        (true, true) => Succeeded,
        (false, false) => Stopped,
        _ => panic!("{}: echoed: {is_echoed}, {}", host.name, call.offer),
    }
}

/// A call between two pages, as far as their exchange of descriptions.
pub(super) struct Call {
    /// True if the STUN server reported the visible address.
    pub has_visible_address: bool,
    /// Description of the caller.
    pub offer: String,
}

impl Call {
    /// Lets the pages exchange their descriptions, each with the candidates that it finds before the timeout.
    pub(super) fn place(page: &mut Page, peer: &mut Page, time: Duration) -> Self {
        peer.load(&format!("https://{SITE}/")).expect("loaded");
        let stun = format!("stun:{}:{}", server(false), stun::PORT);
        let offer = evaluate(page, &format!("call({}, {})", json!(stun), time.as_millis()));
        let answer = evaluate(peer, &format!("answer({offer}, {})", time.as_millis()));
        evaluate(page, &format!("accept({answer})"));
        let offer = offer.as_str().expect("a description").to_owned();
        let visible = format!(" {} ", wan(false));
        let has_visible_address =
            offer.lines().any(|line| line.contains(" typ srflx ") && line.contains(&visible));
        Self { has_visible_address, offer }
    }
}

/// Sends a message over the data channel, and returns true if the peer returns it before the timeout.
pub(super) fn is_echoed(page: &mut Page, time: Duration) -> bool {
    evaluate(page, &format!("isEchoed({})", time.as_millis())) == json!(true)
}

fn evaluate(page: &mut Page, expression: &str) -> Value {
    page.evaluate(expression).expect("a value")
}
