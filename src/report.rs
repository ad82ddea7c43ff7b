//! Report: values become text. Renders, never decides.
//!
//! [`text`], [`proof`] and [`drill`] write for people at a terminal; the values themselves serialize as JSON.

pub mod drill;
pub mod proof;
pub mod text;
