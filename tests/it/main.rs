//! Integration tests: one binary, a module a subject.

mod bad_input;
mod captures;
mod cli;
mod drill;
mod export;
mod frozen;
mod interop;
mod layers;
mod properties;
mod schemas;
mod support;
mod tamper;
mod vectors;
mod wiring;
