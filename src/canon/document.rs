//! Typed documents in canonical JSON.
//!
//! A document is a serde type that denies unknown fields. It is accepted only when it re-encodes to the very bytes
//! it was read from, so duplicate keys, spacing, escapes, reals and anything a lenient reader would overlook are
//! refused by one comparison. See `specs/format-v1.md`, section 2.2.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::json::{Json, JsonError, MAX_VALUES};

/// A document's canonical bytes.
///
/// # Errors
/// When the value cannot be a document: a real, an integer beyond ±(2^53 − 1), a key that is not a string.
pub fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, JsonError> {
    let loose = serde_json::to_vec(value).map_err(|error| JsonError::new(error.to_string(), 0))?;
    Ok(Json::parse(&loose)?.to_canonical()?.into_bytes())
}

/// Reads a document.
///
/// # Errors
/// When `bytes` are not the canonical bytes of a `T`.
pub fn decode<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Result<T, JsonError> {
    // What comes back to the same bytes is strict JSON, and a short text has no room for too many values. All else is read again to say why.
    if bytes.len() <= MAX_VALUES
        && let Ok(value) = serde_json::from_slice(bytes)
        && encode(&value).is_ok_and(|same| same == bytes)
    {
        return Ok(value);
    }
    Json::parse(bytes)?;
    let value: T = serde_json::from_slice(bytes)
        .map_err(|error| JsonError::new(error.to_string(), error.column().saturating_sub(1)))?;
    let expected = encode(&value)?;
    if expected == bytes {
        return Ok(value);
    }
    let at = expected.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    Err(JsonError::new("differs from its own canonical form", at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_document_is_not_canonical_is_said() {
        for (text, at) in [(r#"{"a":1, "b":2}"#, 7), (r#"{"b":1,"a":2}"#, 2), (" 1", 0), ("1\n", 1)] {
            assert_eq!(decode::<serde_json::Value>(text.as_bytes()).unwrap_err().at, at, "{text}");
        }
    }
}
