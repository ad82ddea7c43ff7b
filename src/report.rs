//! Report: values become text. Renders, never decides.
//!
//! [`text`], [`proof`], [`drill`], [`qualify`] and [`stats`] write for people at a terminal, [`html`] for people with a browser; the values themselves serialize as JSON.

pub mod calibration;
pub mod drill;
pub mod html;
pub mod proof;
pub mod qualify;
pub mod stats;
pub mod text;
