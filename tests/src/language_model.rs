//! A real small language model behind a server of llama.cpp, which `cargo xtask setup` loads for the suite
//! `assistant_model`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Environment of Python with the server and the model, in place of the one of the set-up.
const ENVIRONMENT: &str = "GATEWAY_LANGUAGE_MODEL";

/// Running server. Dropping it ends it.
#[derive(Debug)]
pub struct LanguageModel {
    process: Child,
    pub url: String,
}

impl LanguageModel {
    /// Starts the server, and waits until the model is loaded.
    pub fn start() -> Result<LanguageModel> {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let environment = std::env::var_os(ENVIRONMENT).map(PathBuf::from);
        let environment = environment.unwrap_or_else(|| tests.join("../target/language-model"));
        let python = environment.join("bin/python");
        ensure!(python.is_file(), "no language model: run `cargo xtask test --only assistant_model`");
        let mut process = Command::new(python)
            .arg(tests.join("data/assistant/serve.py"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("Python starts")?;
        let output = process.stdout.take().context("its output")?;
        let mut url = String::new();
        let read = BufReader::new(output).read_line(&mut url);
        // From here on, the value ends the process.
        let model = LanguageModel { process, url: url.trim().to_owned() };
        read.context("the URL of the server")?;
        ensure!(model.url.starts_with("http://127.0.0.1:"), "the server ended: {:?}", model.url);
        Ok(model)
    }
}

impl Drop for LanguageModel {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
