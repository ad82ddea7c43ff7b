//! `path-escape`: paths stay inside. Checked by `binding::check_path`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "A path inside evidence names something inside that evidence: relative, with / between components, none of them empty, . or .., without backslash, colon or control character.",
    remedy: "Rename the file, or have the adapter write a plain relative path.",
    applies: Applies::Always,
};
