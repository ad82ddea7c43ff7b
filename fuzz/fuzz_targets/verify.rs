#![no_main]
//! What somebody writes who can hash as well as we can: any bytes take the place of a part of a good capture, every digest above them is made anew,
//! and `verify` says something, the same at every depth, and the same in a bundle. What it accepts can be exported and sealed again, under the same capture id.

#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../tests/it/forge.rs"]
mod forge;
#[allow(dead_code, reason = "tests use the rest")]
#[path = "../../tests/it/synth.rs"]
mod synth;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use forge::Forge;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use synth::Synth;
use witnessmark::bundle::{self, Bundle};
use witnessmark::canon::document::{decode, encode};
use witnessmark::canon::json::Json;
use witnessmark::catalog::{Catalog, Resolved};
use witnessmark::digest::Sha256;
use witnessmark::export::{row_json, write_capture};
use witnessmark::id::{CaptureId, Nanos};
use witnessmark::manifest::{Codec, Manifest};
use witnessmark::meter::Meter;
use witnessmark::refusal::Refusal;
use witnessmark::row::{Interner, Row};
use witnessmark::seal::{Batch, Outcome};
use witnessmark::store::{Fault, Store};
use witnessmark::verify::{Depth, Options, Outcome as Verdict, verify};
use witnessmark_fuzz::{Frame, mutate};

#[allow(clippy::disallowed_methods, reason = "a fuzz target has no command line of its own")]
static GOOD: LazyLock<[Forge; 2]> = LazyLock::new(|| {
    let good = ["self-replay", "capture-only"].map(|mode| {
        let mut synth = Synth::shaped(mode, 7, 2, 3);
        synth.chain();
        synth.digest_all();
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        synth.write(folder.path());
        Forge::of(folder.path())
    });
    // The parts as they are, to begin with: SEEDS=fuzz/corpus/verify.
    if let Some(folder) = std::env::var_os("SEEDS") {
        fs::create_dir_all(&folder).unwrap();
        for (which, forge) in good.iter().enumerate() {
            let mut forge = forge.clone();
            let manifest = forge.manifest();
            let root = tempfile::tempdir_in("/dev/shm").unwrap();
            forge.publish(root.path(), &manifest);
            let object = |id| fs::read(root.path().join(Store::object_path(id))).unwrap();
            let rows = forge.rows.iter().zip(0..).map(|(row, number)| row_json(row, number).to_text() + "\n");
            let parts = [
                ("run", forge.run.clone()),
                ("rows", rows.collect::<String>().into_bytes()),
                ("manifest", encode(&manifest).unwrap()),
                ("rows-shard", object(&manifest.row_shards[0].object)),
                ("scores-shard", object(&manifest.score_shards[0].object)),
            ];
            for (kind, part) in parts {
                let seed = [format!("{which}{kind}\n").into_bytes(), part].concat();
                fs::write(Path::new(&folder).join(format!("{kind}-{which}")), seed).unwrap();
            }
        }
    }
    good
});

/// Where every bundle is put, as a seed for the target `bundle`: BUNDLES=fuzz/corpus/bundle.
#[allow(clippy::disallowed_methods, reason = "a fuzz target has no command line of its own")]
static BUNDLES: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
    let folder = PathBuf::from(std::env::var_os("BUNDLES")?);
    fs::create_dir_all(&folder).unwrap();
    Some(folder)
});

