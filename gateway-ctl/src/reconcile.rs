//! The loop that brings the kernel to the compiled plan.
