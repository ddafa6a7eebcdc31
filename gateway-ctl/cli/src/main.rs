//! `gateway-ctl`: the command-line client. What it does is in the library.
#![forbid(unsafe_code)]

fn main() -> std::process::ExitCode {
    gateway_cli::main()
}
