//! Canonical forms: one value has one spelling in bytes.
//!
//! [`json`] reads what others write and writes what we sign; [`document`] makes typed documents of it;
//! [`real`] is how documents write reals; [`scores`] gives a row of scores its one dtype and digest. Bytes in, bytes and digests out; no I/O.
//! See `specs/format-v1.md`, sections 2 and 4.

pub mod document;
pub mod json;
pub mod real;
pub mod scores;
