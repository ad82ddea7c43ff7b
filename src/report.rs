//! Report: values become text. Renders, never decides.
//!
//! [`text`] (and [`drill`], for its one command) writes for people at a terminal; the values themselves serialize as JSON.

pub mod drill;
pub mod text;
