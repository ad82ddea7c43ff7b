//! Reals in documents: strings that RFC 8785 would print as numbers.
//!
//! A document holds no reals but as text: the shortest digits that read back as the same binary64, laid out as ECMAScript's
//! Number::toString does, or `inf` or `-inf`; −0 is `0`, NaN never. See `specs/numerics-v1.md`, section 8.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A real that a document can hold: any binary64 but NaN, and with one zero.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Real(f64);

impl Real {
    /// +∞.
    pub const INFINITY: Real = Real(f64::INFINITY);

    /// The real; none for NaN. −0 becomes 0.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (!value.is_nan()).then_some(Self(value + 0.0))
    }

    /// Its value, never NaN.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Real {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_finite() {
            f.write_str(ryu_js::Buffer::new().format_finite(self.0))
        } else {
            f.write_str(if self.0 > 0.0 { "inf" } else { "-inf" })
        }
    }
}

impl From<Real> for String {
    fn from(real: Real) -> Self {
        real.to_string()
    }
}

/// Why a text is no real of a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not how a document writes a real")]
pub struct NotAReal(String);

impl TryFrom<String> for Real {
    type Error = NotAReal;

    /// Only the one spelling of a value is read.
    fn try_from(text: String) -> Result<Self, NotAReal> {
        match text.parse().ok().and_then(Real::new) {
            Some(real) if real.to_string() == text => Ok(real),
            _ => Err(NotAReal(text)),
        }
    }
}
