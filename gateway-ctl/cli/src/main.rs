//! `gateway-ctl`: the command-line client. The implementation is in the library.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    gateway_cli::main()
}