/// The first line says of which capture, and which part: run.json, rows (lines of rows.jsonl), manifest, a rows shard, a scores shard.
fn forged(line: &[u8], part: &[u8]) -> Option<(Forge, Manifest)> {
    let (&which, kind) = line.split_first()?;
    let mut forge = GOOD[usize::from(which % 2)].clone();
    let mut manifest = forge.manifest();
    match kind {
        b"run" => {
            forge.run = part.to_vec();
            manifest = forge.manifest();
        }
        b"rows" => {
            let mut interner = Interner::default();
            let lines = part.split(|&byte| byte == b'\n').filter_map(|line| Json::parse(line).ok());
            let rows: Vec<Row> = lines.filter_map(|json| Some(Row::from_json(&json, &mut interner).ok()?.0)).collect();
            let digests: Vec<_> = forge.rows.iter().map(|row| row.score_digest).collect();
            forge.rows = rows;
            for (row, digest) in forge.rows.iter_mut().zip(digests) {
                row.score_digest = digest;
            }
            manifest = forge.manifest();
        }
        b"manifest" => manifest = decode(part).ok()?,
        b"rows-shard" => manifest.row_shards[0] = forge.row_shard(part.to_vec(), manifest.row_shards[0].rows),
        b"scores-shard" => {
            let shard = &mut manifest.score_shards[0];
            (shard.object, shard.bytes) = (forge.put(part.to_vec()), u64::try_from(part.len()).ok()?);
        }
        _ => return None,
    }
    Some((forge, manifest))
}

fuzz_target!(|bytes: &[u8]| {
    LazyLock::force(&GOOD);
    let cut = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(bytes.len());
    let (line, part) = bytes.split_at(cut);
    let Some((mut forge, manifest)) = forged(line, part.get(1..).unwrap_or_default()) else { return };
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    forge.publish(&folder.path().join("s"), &manifest);
    let store = Store::open(&folder.path().join("s")).unwrap();
    let catalog = Catalog::load(&store).unwrap();
    let bundle = bundled(&catalog, &folder.path().join("b"));
    for capture in catalog.captures() {
        let (quick, full) = (said(&catalog, capture, Depth::Rows), said(&catalog, capture, Depth::Full));
        if let Some(bundle) = &bundle {
            let handed = said(&bundle.catalog(), capture, Depth::Full);
            assert_eq!(refused(&full), refused(&handed), "in a store, and in a bundle of it");
            assert_eq!(full.verified.is_some(), handed.verified.is_some());
        }
        let Some(verified) = full.verified else { continue };
        assert!(quick.verified.is_some(), "a full pass asks more than a quick one: {:?}", quick.findings.refusals);
        let dir = folder.path().join("out");
        fs::create_dir(&dir).unwrap();
        write_capture(&store, &verified, &dir, &Meter::default()).unwrap().unwrap();
        assert_eq!(seal_again(folder.path(), &dir), capture);
    }
});

fn said(catalog: &Catalog<'_>, capture: CaptureId, depth: Depth) -> Verdict {
    let resolved = Resolved { capture, manifests: catalog.manifests_of(capture) };
    verify(catalog, &resolved, Options { depth, model: None, spec: None }, &Meter::default()).unwrap()
}

fn refused(verdict: &Verdict) -> BTreeSet<&Refusal> {
    verdict.findings.refusals.iter().collect()
}

/// All that the log names, handed on in a file; none where that is refused, as what cannot be found is in no bundle.
fn bundled(catalog: &Catalog<'_>, file: &Path) -> Option<Bundle> {
    let places = catalog.log.places().map(|(place, _)| place).collect();
    let mut bytes = Vec::new();
    match bundle::write(catalog, &places, &mut bytes, &Meter::default()) {
        Ok(_) => {}
        Err(Fault::Refused(_)) => return None,
        Err(Fault::Error(error)) => panic!("{error}"),
    }
    if let Some(folder) = &*BUNDLES {
        fs::write(folder.join(Sha256::of(&bytes).to_string()), &bytes).unwrap();
    }
    fs::write(file, bytes).unwrap();
    let bundle = Bundle::open(file).unwrap().unwrap();
    assert!(bundle.refusals.is_empty(), "written, and refused: {:?}", bundle.refusals);
    Some(bundle)
}

fn seal_again(folder: &Path, dir: &Path) -> CaptureId {
    let store = Store::create(&folder.join("again"), "1".repeat(32)).unwrap();
    let meter = Meter::default();
    let mut batch = Batch::new(&store, Codec::Lz4, None, &meter).unwrap();
    batch.add(dir, None).unwrap();
    match batch.commit(Nanos(1)).unwrap().as_slice() {
        [Outcome::Sealed(sealed)] => sealed.capture,
        other => panic!("verified, and not sealed again: {other:?}"),
    }
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate(Frame::Lines, data, size, max_size, seed)
});
