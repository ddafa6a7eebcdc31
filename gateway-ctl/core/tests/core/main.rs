//! Public behaviour of the core for states, facts and queries.

mod addressing;
mod blocks;
mod bridges;
mod classes;
mod conflict;
mod device_paths;
mod evaluation;
mod exceptions;
mod exit_addresses;
mod explained_names;
mod first_match;
mod fixture;
mod golden;
mod interfaces;
mod lan_ipv6;
mod leak_check;
mod name_servers;
mod openvpn;
mod ordinary_traffic;
mod paths;
mod posture;
mod profiles;
mod proxies;
mod size;
mod splitting;
mod uplinks;
