//! Faults of hops.

use gateway_tests::testbed::create;
use serde_json::{Value, json};

use crate::soak::Site;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Down,
    Up,
    Disable,
    Delete,
    /// Sets the interface down without the daemon.
    InterfaceDown,
    InterfaceGone,
    /// Kills the process at the remote end.
    KillTheExit,
    KillOpenVpn,
    KillTheDaemon,
    Reconcile,
    Apply,
}

impl Deed {
    pub(crate) const ALL: [Deed; 11] = [
        Deed::Down,
        Deed::Up,
        Deed::Disable,
        Deed::Delete,
        Deed::InterfaceDown,
        Deed::InterfaceGone,
        Deed::KillTheExit,
        Deed::KillOpenVpn,
        Deed::KillTheDaemon,
        Deed::Reconcile,
        Deed::Apply,
    ];
}

/// Marsaglia's xorshift: the same seed gives the same faults.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % limit
    }

    pub(super) fn pick<T: Copy, const N: usize>(&mut self, all: [T; N]) -> T {
        all[self.below(N)]
    }
}

impl Site {
    /// Returns the current tunnel object, if it exists.
    fn object(&self, number: usize) -> Option<Value> {
        let tunnels = self.testbed.api().get("/tunnels").expect("tunnels");
        let name = &self.tunnels[number]["name"];
        tunnels.as_array().expect("a list").iter().find(|tunnel| tunnel["name"] == *name).cloned()
    }

    /// Applies a fault to a tunnel. Skips a fault that is not possible now.
    pub(crate) fn do_it(&mut self, deed: Deed, number: usize) {
        let object = self.object(number);
        let place = object.as_ref().and_then(|object| Some(format!("/tunnels/{}", object["id"].as_str()?)));
        let interface = object.as_ref().and_then(|object| object["interface"].as_str().map(str::to_owned));
        let api = self.testbed.api();
        let gateway = &self.testbed.network.gateway;
        // Another fault was faster, or the tunnel is disabled: neither is an error.
        match (deed, place, interface) {
            (Deed::Down, Some(place), _) => drop(api.act(&format!("{place}/down")).expect("down")),
            (Deed::Up, Some(place), _) => {
                drop(api.send("POST", &format!("{place}/up"), None).expect("an answer"))
            }
            (Deed::Disable, Some(place), _) => {
                let mut object = object.expect("it has a place");
                object["enabled"] = json!(false);
                api.put(&place, &object).expect("disabled");
            }
            (Deed::Delete, Some(place), _) => {
                drop(api.delete(&format!("{place}?force=true")).expect("deleted"))
            }
            (Deed::InterfaceDown, _, Some(name)) => drop(gateway.ip(&format!("link set {name} down"))),
            (Deed::InterfaceGone, _, Some(name)) => drop(gateway.ip(&format!("link del {name}"))),
            (Deed::KillTheExit, ..) => match number {
                0 => drop(self.testbed.network.exit_a.kill9()),
                1 => drop(self.testbed.network.exit_b.kill9()),
                _ => drop(self.openvpn.kill9()),
            },
            (Deed::KillOpenVpn, ..) => {
                for pid in self.testbed.openvpn_processes() {
                    let pid = nix::unistd::Pid::from_raw(pid);
                    let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL);
                }
            }
            (Deed::KillTheDaemon, ..) => {
                self.testbed.daemon.kill9().expect("killed");
                self.testbed.daemon.start().expect("started");
            }
            (Deed::Reconcile, ..) => drop(api.act("/enforce/reconcile").expect("reconciled")),
            (Deed::Apply, ..) => drop(self.testbed.apply().expect("applied")),
            (_, _, _) => {}
        }
    }

    /// Repairs the faults of hops.
    pub(crate) fn mend(&mut self) {
        // Exits that were not killed are restarted as well.
        for exit in [&self.testbed.network.exit_a, &self.testbed.network.exit_b] {
            let _ = exit.kill9();
            exit.start().expect("exit");
        }
        let _ = self.openvpn.kill9();
        self.openvpn.start_again().expect("server");
        for (number, tunnel) in self.tunnels.iter().enumerate() {
            let api = self.testbed.api();
            let Some(mut object) = self.object(number) else {
                create(api, "/tunnels", tunnel).expect("tunnel");
                continue;
            };
            let place = format!("/tunnels/{}", object["id"].as_str().expect("an id"));
            if object["enabled"] == false {
                object["enabled"] = json!(true);
                api.put(&place, &object).expect("enabled");
            }
            api.act(&format!("{place}/up")).expect("up");
        }
    }
}
