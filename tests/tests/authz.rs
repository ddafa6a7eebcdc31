//! Accounts, keys, sessions and who may do what, checked in process: the whole dispatcher over a store on disk, under
//! a clock that moves when told. Needs neither root nor network.

mod accounts;
mod command;
mod expectation;
mod keys;
mod limits;
mod matrix;
mod sessions;
mod testbed;
