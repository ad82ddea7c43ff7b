//! Shards: Parquet files whose every byte is decided.
//!
//! Rows and pages go in, file bytes come out, and back. The reader re-encodes the header, offset index and footer that the
//! content implies and compares, so nothing can hide in them; it never parses a footer and never allocates what a header
//! claims. Any Parquet reader reads the files as they are. See `specs/format-v1.md`, section 8.

mod lz4;
pub mod page;
pub mod rows;
pub mod scores;
mod thrift;

/// The magic at both ends of a Parquet file.
pub const MAGIC: &[u8; 4] = b"PAR1";
/// The pinned `created_by`.
pub const CREATED_BY: &str = "witnessmark version 1.0.0";

/// Why bytes are not the shard they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardFault {
    /// The page (row of a scores shard, column of a rows shard) in which it was seen
    pub page: Option<u64>,
    /// What the format demands
    pub expected: String,
    /// What there is
    pub found: String,
}

impl ShardFault {
    /// A fault outside any page.
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { page: None, expected: expected.into(), found: found.into() }
    }

    /// The same fault, seen in a page.
    #[must_use]
    pub fn in_page(mut self, page: u64) -> Self {
        self.page = Some(page);
        self
    }
}
