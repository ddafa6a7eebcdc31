//! Random clients, with crashes of the server between and within its outputs.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Discover(u8),
    /// Requests what was offered last.
    Select(u8),
    Reboot(u8, u8),
    Renew(u8),
    Release(u8),
    Decline(u8),
    /// Seconds that pass.
    Wait(u16),
    /// The server starts again with the leases that were durable. The last output may be lost, its replies with it.
    Crash,
    Reserve(u8, u8),
    Range(u8, u8),
    Occupied(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let client = 1u8..7;
    let address = 100u8..108;
    let step = prop_oneof![
        8 => client.clone().prop_map(Step::Discover),
        8 => client.clone().prop_map(Step::Select),
        2 => (client.clone(), address.clone()).prop_map(|(client, address)| Step::Reboot(client, address)),
        3 => client.clone().prop_map(Step::Renew),
        1 => client.clone().prop_map(Step::Release),
        1 => client.clone().prop_map(Step::Decline),
        2 => (1u16..400).prop_map(Step::Wait),
        2 => Just(Step::Crash),
        1 => (client, address.clone()).prop_map(|(client, address)| Step::Reserve(client, address)),
        1 => (100u8..104, 104u8..108).prop_map(|(first, last)| Step::Range(first, last)),
        1 => address.prop_map(Step::Occupied),
    ];
    prop::collection::vec(step, 1..120)
}

/// Clients and what they were promised, beside a server that can crash.
struct Bed {
    server: Server,
    durable: BTreeMap<Ipv4Addr, Lease>,
    now: i64,
    offered: BTreeMap<u8, Ipv4Addr>,
    /// Acknowledged addresses with the ends of their leases in milliseconds.
    held: BTreeMap<u8, (Ipv4Addr, i64)>,
}

impl Bed {
    fn handle(&mut self, client: u8, request: Request) {
        let mut output = Output::default();
        self.server.handle(request, LINK, at(self.now), &mut output);
        self.take(client, output);
    }

    fn poll(&mut self) {
        let mut output = Output::default();
        self.server.poll(at(self.now), &mut output);
        // Leases of released addresses that no host answered for.
        self.durable.extend(output.leases.into_iter().map(|lease| (lease.address, lease)));
        for reply in output.replies.iter().map(|reply| (reply.message[33], read(reply))) {
            self.offered.insert(reply.0, reply.1.address);
        }
        assert!(output.stored_replies.is_empty());
    }

    fn take(&mut self, client: u8, output: Output) {
        for lease in output.leases {
            self.durable.insert(lease.address, lease);
        }
        for answer in output.replies.iter().chain(&output.stored_replies).map(read) {
            match answer.kind {
                2 => drop(self.offered.insert(client, answer.address)),
                NAK => drop(self.held.remove(&client)),
                _ => {
                    // The client goes by the time in the answer: a renewal that is too early adds none.
                    let lease_sec = u32::from_be_bytes(answer.options[&51][..].try_into().unwrap());
                    assert!(lease_sec <= LEASE_SEC);
                    let end = self.now + i64::from(lease_sec) * 1000;
                    let others = self.held.iter().filter(|(other, (address, until))| {
                        **other != client && *address == answer.address && *until > self.now
                    });
                    assert_eq!(others.count(), 0, "{} has two clients", answer.address);
                    let durable = &self.durable[&answer.address];
                    assert!(durable.is_active(at(self.now).as_second()) && durable.mac == mac(client));
                    assert!(
                        Timestamp::from_second(durable.ends).unwrap() >= at(end),
                        "the lease ends before its client knows"
                    );
                    self.held.insert(client, (answer.address, end));
                }
            }
        }
    }

    fn held(&self, client: u8) -> Option<Ipv4Addr> {
        self.held.get(&client).filter(|(_, until)| *until > self.now).map(|(address, _)| *address)
    }

    fn step(&mut self, step: Step, config: &mut ServerConfig) {
        self.now += 3;
        self.poll();
        match step {
            Step::Discover(client) => self.handle(client, discover(client)),
            Step::Select(client) => {
                if let Some(address) = self.offered.remove(&client) {
                    self.handle(client, select(client, address));
                }
            }
            Step::Reboot(client, address) => {
                self.held.remove(&client);
                self.handle(client, reboot(client, host(address)));
            }
            Step::Renew(client) => {
                if let Some(address) = self.held(client) {
                    self.handle(client, renew(client, address));
                }
            }
            Step::Release(client) => {
                if let Some(address) = self.held(client) {
                    self.held.remove(&client);
                    self.handle(client, release(client, address));
                }
            }
            Step::Decline(client) => {
                if let Some(address) = self.held(client) {
                    self.held.remove(&client);
                    self.handle(client, decline(client, address));
                }
            }
            Step::Wait(seconds) => {
                self.now += i64::from(seconds) * 1000;
                self.poll();
            }
            Step::Crash => {
                self.server = Server::new(self.durable.values().cloned());
                self.server.configure(config.clone(), at(self.now));
            }
            Step::Reserve(client, address) => {
                config
                    .reservations
                    .retain(|mac_of, it| *mac_of != mac(client) && it.address != host(address));
                *config = reserved(std::mem::take(config), mac(client), host(address));
                self.server.configure(config.clone(), at(self.now));
            }
            Step::Range(first, last) => {
                config.scopes[0].range = AddressRange { first: host(first), last: host(last) };
                self.server.configure(config.clone(), at(self.now));
            }
            Step::Occupied(address) => {
                let mut output = Output::default();
                let user = Some(mac(99));
                self.server.handle_probe_answer(host(address), user, at(self.now), &mut output);
                self.take(0, output);
            }
        }
    }

    /// The server's own view: each address in use is counted once.
    fn check(&self) {
        let usage = &self.server.pools()[0];
        assert_eq!(usage.size, usage.active + usage.offered + usage.declined + usage.free);
        let mut of_client = BTreeMap::new();
        for (lease, status) in self.server.leases(at(self.now)) {
            if status == LeaseStatus::Active {
                let other = of_client.insert(lease.mac, lease.address);
                assert_eq!(other, None, "{} has two addresses", lease.mac);
            }
        }
        for client in self.held.keys() {
            let Some(address) = self.held(*client) else { continue };
            let lease = self.durable.get(&address);
            assert!(lease.is_some_and(|lease| lease.mac == mac(*client)), "the lease of {address} is lost");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn an_address_never_has_two_clients(steps in steps(), probes in any::<bool>()) {
        let mut config = config(Scope { probes, ..scope(100, 105) });
        let mut bed = Bed {
            server: server(config.clone()),
            durable: BTreeMap::new(),
            now: 0,
            offered: BTreeMap::new(),
            held: BTreeMap::new(),
        };
        for step in steps {
            bed.step(step, &mut config);
            bed.check();
        }
    }
}
