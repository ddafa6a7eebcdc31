//! Reports of the DHCP client about its lease, as its script prints them: one line an event.
//!
//! The values come from a server that may be hostile. Routes and names are not among them.

use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

use crate::facts::Lease;
use crate::interfaces::is_host;

/// First field of a report. Lines that begin otherwise are the client's own.
pub const PREFIX: &str = "gatewayd-lease";
/// Shell script that the client runs (udhcpc of BusyBox): it prints, and changes nothing.
pub const SCRIPT: &str = "#!/bin/sh\n\
    # Reports what the DHCP client received. The daemon sets addresses and routes itself.\n\
    printf 'gatewayd-lease\\t%s\\t%s\\t%s\\t%s\\t%s\\t%s\\t%s\\n' \
    \"$1\" \"$ip\" \"$mask\" \"$router\" \"$dns\" \"$serverid\" \"$lease\"\n";

const MAX_DNS: usize = 8;
const MIN_SECONDS: u32 = 30;

/// Event of the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The lease is valid, or was renewed.
    Leased(Lease),
    /// The client has no lease any more, or none yet.
    Unleased,
    /// No server answers.
    NoServer,
    /// The server refused the address.
    Refused,
    /// A lease that cannot be used.
    Unusable(&'static str),
}

/// Parses a line of the client's output. `None` for a line that is no report.
pub fn parse(line: &str) -> Option<Report> {
    let mut fields = line.trim_end_matches(['\r', '\n']).split('\t');
    if fields.next() != Some(PREFIX) {
        return None;
    }
    let event = fields.next()?;
    let rest: Vec<&str> = fields.collect();
    match event {
        "bound" | "renew" => Some(lease(&rest).map_or_else(Report::Unusable, Report::Leased)),
        "deconfig" => Some(Report::Unleased),
        "leasefail" => Some(Report::NoServer),
        "nak" => Some(Report::Refused),
        _ => None,
    }
}

fn lease(fields: &[&str]) -> Result<Lease, &'static str> {
    let [address, mask, router, dns, server, seconds] = fields else {
        return Err("the report of the client is incomplete");
    };
    let address: Ipv4Addr = address.parse().map_err(|_| "the lease has no address")?;
    if !is_host(address) {
        return Err("the address of the lease is none of a host");
    }
    let length = prefix_length(mask).ok_or("the lease has no network mask")?;
    let address = Ipv4Net::new(address, length).map_err(|_| "the lease has no network mask")?;
    let is_edge =
        length < 31 && (address.addr() == address.network() || address.addr() == address.broadcast());
    if is_edge {
        return Err("the address of the lease is that of its network");
    }
    let hosts = |text: &str| {
        let parsed = text.split_ascii_whitespace().filter_map(|word| word.parse::<Ipv4Addr>().ok());
        parsed.filter(|host| is_host(*host) && *host != address.addr()).take(MAX_DNS).collect::<Vec<_>>()
    };
    // A router that is no neighbour would make the host send to it whatever the network is.
    let gateway = hosts(router).into_iter().find(|router| address.contains(router));
    Ok(Lease {
        address,
        gateway,
        dns: hosts(dns),
        server: hosts(server).first().copied(),
        seconds: seconds.parse::<u32>().unwrap_or(u32::MAX).max(MIN_SECONDS),
    })
}

/// Parses a length (`24`) or a mask (`255.255.255.0`).
fn prefix_length(text: &str) -> Option<u8> {
    let length = match text.parse::<u8>() {
        Ok(length) => length,
        Err(_) => {
            let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
            let ones = mask.leading_ones();
            (ones == mask.count_ones()).then(|| u8::try_from(ones).ok())??
        }
    };
    (1..=32).contains(&length).then_some(length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn report(event: &str, fields: [&str; 6]) -> Report {
        parse(&format!("{PREFIX}\t{event}\t{}\n", fields.join("\t"))).expect("a report")
    }

    #[test]
    fn a_lease_is_read_with_its_servers() {
        let fields = ["192.0.2.7", "24", "192.0.2.1 192.0.2.2", "192.0.2.53 9.9.9.9", "192.0.2.1", "3600"];
        let lease = Lease {
            address: "192.0.2.7/24".parse().unwrap(),
            gateway: Some("192.0.2.1".parse().unwrap()),
            dns: vec!["192.0.2.53".parse().unwrap(), "9.9.9.9".parse().unwrap()],
            server: Some("192.0.2.1".parse().unwrap()),
            seconds: 3600,
        };
        assert_eq!(report("bound", fields), Report::Leased(lease.clone()));
        let dotted = ["192.0.2.7", "255.255.255.0", "192.0.2.1", "192.0.2.53 9.9.9.9", "192.0.2.1", "3600"];
        assert_eq!(report("renew", dotted), Report::Leased(lease));
    }

    #[test]
    fn leases_that_no_host_can_use_are_refused() {
        for (address, mask) in [
            ("", "24"),
            ("0.0.0.1", "24"),
            ("127.0.0.1", "8"),
            ("224.0.0.7", "4"),
            ("255.255.255.255", "32"),
            ("192.0.2.0", "24"),
            ("192.0.2.255", "24"),
            ("192.0.2.7", "0"),
            ("192.0.2.7", "33"),
            ("192.0.2.7", "255.0.255.0"),
        ] {
            let found = report("bound", [address, mask, "", "", "", ""]);
            assert!(matches!(found, Report::Unusable(_)), "{address}/{mask}: {found:?}");
        }
    }

    #[test]
    fn a_router_outside_the_network_is_not_used() {
        let Report::Leased(lease) = report("bound", ["192.0.2.7", "24", "198.51.100.1", "", "", "0"]) else {
            panic!("no lease")
        };
        assert_eq!((lease.gateway, lease.seconds), (None, 30));
    }

    #[test]
    fn other_events_and_other_lines_are_distinguished() {
        let other = |event| report(event, [""; 6]);
        assert_eq!(
            (other("deconfig"), other("leasefail"), other("nak")),
            (Report::Unleased, Report::NoServer, Report::Refused)
        );
        for line in ["", "udhcpc: started, v1.35.0", "gatewayd-lease", "gatewayd-lease\tother"] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_a_panic(line in "\\PC*", tail in "[\\t 0-9./]*") {
            parse(&line);
            if let Some(Report::Leased(lease)) = parse(&format!("{PREFIX}\tbound\t{tail}")) {
                prop_assert!(lease.gateway.is_none_or(|gateway| lease.address.contains(&gateway)));
            }
        }
    }
}
