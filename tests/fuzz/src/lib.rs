//! The functions of `gateway_tests::fuzz`, built for the fuzzers.

// Named like the folder of gateway-tests, so that the module finds its submodules there.
#[path = "../../src"]
mod gateway_tests {
    pub mod fuzz;
}

pub use gateway_tests::fuzz;
