//! A real database of the countries of addresses.

use std::net::IpAddr;
use std::path::Path;

use gateway_core::countries::Countries as _;
use gateway_ctl::services::countries::CountryDatabase;

#[test]
fn addresses_of_well_known_operators_are_in_their_countries() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/tools/countries.mmdb");
    assert!(file.is_file(), "no database of countries: run `cargo xtask setup`");
    let database = CountryDatabase::default();
    database.update(Some(&file));
    assert_eq!(database.error(), None);
    let country = |address: &str| {
        let address: IpAddr = address.parse().expect("an address");
        database.country(address).map(|code| code.to_string())
    };
    // The registries of North America and Europe, and a provider in Germany.
    assert_eq!(country("8.8.8.8").as_deref(), Some("US"));
    assert_eq!(country("193.0.6.139").as_deref(), Some("NL"));
    assert_eq!(country("80.128.0.1").as_deref(), Some("DE"));
    assert_eq!(country("::ffff:80.128.0.1").as_deref(), Some("DE"));
    assert_eq!(country("2001:4860:4860::8888").as_deref(), Some("US"));
    assert_eq!(country("192.168.1.1"), None);
}
