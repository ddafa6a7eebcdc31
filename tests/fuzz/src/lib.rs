//! The functions of `gateway_tests::fuzz`, built for the fuzzers.

// The folder of gateway-tests, so that the module finds its own modules there.
#[path = "../../src"]
mod gateway_tests {
    pub mod fuzz;
}

pub use gateway_tests::fuzz;
