//! Integration tests: one binary, a module a subject.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stderr, reason = "a test that fails must say so")]

mod bad_input;
mod captures;
mod cases;
mod cli;
mod frozen;
mod interop;
mod layers;
mod properties;
mod schemas;
mod support;
mod tamper;
mod vectors;
