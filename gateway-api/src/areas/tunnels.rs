//! Tunnels, and the bridges and proxies that this version does not have.

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the engine, which is being wired",
        &[
            (Get, "/tunnels"),
            (Post, "/tunnels"),
            (Get, "/tunnels/{id}"),
            (Put, "/tunnels/{id}"),
            (Delete, "/tunnels/{id}"),
            (Post, "/tunnels/{id}/up"),
            (Post, "/tunnels/{id}/connect"),
            (Post, "/tunnels/{id}/down"),
            (Post, "/tunnels/{id}/disconnect"),
            (Get, "/tunnels/{id}/config"),
            (Post, "/tunnels/generate-keys"),
            (Post, "/tunnels/import-wireguard"),
            (Get, "/tunnels/egress"),
        ],
    );
    t.unsupported("OpenVPN tunnels, which this version does not have", &[(Post, "/tunnels/upload-ovpn")]);
    t.unsupported(
        "bridges, which this version does not have",
        &[
            (Get, "/bridges"),
            (Post, "/bridges"),
            (Get, "/bridges/status"),
            (Get, "/bridges/{id}"),
            (Put, "/bridges/{id}"),
            (Delete, "/bridges/{id}"),
            (Post, "/bridges/{id}/toggle"),
            (Post, "/bridges/{id}/test"),
        ],
    );
    t.unsupported(
        "SOCKS5 proxies, which this version does not have",
        &[
            (Get, "/proxies"),
            (Post, "/proxies"),
            (Get, "/proxies/{id}"),
            (Put, "/proxies/{id}"),
            (Delete, "/proxies/{id}"),
        ],
    );
}
