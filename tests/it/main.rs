//! Integration tests: one binary, a module a subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "a test may panic and say why"
)]

mod bad_input;
mod captures;
mod cli;
mod frozen;
mod interop;
mod layers;
mod made_up;
mod properties;
mod schemas;
mod support;
mod tamper;
mod vectors;
