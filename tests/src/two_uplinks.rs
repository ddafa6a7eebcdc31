//! A gateway with two uplinks that it probes, and the ways in which a line fails.

use std::net::IpAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::tap::{Counts, Tap};
use crate::testbed::Testbed;
use crate::topology::{INTERNET_V4, OTHER_INTERNET_V4};
use crate::wait::wait_ok;

const SOON: Duration = Duration::from_secs(30);
/// Target of probes that never answers: one dead target must not matter.
const DEAD_TARGET: &str = "198.51.100.99";

/// One of the two uplinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// `fibre` on eth0, the active one at first.
    Fibre,
    /// `cable` on eth2.
    Cable,
}

impl Line {
    pub fn name(self) -> &'static str {
        match self {
            Self::Fibre => "fibre",
            Self::Cable => "cable",
        }
    }

    pub fn other(self) -> Self {
        match self {
            Self::Fibre => Self::Cable,
            Self::Cable => Self::Fibre,
        }
    }

    fn interface(self) -> &'static str {
        match self {
            Self::Fibre => "eth0",
            Self::Cable => "eth2",
        }
    }

    /// The interface of the internet at its remote end.
    fn remote(self) -> &'static str {
        match self {
            Self::Fibre => "up0",
            Self::Cable => "up1",
        }
    }
}

/// A gateway with two uplinks, and the tap on the second.
#[derive(Debug)]
pub struct TwoUplinks {
    // Field order is drop order: the tap before its namespace.
    pub tap: Tap,
    pub testbed: Testbed,
}

impl TwoUplinks {
    /// Returns a running daemon whose uplinks are online; fibre is active.
    pub fn start(balance: bool, weights: [u32; 2]) -> Result<Self> {
        Self::add_to(Testbed::start()?, balance, weights)
    }

    /// Adds the second uplink to a network with a running daemon.
    pub fn add_to(testbed: Testbed, balance: bool, weights: [u32; 2]) -> Result<Self> {
        let tap = testbed.network.add_uplink()?;
        let uplinks = Self { tap, testbed };
        uplinks.keep_addresses()?;
        uplinks.configure(balance, weights)?;
        Ok(uplinks)
    }

    /// Configures the uplinks, which are probed each second, and waits until both work.
    fn configure(&self, balance: bool, weights: [u32; 2]) -> Result<()> {
        let api = self.testbed.api();
        api.put("/system/wan-uplinks", &two_uplinks(balance, weights))?;
        wait_ok(SOON, "both uplinks to work", || {
            for line in [Line::Fibre, Line::Cable] {
                let state = self.state(line)?;
                ensure!(state == "online", "{}: {state}", line.name());
            }
            let manager = api.get("/system/wan-manager")?;
            ensure!(manager["active"] == "fibre" && manager["balanced"] == balance, "{manager}");
            ensure!(manager["decisions"][0]["kernel_agrees_at"].is_string(), "{manager}");
            Ok(())
        })
    }

    /// Lets static IPv6 addresses survive a pulled cable at its remote end.
    fn keep_addresses(&self) -> Result<()> {
        [Line::Fibre, Line::Cable].into_iter().try_for_each(|line| {
            let key = format!("net.ipv6.conf.{}.keep_addr_on_down", line.remote());
            self.testbed.network.internet.sysctl(&key, "1")
        })
    }

    /// Returns the state that the gateway shows.
    pub fn state(&self, line: Line) -> Result<Value> {
        let health = self.testbed.api().get("/system/wan-health")?;
        let mut uplinks = health.as_array().into_iter().flatten();
        let uplink = uplinks.find(|uplink| uplink["uplink"] == line.name());
        Ok(uplink.map(|uplink| uplink["state"].clone()).unwrap_or_default())
    }

    /// Returns the name of the active uplink.
    pub fn active(&self) -> Result<Value> {
        Ok(self.testbed.api().get("/system/wan-manager")?["active"].clone())
    }

    /// Takes the carrier of the uplink away, or gives it back.
    pub fn pull(&self, line: Line, is_pulled: bool) -> Result<()> {
        let state = if is_pulled { "down" } else { "up" };
        self.testbed.network.internet.ip(&format!("link set {} {state}", line.remote()))
    }

    /// Lets the internet discard everything that comes by the uplink, whose link stays up.
    pub fn silence(&self, line: Line, is_silent: bool) -> Result<()> {
        let (name, interface) = (line.name(), line.remote());
        let rules = if is_silent {
            format!(
                "table inet silent-{name} {{\n chain in {{\n type filter hook prerouting priority raw;\n \
                 iifname \"{interface}\" drop\n }}\n}}\n"
            )
        } else {
            format!("delete table inet silent-{name}\n")
        };
        self.testbed.network.internet.nft(&rules)
    }

    /// Returns the packets on both uplinks since the last call.
    pub fn counts(&self) -> [Counts; 2] {
        [self.testbed.network.tap.reset(), self.tap.reset()]
    }
}

/// Returns the request that configures both uplinks.
pub fn two_uplinks(balance: bool, weights: [u32; 2]) -> Value {
    let targets = [IpAddr::from(INTERNET_V4), OTHER_INTERNET_V4.into()].map(|target| target.to_string());
    let probe = json!({
        "targets": [targets[0], targets[1], DEAD_TARGET],
        "interval_sec": 1, "timeout_sec": 1, "fail": 3, "success": 2,
    });
    let uplink = |line: Line, priority: u32, weight: u32| {
        json!({
            "name": line.name(), "interface": line.interface(), "priority": priority, "weight": weight,
            "enabled": true, "balance": true, "probe": probe,
        })
    };
    let [first, second] = weights;
    json!({
        "uplinks": [uplink(Line::Fibre, 10, first), uplink(Line::Cable, 20, second)],
        "wan_balance": balance,
    })
}
