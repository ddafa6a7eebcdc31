//! Takes the carrier of the active uplink away while a download runs through a tunnel.

use std::io;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use gateway_tests::topology::{other_wan, server, wan};
use gateway_tests::traffic::{ask_server, transfer};
use gateway_tests::two_uplinks::two_uplinks;
use gateway_tests::wait::{wait_for, wait_ok};
use serde_json::json;

use super::{SOON, Walk};

/// Packets of tunnels after which the cable is pulled.
const BEGIN: u64 = 500;
/// Size of the transfer in each direction.
const BYTES: u64 = 128 << 20;

impl Walk {
    pub(super) fn pull_an_uplink(&mut self) -> Result<()> {
        self.console
            .step("uplinks", "a second uplink; the first loses its carrier while the laptop downloads");
        let network = &self.testbed.network;
        let tap = network.add_uplink()?;
        self.console.call(&self.curl("PUT", "/system/wan-uplinks", Some(&two_uplinks(false, [1, 1]))))?;
        wait_ok(SOON, "both uplinks to be online", || {
            let health = self.testbed.api().get("/system/wan-health")?;
            let mut uplinks = health.as_array().into_iter().flatten();
            ensure!(uplinks.all(|uplink| uplink["state"] == "online"), "{health}");
            Ok(())
        })?;
        let seen = |expected| {
            wait_ok(SOON, "the uplink of the tv", || {
                let seen = ask_server(&network.tv, server(false)).seen();
                ensure!(seen == Some(expected), "{seen:?}");
                Ok(expected)
            })
        };
        self.console.claim("tv is seen as (fibre)", wan(false), seen(wan(false))?);
        let internet = &network.internet;
        internet.sysctl("net.ipv6.conf.up0.keep_addr_on_down", "1")?;
        // A download that is over before the cable is pulled shows nothing: a larger one follows.
        let sizes = [BYTES, 2 * BYTES, 4 * BYTES];
        let pulled = sizes.into_iter().find_map(|bytes| self.pull_during(bytes).transpose());
        let (download, took) = pulled.context("each download was over before the cable was pulled")??;
        self.console.say(format!("cable is active after {:.1} s", took.as_secs_f64()));
        let completed = download.as_ref().map_or_else(ToString::to_string, |_| "yes".to_owned());
        self.console.claim("the laptop's download through the tunnel completed", "yes", completed);
        let manager = self.console.call(&self.curl("GET", "/system/wan-manager", None))?;
        self.console.claim("the active uplink is", "cable", super::text(&manager["active"]));
        self.console.say(super::text(&manager["decisions"][0]["reason"]));
        network.settle()?;
        self.console.claim("packets of the laptop on cable", 0, tap.reset().leaked.total());
        self.console.claim("tv is seen as (cable)", other_wan(false), seen(other_wan(false))?);
        self.console.run(&internet.shown("ip link set up0 up"))?;
        // The other steps have one uplink.
        let single = json!({"uplinks": []});
        self.console.call(&self.curl("PUT", "/system/wan-uplinks", Some(&single)))?;
        drop(tap);
        network.gateway.ip("link delete eth2\n")?;
        seen(wan(false))?;
        network.settle()?;
        // It has seen the tv.
        network.tap.reset();
        Ok(())
    }

    /// Pulls the cable of the first uplink while the laptop transfers so many bytes. Returns the result of the transfer and
    /// the time until the other uplink was active; `None` if the transfer was over before.
    fn pull_during(&self, bytes: u64) -> Result<Option<(io::Result<Duration>, Duration)>> {
        let network = &self.testbed.network;
        network.tap.reset();
        std::thread::scope(|scope| {
            let download = scope.spawn(|| transfer(&network.laptop, server(false), bytes));
            let runs = || network.tap.counts().tunnel.total() > BEGIN || download.is_finished();
            wait_for(SOON, "the download to run", runs)?;
            if download.is_finished() {
                joined(download)?.context("the download")?;
                return Ok(None);
            }
            self.console.run(&network.internet.shown("ip link set up0 down"))?;
            let pulled = Instant::now();
            wait_ok(SOON, "the other uplink to be active", || {
                let manager = self.testbed.api().get("/system/wan-manager")?;
                ensure!(manager["active"] == "cable", "{manager}");
                Ok(())
            })?;
            let took = pulled.elapsed();
            Ok(Some((joined(download)?, took)))
        })
    }
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T> {
    thread.join().map_err(|_| anyhow!("the download panicked"))
}
