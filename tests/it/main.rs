//! Integration tests: one binary, a module a subject.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::cast_possible_truncation,
    reason = "a test may panic and say why"
)]
#![allow(unreachable_pub, reason = "what the modules of this one binary share")]

mod bad_input;
mod bundles;
mod captures;
mod cases;
mod cli;
mod crash;
mod doors;
mod drill;
mod export;
mod forge;
mod frozen;
mod garbage;
mod interop;
mod layers;
mod logs;
mod made_up;
mod numerics;
mod pages;
mod proofs;
mod properties;
mod qualify;
mod receipts;
mod reports;
mod samples;
mod schemas;
mod support;
mod synth;
mod tamper;
mod vectors;
mod wiring;
