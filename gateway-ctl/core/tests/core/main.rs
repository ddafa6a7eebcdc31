//! What the core makes of states, facts and questions, seen from outside.

mod bridges;
mod conflict;
mod evaluation;
mod exceptions;
mod first_match;
mod fixture;
mod golden;
mod interfaces;
mod name_servers;
mod openvpn;
mod paths;
mod posture;
mod profiles;
mod proxies;
mod size;
mod splitting;
