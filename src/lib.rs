//! witnessmark: evidence of LLM inference runs that can be trusted by people who do not trust each other.
//!
//! Capture directories go in, sealed captures come out: content-addressed objects, one manifest, one log entry. `verify`
//! re-derives everything from the leaves up and refuses by name. The format is in `specs/format-v1.md`; which room may use which
//! is in ARCHITECTURE.md.

pub mod binding;
pub mod bundle;
pub mod canon;
pub mod catalog;
pub mod cli;
pub mod compare;
pub mod diff;
pub mod digest;
pub mod drill;
pub mod export;
pub mod facts;
pub mod fetch;
pub mod gc;
pub mod id;
pub mod ingest;
pub mod log;
pub mod manifest;
pub mod merkle;
pub mod meter;
pub mod near;
pub mod note;
pub mod numerics;
pub mod pipeline;
pub mod proof;
pub mod prove;
pub mod qualify;
pub mod refusal;
pub mod report;
pub mod row;
pub mod rule;
pub mod seal;
pub mod shard;
pub mod shown;
pub mod spec;
pub mod stats;
pub mod store;
pub mod verify;
