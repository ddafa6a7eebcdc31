//! DNS enforcement, DoH, IPv6 and WebRTC blocking, leak checks.

use crate::table::Method::{Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the privacy services, which this version does not have",
        &[
            (Get, "/privacy/status"),
            (Get, "/privacy/dns-mode"),
            (Put, "/privacy/dns-mode"),
            (Get, "/privacy/leak-monitor"),
            (Post, "/privacy/force-dns"),
            (Post, "/privacy/block-doh"),
            (Post, "/privacy/block-ipv6"),
            (Post, "/privacy/block-webrtc"),
            (Post, "/privacy/leak-check"),
        ],
    );
}
