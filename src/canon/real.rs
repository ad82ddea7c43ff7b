//! Reals in documents: the shortest text that reads back to the same f64, as RFC 8785 (section 3.2.2.3) and ECMAScript write it.

/// The text of a real: `inf` and `-inf` where it is infinite, `nan` where it is no number, which no document holds.
#[must_use]
pub fn text(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    ryu_js::Buffer::new().format_finite(value).to_owned()
}
