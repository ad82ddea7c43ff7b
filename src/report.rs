//! Report: values become text. Renders, never decides.
//!
//! [`text`] and [`proof`] write for people at a terminal; the values themselves serialize as JSON.

pub mod proof;
pub mod text;
