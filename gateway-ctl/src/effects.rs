//! The only code that touches the kernel or other processes.
