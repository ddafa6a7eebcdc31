//! Devices of a household and what they do by the hour, without an incident.

use super::captures;
use super::traffic::{Random, Service, TCP, Traffic, UDP};

const MIB: f64 = 1048576.0;
/// Countries in which most services are, the first ones more than the others.
const COUNTRIES: &[&str] = &["US", "DE", "IE", "NL", "US", "US", "FR", "GB", "SE", "US"];
/// Countries of a rare visit.
const RARE: &[&str] = &["JP", "BR", "ZA", "PL", "IT", "CZ", "SG", "CA", "AU", "IN", "KR", "ES"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Model {
    Phone,
    Laptop,
    Television,
    Camera,
    Plug,
    Storage,
    Console,
}

/// Device of the household.
#[derive(Debug)]
pub(super) struct Device {
    pub model: Model,
    /// Places that it uses most.
    favourites: Vec<Service>,
    /// Number by which names of this device differ from those of others.
    number: u64,
}

pub(super) fn devices(random: &mut Random) -> Vec<Device> {
    use Model::*;
    let models =
        [Phone, Phone, Phone, Laptop, Laptop, Television, Camera, Camera, Plug, Plug, Storage, Console];
    models.into_iter().zip(0..).map(|(model, number)| Device::new(model, number, random)).collect()
}

/// Share of the usual activity of people at an hour of the day.
fn activity(hour_of_day: i64) -> f64 {
    match hour_of_day {
        0..=5 => 0.02,
        6..=7 => 0.5,
        8..=15 => 0.4,
        16..=21 => 1.0,
        _ => 0.3,
    }
}

impl Device {
    fn new(model: Model, number: u64, random: &mut Random) -> Device {
        let count = match model {
            Model::Phone | Model::Laptop => 40,
            Model::Television | Model::Console => 10,
            Model::Camera | Model::Plug | Model::Storage => 2,
        };
        let favourites = (0..count).map(|site| {
            let country = random.choose(COUNTRIES);
            Service::web(number * 100 + site, country, random)
        });
        Device { model, favourites: favourites.collect(), number }
    }

    /// Makes the traffic of an hour.
    pub(super) fn spend(&mut self, hour: i64, random: &mut Random, traffic: &mut Traffic) {
        let share = activity(hour % 24);
        match self.model {
            Model::Phone => self.browse(share * 25.0, 6.0 * MIB, random, traffic),
            Model::Laptop => self.browse(share * 60.0, 12.0 * MIB, random, traffic),
            Model::Television => self.browse(share * 12.0, 3.0 * MIB, random, traffic),
            Model::Console => self.browse(share * 8.0, 10.0 * MIB, random, traffic),
            Model::Camera => self.record(random, traffic),
            Model::Plug => self.report(random, traffic),
            Model::Storage => self.back_up(hour % 24, random, traffic),
        }
        match self.model {
            Model::Phone => self.call(share, random, traffic),
            Model::Laptop => self.work(share, random, traffic),
            Model::Console => self.play(share, random, traffic),
            _ => {}
        }
    }

    /// Visits sites: mostly the usual ones, now and then one that it has never visited.
    fn browse(&mut self, visits: f64, bytes: f64, random: &mut Random, traffic: &mut Traffic) {
        let visits = random.around(visits) as u64;
        traffic.sent += random.around(bytes * visits as f64 / 30.0) as u64;
        for _ in 0..visits {
            let mut service = random.choose(&self.favourites).clone();
            if random.is_one_in(12) {
                let is_rare = random.is_one_in(150);
                let country = random.choose(if is_rare { RARE } else { COUNTRIES });
                service = Service::web(10_000 + random.below(5000), country, random);
            }
            traffic.some_flow(random, &service);
            let name = service.name.unwrap_or_default();
            traffic.queries(1 + random.below(3), &name);
            if random.is_one_in(30) {
                traffic.query(format!("wpad.{name}"), true, false);
            }
        }
        if visits > 0 && random.is_one_in(20) {
            let capture: &&str = random.choose(captures::ORDINARY);
            captures::replay(capture, random.below(3_000_000) as i64, traffic);
        }
        // The service for messages of the system keeps a connection.
        let push = Service { port: 5223, ..Service::web(20_000, "US", random) };
        traffic.some_flow(random, &push);
    }

    /// Calls by the network of the operator, and by a messenger.
    fn call(&self, share: f64, random: &mut Random, traffic: &mut Traffic) {
        if random.below(100) < 40 {
            let mut operator = Service::unnamed(random, 4500, UDP, "DE");
            operator.address = [109, 42, (self.number % 3) as u8, random.below(200) as u8].into();
            traffic.some_flow(random, &operator);
        }
        if (random.below(1000) as f64) < 60.0 * share {
            let relay = Service {
                name: Some("turn.messenger.example".into()),
                port: 3478,
                protocol: UDP,
                ..Service::web(20_001, "US", random)
            };
            traffic.some_flow(random, &relay);
            traffic.sent += random.around(25.0 * MIB) as u64;
        }
        if random.is_one_in(24 * 60) {
            // A backup of the photos.
            traffic.sent += random.around(150.0 * MIB) as u64;
        }
    }

    fn work(&self, share: f64, random: &mut Random, traffic: &mut Traffic) {
        if (random.below(1000) as f64) < 100.0 * share {
            let repository = Service { port: 22, ..Service::web(20_002, "US", random) };
            traffic.some_flow(random, &repository);
        }
        if random.is_one_in(24 * 20) {
            // A service at a port that it may never have used.
            let port = *random.choose(&[
                21, 25, 110, 143, 465, 587, 993, 1935, 2083, 3000, 5000, 8000, 8080, 8081, 8888, 9443,
            ]);
            let service = Service { port, ..Service::web(30_000 + u64::from(port), "US", random) };
            traffic.some_flow(random, &service);
        }
        if (random.below(1000) as f64) < 30.0 * share {
            // A page that asks for news every minute.
            let page = random.choose(&self.favourites).clone();
            traffic.beacon(random, &page, 60);
        }
        if random.is_one_in(24 * 40) {
            traffic.sent += random.around(300.0 * MIB) as u64;
        }
    }

    /// Plays with others, at ports of the game.
    fn play(&self, share: f64, random: &mut Random, traffic: &mut Traffic) {
        if (random.below(1000) as f64) < 200.0 * share {
            for _ in 0..20 {
                let port = 3074 + random.below(4) as u16;
                let player = Service::unnamed(random, port, UDP, "DE");
                traffic.some_flow(random, &player);
            }
            traffic.sent += random.around(30.0 * MIB) as u64;
        }
    }

    /// Sends pictures when something moves, and a sign of life each minute.
    fn record(&self, random: &mut Random, traffic: &mut Traffic) {
        let motions = random.below(6) as f64;
        traffic.sent += random.around(2.0 * MIB + motions * 4.0 * MIB) as u64;
        let [cloud, ..] = &self.favourites[..] else { return };
        traffic.beacon(random, cloud, 60);
        traffic.queries(12, cloud.name.as_deref().unwrap_or_default());
        self.ask_time(random, traffic);
    }

    fn report(&self, random: &mut Random, traffic: &mut Traffic) {
        let [cloud, ..] = &self.favourites[..] else { return };
        traffic.sent += random.around(40_000.0) as u64;
        if random.is_one_in(12) {
            traffic.some_flow(random, &Service { port: 8883, ..cloud.clone() });
        }
        traffic.queries(4, cloud.name.as_deref().unwrap_or_default());
        self.ask_time(random, traffic);
    }

    fn ask_time(&self, random: &mut Random, traffic: &mut Traffic) {
        let time = Service { port: 123, protocol: UDP, ..Service::web(20_003, "DE", random) };
        traffic.some_flow(random, &time);
    }

    /// Sends a backup at two o'clock, and looks for updates.
    fn back_up(&self, hour_of_day: i64, random: &mut Random, traffic: &mut Traffic) {
        let [cloud, updates, ..] = &self.favourites[..] else { return };
        traffic.sent += random.around(200_000.0) as u64;
        if hour_of_day == 2 {
            traffic.sent += random.around(400.0 * MIB) as u64;
            (0..20).for_each(|_| traffic.some_flow(random, cloud));
        }
        traffic.some_flow(random, &Service { protocol: TCP, ..updates.clone() });
        traffic.queries(6, updates.name.as_deref().unwrap_or_default());
    }
}
