//! The DHCP server and the settings of interfaces.

use crate::table::Method::{Delete, Get, Post, Put};
use crate::table::Table;

pub fn rows(t: &mut Table) {
    t.unsupported(
        "the DHCP server and interface settings, which this version does not have",
        &[
            (Get, "/dhcp"),
            (Put, "/dhcp"),
            (Get, "/dhcp/leases"),
            (Get, "/dhcp/reservations"),
            (Post, "/dhcp/reservations"),
            (Delete, "/dhcp/reservations/{mac}"),
            (Get, "/interfaces/{name}/config"),
            (Put, "/interfaces/{name}/config"),
            (Post, "/interfaces/{name}/dhcp/start"),
            (Post, "/interfaces/{name}/dhcp/stop"),
            (Post, "/interfaces/{name}/dhcp/renew"),
        ],
    );
}
