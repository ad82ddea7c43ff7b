//! Report: values become text. Renders, never decides.
//!
//! [`text`] writes for people at a terminal; the values themselves serialize as JSON.

pub mod text;
