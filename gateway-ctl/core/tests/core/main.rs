//! What the core makes of states, facts and questions, seen from outside.

mod first_match;
mod world;
