//! What the core makes of states, facts and questions, seen from outside.

mod conflict;
mod evaluation;
mod exceptions;
mod first_match;
mod golden;
mod openvpn;
mod paths;
mod posture;
mod profiles;
mod size;
mod world;
