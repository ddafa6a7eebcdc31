//! Accounts, keys, sessions and authorization, checked in process: the complete dispatcher over a store on disk with a
//! test clock. Needs neither root nor network.

mod accounts;
mod command;
mod expectation;
mod health;
mod keys;
mod limits;
mod matrix;
mod secrets;
mod sessions;
mod testbed;
