//! Merkle trees as in RFC 9162, section 2.1.1, with SHA-256.
//!
//! Entries in, a root out. Leaves and inner nodes are hashed in separate domains, so an inner node can never
//! be offered as a leaf. The tree is built in one pass and O(log n) memory. No I/O.
//! See `specs/format-v1.md`, section 5.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use crate::digest::{Sha256, Sha256Stream};

const LEAF: u8 = 0;
const NODE: u8 = 1;

/// SHA-256(0x00 ‖ entry).
#[must_use]
pub fn leaf_hash(entry: &[u8]) -> Sha256 {
    let mut stream = Sha256Stream::default();
    stream.update(&[LEAF]);
    stream.update(entry);
    stream.digest()
}

/// SHA-256(0x01 ‖ left ‖ right).
#[must_use]
pub fn node_hash(left: &Sha256, right: &Sha256) -> Sha256 {
    let mut stream = Sha256Stream::default();
    stream.update(&[NODE]);
    stream.update(&left.0);
    stream.update(&right.0);
    stream.digest()
}

/// A tree that grows at its right edge.
#[derive(Clone, Default)]
pub struct Tree {
    /// Roots of the complete subtrees, largest first, each with its height.
    peaks: Vec<(u32, Sha256)>,
    size: u64,
}

impl Tree {
    /// Adds an entry.
    pub fn push(&mut self, entry: &[u8]) {
        let mut node = leaf_hash(entry);
        let mut height = 0_u32;
        while let Some(&(top, left)) = self.peaks.last() {
            if top != height {
                break;
            }
            self.peaks.pop();
            node = node_hash(&left, &node);
            height = height.saturating_add(1);
        }
        self.peaks.push((height, node));
        self.size = self.size.saturating_add(1);
    }

    /// Number of entries.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The Merkle tree hash; that of the empty tree is SHA-256 of nothing.
    #[must_use]
    pub fn root(&self) -> Sha256 {
        let mut peaks = self.peaks.iter().rev();
        let Some(&(_, mut node)) = peaks.next() else { return Sha256::of(&[]) };
        for (_, left) in peaks {
            node = node_hash(left, &node);
        }
        node
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, reason = "a test may panic")]
mod tests {
    use super::*;

    /// RFC 9162 section 2.1.1, written as the recursion that it is.
    fn by_definition(entries: &[Vec<u8>]) -> Sha256 {
        match entries {
            [] => Sha256::of(&[]),
            [one] => leaf_hash(one),
            _ => {
                let split = entries.len().next_power_of_two() / 2;
                let (left, right) = entries.split_at(split);
                node_hash(&by_definition(left), &by_definition(right))
            }
        }
    }

    #[test]
    fn growing_tree_equals_the_definition() {
        let entries: Vec<Vec<u8>> = (0..70_u8).map(|n| vec![n; usize::from(n % 5)]).collect();
        let mut tree = Tree::default();
        for n in 0..entries.len() {
            assert_eq!(tree.root(), by_definition(&entries[..n]));
            tree.push(&entries[n]);
        }
        assert_eq!(tree.size(), 70);
    }

    #[test]
    fn a_repeated_last_leaf_is_another_tree() {
        let root = |entries: &[&[u8]]| {
            let mut tree = Tree::default();
            entries.iter().for_each(|entry| tree.push(entry));
            tree.root()
        };
        assert_ne!(root(&[b"A", b"B", b"C"]), root(&[b"A", b"B", b"C", b"C"]));
    }
}
