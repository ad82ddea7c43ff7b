//! Tiles: a tree's hashes in files of 256, as C2SP tlog-tiles lays them out.
//!
//! Leaf hashes go in, tiles come out, each with its path: full ones, and the partial ones at the right edge. A tile that is there can be
//! compared with the one that the leaves imply; nothing is ever believed from one. No I/O. See `specs/format-v1.md`,
//! section 13.1, and c2sp.org/tlog-tiles.
#![deny(clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use super::root_of;
use crate::digest::Sha256;

/// Hashes of a full tile.
pub const WIDTH: usize = 256;

/// Which tile: `width` hashes from place `index` × 256 on, at `level`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tile {
    /// 0 has leaf hashes, each level above the roots of 256 hashes below
    pub level: usize,
    /// Place in the level
    pub index: u64,
    /// 1 to 256
    pub width: usize,
}

impl Tile {
    /// Whether it is as wide as it will ever be.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.width == WIDTH
    }

    /// The path below `tile/` without what marks a partial tile.
    #[must_use]
    pub fn full_path(&self) -> String {
        format!("{}/{}", self.level, self.index_path())
    }

    /// The path below `tile/`.
    #[must_use]
    pub fn path(&self) -> String {
        self.full_path() + &self.partial()
    }

    /// The path below `tile/` of the bundle of the entries that a tile of level 0 has the hashes of.
    #[must_use]
    pub fn entries_path(&self) -> String {
        format!("entries/{}{}", self.index_path(), self.partial())
    }

    fn index_path(&self) -> String {
        let mut groups = vec![format!("{:03}", self.index % 1000)];
        let mut rest = self.index / 1000;
        while rest > 0 {
            groups.push(format!("x{:03}", rest % 1000));
            rest /= 1000;
        }
        groups.reverse();
        groups.join("/")
    }

    fn partial(&self) -> String {
        if self.is_full() { String::new() } else { format!(".p/{}", self.width) }
    }

    /// The tile whose path this is; none where it is no tile's.
    #[must_use]
    pub fn from_path(path: &str) -> Option<Self> {
        let (level, rest) = path.split_once('/')?;
        let (index, width) = match rest.split_once(".p/") {
            Some((index, width)) => (index, width.parse().ok()?),
            None => (rest, WIDTH),
        };
        let mut number = 0_u64;
        for group in index.split('/') {
            let digits = group.strip_prefix('x').unwrap_or(group);
            number = number.checked_mul(1000)?.checked_add(digits.parse().ok()?)?;
        }
        let tile = Self { level: level.parse().ok()?, index: number, width };
        // One tile, one spelling.
        ((1..=WIDTH).contains(&width) && tile.path() == path).then_some(tile)
    }
}

/// All hashes that the tiles of one tree are cut from.
pub struct Levels(Vec<Vec<Sha256>>);

impl Levels {
    /// Of the tree over `leaves`.
    #[must_use]
    pub fn new(leaves: &[Sha256]) -> Self {
        let mut levels = vec![leaves.to_vec()];
        while let Some(below) = levels.last().filter(|below| below.len() >= WIDTH) {
            let above = below.chunks_exact(WIDTH).map(root_of).collect();
            levels.push(above);
        }
        Self(levels)
    }

    /// All tiles of the tree: the full ones, and at the right edge of each level the partial one.
    #[must_use]
    pub fn tiles(&self) -> Vec<Tile> {
        let mut tiles = Vec::new();
        for (level, hashes) in self.0.iter().enumerate() {
            let cut = hashes.chunks(WIDTH).zip(0_u64..);
            tiles.extend(cut.map(|(hashes, index)| Tile { level, index, width: hashes.len() }));
        }
        tiles
    }

    /// The bytes of a tile; none where the tree is too small to have it.
    #[must_use]
    pub fn bytes(&self, tile: &Tile) -> Option<Vec<u8>> {
        let start = usize::try_from(tile.index).ok()?.checked_mul(WIDTH)?;
        let hashes = self.0.get(tile.level)?.get(start..start.checked_add(tile.width)?)?;
        Some(hashes.iter().flat_map(|hash| hash.0).collect())
    }
}

#[cfg(test)]
#[allow(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "a test may panic")]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_specification() {
        let path = |level, index, width| Tile { level, index, width }.path();
        assert_eq!(path(0, 1_234_067, WIDTH), "0/x001/x234/067");
        assert_eq!(path(2, 0, 1), "2/000.p/1");
        assert_eq!(path(1, 999, 255), "1/999.p/255");
        assert_eq!(path(1, 1000, WIDTH), "1/x001/000");
        let entries = |index, width| Tile { level: 0, index, width }.entries_path();
        assert_eq!(
            (entries(1_234_067, WIDTH), entries(3, 7)),
            ("entries/x001/x234/067".into(), "entries/003.p/7".into())
        );
        for (level, index, width) in [(0, 0, 256), (3, 273, 112), (0, 1_234_067, 7)] {
            let tile = Tile { level, index, width };
            assert_eq!(Tile::from_path(&tile.path()), Some(tile));
        }
        for bad in
            ["", "0", "0/0", "0/x000/001", "00/001", "0/001.p/0", "0/001.p/256", "0/001.p/07", "0/1000", "0/../1"]
        {
            assert_eq!(Tile::from_path(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_tree_of_70_000_has_the_tiles_that_the_specification_counts() {
        let leaves = vec![Sha256([7; 32]); 70_000];
        let levels = Levels::new(&leaves);
        let count = |level, full| levels.tiles().iter().filter(|t| t.level == level && t.is_full() == full).count();
        assert_eq!([count(0, true), count(0, false), count(1, true), count(1, false)], [273, 1, 1, 1]);
        assert_eq!([count(2, true), count(2, false)], [0, 1]);
        let widths: Vec<usize> = levels.tiles().iter().filter(|t| !t.is_full()).map(|t| t.width).collect();
        assert_eq!(widths, [112, 17, 1]);
        let exact = Levels::new(&leaves[..256]);
        assert_eq!(exact.tiles().iter().map(Tile::path).collect::<Vec<_>>(), ["0/000", "1/000.p/1"]);
        let tile = |level, width| exact.bytes(&Tile { level, index: 0, width });
        assert_eq!([tile(0, 2), tile(1, 1)], [Some(vec![7; 64]), Some(root_of(&leaves[..256]).0.to_vec())]);
        assert_eq!([tile(1, 2), tile(2, 1)], [None, None]);
    }
}
