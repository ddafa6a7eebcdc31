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
    /// The storage of the leases is closed, or opened again.
    Lock,
    Unlock,
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
        1 => Just(Step::Lock),
        2 => Just(Step::Unlock),
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
    /// Time at which the storage of the leases was closed.
    locked_at: Option<i64>,
    /// Leases were renewed or given to reservations in memory only, and that was lost.
    is_lossy: bool,
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
        self.store(output.leases);
        for reply in output.replies.iter().map(|reply| (reply.message[33], read(reply))) {
            self.offered.insert(reply.0, reply.1.address);
        }
        assert!(output.stored_replies.is_empty());
    }

    fn store(&mut self, leases: Vec<Lease>) {
        if self.locked_at.is_none() {
            self.durable.extend(leases.into_iter().map(|lease| (lease.address, lease)));
        }
    }

    /// Returns the lease of an address as far as the server has it: on disk, or in memory while the storage is closed.
    fn lease_of(&self, address: Ipv4Addr) -> Option<Lease> {
        let mut in_memory = self.server.stored().filter(|_| self.locked_at.is_some());
        in_memory
            .find(|lease| lease.address == address)
            .or_else(|| self.durable.get(&address).filter(|_| self.locked_at.is_none()))
            .cloned()
    }

    fn take(&mut self, client: u8, output: Output) {
        self.store(output.leases);
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
                    let durable = self.lease_of(answer.address).expect("a lease");
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
            Step::Crash if self.locked_at.is_none() => {
                self.server = Server::new(self.durable.values().cloned());
                self.server.configure(config.clone(), at(self.now));
            }
            Step::Crash => self.crash_while_locked(config),
            Step::Lock => {
                self.locked_at.get_or_insert(self.now);
                self.server.set_withholding(true);
            }
            Step::Unlock => self.unlock(),
            // A reservation in memory only, or of an address that another client has, can be lost with it.
            Step::Reserve(..) if self.locked_at.is_some() || self.is_lossy => {}
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

    /// The server starts without its leases.
    fn crash_while_locked(&mut self, config: &ServerConfig) {
        let of_other = |(mac_of, reservation): (&MacAddr, &Reservation)| {
            let mut clients = self.held.keys().filter(|client| mac(**client) != *mac_of);
            clients.any(|client| self.held(*client) == Some(reservation.address))
        };
        // Only a probe would show that the client of before has the address, and clients do not answer here.
        if config.reservations.iter().any(of_other) {
            return;
        }
        self.is_lossy = true;
        self.server = server(config.clone());
        self.server.set_withholding(true);
    }

    fn unlock(&mut self) {
        let Some(locked_at) = self.locked_at.take() else { return };
        let since = self.is_lossy.then(|| at(locked_at).as_second());
        self.server.adopt(self.durable.values().cloned(), since, at(self.now));
        self.server.set_withholding(false);
        self.durable = self.server.stored().map(|lease| (lease.address, lease.clone())).collect();
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
            if self.is_lossy {
                continue;
            }
            let lease = self.lease_of(address);
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
            locked_at: None,
            is_lossy: false,
        };
        for step in steps {
            bed.step(step, &mut config);
            bed.check();
        }
    }
}
