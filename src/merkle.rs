//! Merkle trees as in RFC 9162, section 2.1, with SHA-256: roots, inclusion proofs, consistency proofs, tiles.
//!
//! Entries or leaf hashes in, a root or a path out. Leaves and inner nodes are hashed in separate domains, so an inner node can never
//! be offered as a leaf. A root is built in one pass and O(log n) memory; paths are made from all leaf hashes and checked, by
//! the RFC's own algorithms, from nothing but themselves. No I/O. See `specs/format-v1.md`, sections 5, 12 and 13.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use crate::digest::{Sha256, Sha256Stream};

pub mod tile;

const LEAF: u8 = 0;
const NODE: u8 = 1;

/// SHA-256(0x00 ‖ entry).
#[must_use]
pub fn leaf_hash(entry: &[u8]) -> Sha256 {
    let mut stream = LeafStream::default();
    stream.update(entry);
    stream.digest()
}

/// [`leaf_hash`] of an entry that arrives in parts.
pub struct LeafStream(Sha256Stream);

impl Default for LeafStream {
    fn default() -> Self {
        let mut stream = Sha256Stream::default();
        stream.update(&[LEAF]);
        Self(stream)
    }
}

impl LeafStream {
    /// Takes the next part.
    pub fn update(&mut self, part: &[u8]) {
        self.0.update(part);
    }

    /// The hash of all parts so far as one entry.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        self.0.digest()
    }
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
        self.push_leaf(leaf_hash(entry));
    }

    /// Adds an entry by its leaf hash.
    pub fn push_leaf(&mut self, leaf: Sha256) {
        let mut node = leaf;
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

/// The Merkle tree hash over leaf hashes.
#[must_use]
pub fn root_of(leaves: &[Sha256]) -> Sha256 {
    let mut tree = Tree::default();
    leaves.iter().for_each(|&leaf| tree.push_leaf(leaf));
    tree.root()
}

/// Splits at the largest power of two below the length; none where there is nothing to split.
fn split(leaves: &[Sha256]) -> Option<(&[Sha256], &[Sha256])> {
    let half = leaves.len().checked_next_power_of_two()?.checked_div(2)?;
    if half == 0 { None } else { leaves.split_at_checked(half) }
}

/// The inclusion path of the leaf at `index` (RFC 9162 section 2.1.3.1); none beyond the last leaf.
#[must_use]
pub fn inclusion_path(leaves: &[Sha256], index: u64) -> Option<Vec<Sha256>> {
    let mut index = usize::try_from(index).ok().filter(|&index| index < leaves.len())?;
    let (mut rest, mut path) = (leaves, Vec::new());
    while let Some((left, right)) = split(rest) {
        let (next, sibling) = match index.checked_sub(left.len()) {
            None => (left, right),
            Some(beyond) => {
                index = beyond;
                (right, left)
            }
        };
        path.push(root_of(sibling));
        rest = next;
    }
    path.reverse();
    Some(path)
}

/// The consistency path from the first `old` leaves to all of them (RFC 9162 section 2.1.4.1); empty where one of the trees is
/// empty or both are equal, none where `old` is beyond the last leaf.
#[must_use]
pub fn consistency_path(leaves: &[Sha256], old: u64) -> Option<Vec<Sha256>> {
    let mut old = usize::try_from(old).ok().filter(|&old| old <= leaves.len())?;
    let (mut rest, mut path, mut known) = (leaves, Vec::new(), true);
    if old == 0 {
        return Some(path);
    }
    while old < rest.len() {
        let (left, right) = split(rest)?;
        let (next, sibling) = match old.checked_sub(left.len()).filter(|&beyond| beyond > 0) {
            None => (left, right),
            Some(beyond) => {
                old = beyond;
                known = false;
                (right, left)
            }
        };
        path.push(root_of(sibling));
        rest = next;
    }
    // Whoever checks has the root of the old tree, and so the first node, only while no left sibling was passed.
    if !known {
        path.push(root_of(rest));
    }
    path.reverse();
    Some(path)
}

/// The root that a leaf hash and its inclusion path lead to (RFC 9162 section 2.1.3.2); none where the path does not fit a tree of
/// `size` leaves, by a node too many or too few.
#[must_use]
pub fn root_from_inclusion(leaf: Sha256, index: u64, size: u64, path: &[Sha256]) -> Option<Sha256> {
    let (mut place, mut last) = (index, size.checked_sub(1)?);
    if place > last {
        return None;
    }
    let mut root = leaf;
    for node in path {
        if last == 0 {
            return None;
        }
        if place & 1 == 1 || place == last {
            root = node_hash(node, &root);
            while place & 1 == 0 && place != 0 {
                (place, last) = (place >> 1, last >> 1);
            }
        } else {
            root = node_hash(&root, node);
        }
        (place, last) = (place >> 1, last >> 1);
    }
    (last == 0).then_some(root)
}

/// The size and root of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Number of leaves
    pub size: u64,
    /// Merkle tree hash
    pub root: Sha256,
}

/// Whether a consistency path shows that the tree `new` begins with the leaves of `old` (RFC 9162 section 2.1.4.2). Every tree begins
/// with the empty one.
#[must_use]
pub fn is_consistent(old: Size, new: Size, path: &[Sha256]) -> bool {
    if old.size == 0 || old.size >= new.size {
        let trivial = if old.size == 0 { old.root == Sha256::of(&[]) } else { old == new };
        return trivial && path.is_empty() && (new.size > 0 || new.root == Sha256::of(&[]));
    }
    // For a power of two the old root is itself the first node.
    let first = old.size.is_power_of_two().then_some(&old.root);
    let mut nodes = first.into_iter().chain(path);
    let (Some(start), false) = (nodes.next(), path.is_empty()) else { return false };
    let (mut place, mut last) = (old.size.saturating_sub(1), new.size.saturating_sub(1));
    while place & 1 == 1 {
        (place, last) = (place >> 1, last >> 1);
    }
    let (mut old_root, mut new_root) = (*start, *start);
    for node in nodes {
        if last == 0 {
            return false;
        }
        if place & 1 == 1 || place == last {
            old_root = node_hash(node, &old_root);
            new_root = node_hash(node, &new_root);
            while place & 1 == 0 && place != 0 {
                (place, last) = (place >> 1, last >> 1);
            }
        } else {
            new_root = node_hash(&new_root, node);
        }
        (place, last) = (place >> 1, last >> 1);
    }
    old_root == old.root && new_root == new.root && last == 0
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
