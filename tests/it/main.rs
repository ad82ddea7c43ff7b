//! Integration tests: one binary, a module a subject.

mod bad_input;
mod bundles;
mod captures;
mod cli;
mod frozen;
mod garbage;
mod interop;
mod layers;
mod logs;
mod proofs;
mod properties;
mod receipts;
mod samples;
mod schemas;
mod support;
mod tamper;
mod vectors;
