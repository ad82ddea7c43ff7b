//! `not-a-regular-file`: links, devices and pipes are never read. Checked where files are opened, in `store` and `ingest`.

use super::{About, Applies};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Evidence is read from regular files only. A symbolic link, device or pipe below the store could show one content to one reader and another to the next, or lead out of the store.",
    remedy: "Put the file or folder itself where the link, pipe or device is. The store's root may be a link; hard links are fine. A published folder may be a link, and has none in it.",
    applies: Applies::Always,
};
