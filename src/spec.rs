//! Specs: what a qualification demands of its captures, written down before they are made.
//!
//! In comes a TOML file (`specs/*.toml`), out comes a [`Spec`] that holds only what the schema allows. A spec requires ([`Require`]) and pins
//! ([`Pins`]): a pinned binding must be there and equal, by role. It judges nothing itself: `rule::judge_spec` does.
//! See `specs/spec-v1.md` and `schemas/spec.schema.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::binding::Run;
use crate::canon::json::Json;
use crate::digest::Sha256;
use crate::row::FIELDS;

/// `schema` of a spec.
pub const SPEC_SCHEMA: &str = "witnessmark.spec/v1";
/// The largest spec file, in bytes.
pub const MAX_SPEC: u64 = 1 << 20;

/// Why a file is not a spec.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Not TOML, or a key or type that the schema does not know
    #[error("not a spec: {0}")]
    Toml(String),
    /// A value that the schema does not allow
    #[error("{key}: expected {expected}, found {found}")]
    Value {
        /// Where
        key: String,
        /// What would be acceptable
        expected: String,
        /// What there is
        found: String,
    },
}

/// A qualification's plan, as far as it binds single captures.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// SHA-256 of the text that it was read from
    #[serde(skip)]
    pub sha256: Option<Sha256>,
    /// [`SPEC_SCHEMA`]
    pub schema: String,
    /// Name of the workload
    pub workload: String,
    /// What every capture must show
    #[serde(default)]
    pub require: Require,
    /// What every capture must be bound to
    #[serde(default)]
    pub pins: Pins,
}

/// What every capture must show.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Require {
    /// Bindings that must be given, by dotted path
    pub bindings: BTreeSet<String>,
    /// Witnesses that every row of scores must carry, by field name; `forced_*` only in replays
    pub witnesses: BTreeSet<String>,
    /// Whether the engine must be identified: a commit that is not unknown or dirty, or the digest of its binary
    pub engine_bound: bool,
    /// How the scores may have been extracted: `adapter`, `engine`, `after-id-replay`; empty: any
    pub extraction: BTreeSet<String>,
    /// The execution mode, such as `eager` or `graph`
    pub execution: Option<String>,
    /// Whether a prefix cache must be declared off
    pub no_prefix_cache: bool,
    /// Whether speculation must be declared off
    pub no_speculation: bool,
    /// Whether the requested concurrency must have been reached in some row
    pub concurrency_reached: bool,
    /// The most recomputed rows; the default is none
    pub max_recomputed: u64,
    /// The most tokens of a request, prompt and output together
    pub window: Option<u64>,
}

/// A value that a binding is pinned to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Pin {
    /// `true` or `false`
    Bool(bool),
    /// An integer
    Integer(i64),
    /// A real
    Real(f64),
    /// A string
    Text(String),
    /// A list
    List(Vec<Pin>),
}

/// Bindings that are pinned, by dotted path: for all captures, and for one role.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pins {
    /// For every capture
    pub all: BTreeMap<String, Pin>,
    /// For oracle captures
    pub oracle: BTreeMap<String, Pin>,
    /// For candidate captures
    pub candidate: BTreeMap<String, Pin>,
    /// SHA-256 of the model's files, by path
    pub model_files: BTreeMap<String, String>,
    /// SHA-256 of the tokenizer's files, by path
    pub tokenizer_files: BTreeMap<String, String>,
}

impl Spec {
    /// Reads a spec.
    ///
    /// # Errors
    /// When the text is not TOML, or not a spec of a version that this program knows.
    pub fn parse(text: &str) -> Result<Self, SpecError> {
        let mut spec: Spec = toml::from_str(text).map_err(|error| SpecError::Toml(error.to_string()))?;
        let value = |key: &str, expected: &str, found: &str| SpecError::Value {
            key: key.to_owned(),
            expected: expected.to_owned(),
            found: format!("{found:?}"),
        };
        if spec.schema != SPEC_SCHEMA {
            return Err(value("schema", SPEC_SCHEMA, &spec.schema));
        }
        if spec.workload.is_empty() {
            return Err(value("workload", "a name", ""));
        }
        let known = |name: &str| FIELDS.iter().any(|field| field.name == name && !field.required);
        if let Some(bad) = spec.require.witnesses.iter().find(|name| !known(name)) {
            return Err(value("require.witnesses", "optional fields of a row", bad));
        }
        if let Some(bad) = spec
            .require
            .extraction
            .iter()
            .find(|name| !["adapter", "engine", "after-id-replay"].contains(&name.as_str()))
        {
            return Err(value("require.extraction", "adapter, engine or after-id-replay", bad));
        }
        let digest = |text: &str| text.parse::<Sha256>().is_ok();
        let files = spec.pins.model_files.values().chain(spec.pins.tokenizer_files.values());
        if let Some(bad) = files.into_iter().find(|text| !digest(text)) {
            return Err(value("pins", "SHA-256 as 64 lower-case hexadecimal digits", bad));
        }
        spec.sha256 = Some(Sha256::of(text.as_bytes()));
        Ok(spec)
    }

    /// The pins that a capture of this run's role must satisfy.
    #[must_use]
    pub fn pins_for(&self, run: &Run) -> BTreeMap<&str, &Pin> {
        let role = match run.binding("role") {
            Some(Json::String(role)) if role == "oracle" => Some(&self.pins.oracle),
            Some(Json::String(role)) if role == "candidate" => Some(&self.pins.candidate),
            _ => None,
        };
        let pins = self.pins.all.iter().chain(role.into_iter().flatten());
        pins.map(|(path, pin)| (path.as_str(), pin)).collect()
    }
}

impl Pin {
    /// Whether run.json's value is the pinned one. Numbers compare as numbers.
    #[must_use]
    pub fn matches(&self, json: &Json) -> bool {
        match (self, json) {
            (Pin::Bool(pin), Json::Bool(value)) => pin == value,
            (Pin::Integer(pin), Json::Number(text)) => {
                text.parse::<i64>().is_ok_and(|value| value == *pin) || real(text, i64_to_f64(*pin))
            }
            (Pin::Real(pin), Json::Number(text)) => real(text, *pin),
            (Pin::Text(pin), Json::String(value)) => pin == value,
            (Pin::List(pins), Json::Array(values)) => {
                pins.len() == values.len() && pins.iter().zip(values).all(|(pin, value)| pin.matches(value))
            }
            _ => false,
        }
    }

    /// The pin as JSON, for messages.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Pin::Bool(pin) => pin.to_string(),
            Pin::Integer(pin) => pin.to_string(),
            Pin::Real(pin) => pin.to_string(),
            Pin::Text(pin) => format!("{pin:?}"),
            Pin::List(pins) => format!("[{}]", pins.iter().map(Pin::to_text).collect::<Vec<_>>().join(",")),
        }
    }
}

fn real(text: &str, pin: f64) -> bool {
    text.parse::<f64>().is_ok_and(|value| value.total_cmp(&pin).is_eq())
}

/// Pins are small integers; a larger one is compared as an integer first.
#[allow(clippy::cast_precision_loss, reason = "only asked where the text is no integer")]
fn i64_to_f64(value: i64) -> f64 {
    value as f64
}
