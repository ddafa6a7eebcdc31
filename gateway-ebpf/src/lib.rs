//! Empty: the library exists so that the package has a target on the host; the programs are in `main.rs`.
#![no_std]
