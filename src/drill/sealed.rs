//! Corruptions of the store: what disks, syncs and people with write access do to what is sealed.
//!
//! Each entry of [`MUTATIONS`] gives one or more tampered stores, and says which rule must refuse all of them. Where digests above the corruption are
//! made anew, the capture id stays the one that a reader asks for; corruptions that also change the id stand in `evidence`.

use super::dice::Dice;
use super::draft::find_mut;
use super::evidence::{EXECUTION, KV_DTYPE, MODEL, SCHEDULE, TOKENIZER};
use super::forge::{Change, Changes, Replica, Tampered, set_rows};
use super::{Expect, Skip, not_applicable};
use crate::canon::document;
use crate::canon::json::Json;
use crate::canon::scores::{Canonical, Dtype};
use crate::catalog::Resolved;
use crate::digest::{Blake3, Sha256};
use crate::id::{CaptureId, ObjectId, long};
use crate::manifest::{Attachment, Head, Manifest, ScoreShard};
use crate::refusal::Rule;
use crate::shard::rows as row_shard;
use crate::store::Store;

/// A known corruption of the store.
pub(super) struct Mutation {
    pub(super) name: &'static str,
    pub(super) does: &'static str,
    pub(super) corrupt: fn(&Replica<'_>, &mut Dice) -> Result<Vec<Tampered>, Skip>,
}

macro_rules! mutations {
    ($($name:literal: $corrupt:expr, $does:literal;)*) => {
        [$(Mutation { name: $name, does: $does, corrupt: $corrupt },)*]
    };
}

/// All of them, in the order of a drill.
pub(super) const MUTATIONS: &[Mutation] = &mutations! {
    "manifest-byte": |replica, dice| flip(replica, dice, "manifest"), "a bit of the manifest is flipped: at its start, inside, at its end";
    "run-json-byte": |replica, dice| flip(replica, dice, "run.json"), "a bit of the sealed run.json";
    "rows-shard-byte": |replica, dice| flip(replica, dice, "rows shard"), "a bit of a rows shard: header, page, footer";
    "scores-shard-byte": |replica, dice| flip(replica, dice, "scores shard"), "a bit of a scores shard: header, page, footer";
    "attachment-byte": |replica, dice| flip(replica, dice, "attachment"), "a bit of an attachment";
    "object-missing": object_missing, "an object is not there, one of each kind";
    "object-truncated": object_truncated, "an object lost its last byte, one of each kind";
    "object-extended": object_extended, "an object has a byte more, one of each kind";
    "object-symlink": object_symlink, "a link stands in place of an object, or of its folder";
    "bindings-altered": bindings_altered, "model, tokenizer, KV dtype, execution or schedule in the sealed run.json, nothing rehashed";
    "bindings-object-rehashed": bindings_object_rehashed, "… and run.json and manifest rehashed under the same capture id";
    "scores-shard-dropped": scores_shard_dropped, "the last scores shard is left out, the manifest rehashed";
    "scores-page-dropped": scores_page_dropped, "the last row of scores is left out, totals patched, shard and manifest rehashed";
    "rows-shard-cut": rows_shard_cut, "the last row record is left out, totals patched, shard and manifest rehashed";
    "scores-shards-swapped": scores_shards_swapped, "two scores shards change places, the manifest rehashed";
    "scores-pages-swapped": scores_pages_swapped, "two rows of a scores shard change places, shard and manifest rehashed";
    "score-in-shard-altered": score_in_shard_altered, "one score, with shard and manifest rehashed";
    "row-record-altered": row_record_altered, "a row record, with rows shard and manifest rehashed";
    "row-x-respelled": row_x_respelled, "a row record whose x is not canonical JSON, everything rehashed";
    "capture-document-altered": capture_document_altered, "the row root in the capture document, the manifest rehashed";
    "manifest-keys-unsorted": |replica, _| respelled(replica, unsorted), "the manifest's keys in another order, rehashed";
    "manifest-spaced": |replica, _| respelled(replica, |text| format!("{text}\n")), "a line feed after the manifest, rehashed";
    "manifest-unknown-key": |replica, _| respelled(replica, |text| text.replacen('{', "{\"a\":0,", 1)), "a key that the schema does not have, rehashed";
    "attachment-path-escape": attachment_path_escape, "an attachment's path leads out of its folder, everything rehashed";
    "shard-padded": shard_padded, "bytes after the end of a shard, rehashed";
    "shard-footer-altered": shard_footer_altered, "another writer in a shard's footer, rehashed";
    "log-entry-altered": log_entry_altered, "the time of the capture's log entry";
    "log-entry-dropped": log_entry_dropped, "the last log entry is left out";
    "log-entry-forged": log_entry_forged, "the manifest is logged for another capture id, the log rehashed";
    "log-head-altered": log_head_altered, "size, root, length or origin in the log's head";
    "log-head-missing": |replica, _| log_file_gone(replica, "log/head"), "the log's head is not there";
    "log-entries-missing": |replica, _| log_file_gone(replica, "log/entries"), "the log's entries are not there";
    "log-rolled-back": log_rolled_back, "an older log and head that fit each other";
    "log-rewritten": log_rewritten, "the time of the last entry, the log rehashed";
    "ref-renamed": ref_renamed, "a run id's ref under another run id's file name";
};

/// Another value of the same type that is not longer when written; none for null, arrays and objects.
pub(super) fn another_value(value: &Json) -> Option<Json> {
    let last = |text: &str| {
        let mut text = text.to_owned();
        let other = if text.pop()? == '0' { '1' } else { '0' };
        text.push(other);
        Some(text)
    };
    match value {
        Json::String(text) => Some(Json::String(match text.as_str() {
            "eager" => "graph".to_owned(),
            "bfloat16" => "float16".to_owned(),
            text => last(text)?,
        })),
        Json::Number(text) if text == "1" => Some(Json::Number("2".to_owned())),
        Json::Number(text) => last(text).filter(|text| text.len() == 1 || !text.starts_with('0')).map(Json::Number),
        Json::Bool(value) => Some(Json::Bool(!value)),
        _ => None,
    }
}

fn tampered(
    rule: Rule,
    detail: impl Into<String>,
    (changes, resolved): (Changes, Resolved),
) -> Result<Vec<Tampered>, Skip> {
    Ok(vec![Tampered { detail: detail.into(), expect: Expect::rule(rule), changes, resolved }])
}

/// Objects of one kind: all where there are few, else the first, the last and two others.
fn objects(replica: &Replica<'_>, dice: &mut Dice, kind: &str) -> Vec<(ObjectId, String)> {
    const FEW: usize = 4;
    let manifest = (replica.manifest_id, 0, "manifest".to_owned());
    let all = replica.manifest.objects().into_iter().chain([manifest]);
    let of_kind: Vec<(ObjectId, String)> =
        all.filter(|(_, _, role)| role.starts_with(kind)).map(|(id, _, role)| (id, role)).collect();
    if of_kind.len() <= FEW {
        return of_kind;
    }
    let mut chosen = vec![0, of_kind.len() - 1, dice.below(of_kind.len()), dice.below(of_kind.len())];
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().filter_map(|n| of_kind.get(n).cloned()).collect()
}

const KINDS: [&str; 5] = ["manifest", "run.json", "rows shard", "scores shard", "attachment"];

/// One object of each kind there is.
fn one_of_each(replica: &Replica<'_>, dice: &mut Dice) -> Vec<(ObjectId, String)> {
    KINDS
        .into_iter()
        .filter_map(|kind| {
            let of_kind = objects(replica, dice, kind);
            of_kind.get(dice.below(of_kind.len())).cloned()
        })
        .collect()
}

fn flip(replica: &Replica<'_>, dice: &mut Dice, kind: &str) -> Result<Vec<Tampered>, Skip> {
    const EDGE: usize = 8;
    let mut cases = Vec::new();
    for (id, role) in objects(replica, dice, kind) {
        let len = replica.object(&id)?.len();
        if len == 0 {
            continue;
        }
        let edge = EDGE.min(len);
        let mut places = vec![dice.below(edge), dice.below(len), len - 1 - dice.below(edge)];
        places.dedup();
        for place in places {
            let changes = vec![(Store::object_path(&id), Change::Flip(place))];
            cases.extend(tampered(Rule::ObjectDigest, format!("{role}, byte {place}"), (changes, replica.resolved()))?);
        }
    }
    if cases.is_empty() { not_applicable(format!("the capture has no {kind}")) } else { Ok(cases) }
}

fn each(
    replica: &Replica<'_>,
    dice: &mut Dice,
    rule: Rule,
    change: impl Fn(&[u8]) -> Change,
) -> Result<Vec<Tampered>, Skip> {
    let mut cases = Vec::new();
    for (id, role) in one_of_each(replica, dice) {
        let changes = vec![(Store::object_path(&id), change(&replica.object(&id)?))];
        cases.extend(tampered(rule, role, (changes, replica.resolved()))?);
    }
    Ok(cases)
}

fn object_missing(replica: &Replica<'_>, dice: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    each(replica, dice, Rule::ObjectMissing, |_| Change::Gone)
}

fn object_truncated(replica: &Replica<'_>, dice: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let cut = |bytes: &[u8]| Change::Bytes(bytes.split_last().map_or_else(|| b"x".to_vec(), |(_, rest)| rest.to_vec()));
    each(replica, dice, Rule::ObjectDigest, cut)
}

fn object_extended(replica: &Replica<'_>, dice: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    each(replica, dice, Rule::ObjectDigest, |bytes| Change::Bytes([bytes, b"\0"].concat()))
}

fn object_symlink(replica: &Replica<'_>, dice: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut cases = each(replica, dice, Rule::NotARegularFile, |_| Change::Link)?;
    if let Some((id, role)) = one_of_each(replica, dice).pop() {
        let path = Store::object_path(&id);
        let folder = path.rsplit_once('/').map_or(path.as_str(), |(folder, _)| folder).to_owned();
        let case = (vec![(folder, Change::Link)], replica.resolved());
        cases.extend(tampered(Rule::NotARegularFile, format!("the folder of the {role}"), case)?);
    }
    Ok(cases)
}

/// The sealed run.json with one binding changed, padded to its old length, for each binding it gives.
fn rebound(replica: &Replica<'_>) -> Result<Vec<(String, Vec<u8>)>, Skip> {
    let bytes = replica.object(&replica.manifest.run_object)?;
    let json = Json::parse(&bytes)?;
    let mut out = Vec::new();
    for path in [MODEL, TOKENIZER, KV_DTYPE, EXECUTION, SCHEDULE].into_iter().flatten() {
        let mut json = json.clone();
        let Some(place) = find_mut(&mut json, path) else { continue };
        let Some(other) = another_value(place) else { continue };
        *place = other;
        let mut text = json.to_text().into_bytes();
        // White space is free in run.json: the length need not tell.
        if text.len() <= bytes.len() {
            text.resize(bytes.len(), b' ');
            out.push(((*path).to_owned(), text));
        }
    }
    if out.is_empty() { not_applicable("run.json gives none of these bindings") } else { Ok(out) }
}

fn bindings_altered(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut cases = Vec::new();
    for (path, bytes) in rebound(replica)? {
        let changes = vec![(Store::object_path(&replica.manifest.run_object), Change::Bytes(bytes))];
        cases.extend(tampered(Rule::ObjectDigest, path, (changes, replica.resolved()))?);
    }
    Ok(cases)
}

fn bindings_object_rehashed(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut cases = Vec::new();
    for (path, bytes) in rebound(replica)? {
        let mut manifest = replica.manifest.clone();
        manifest.run_object = ObjectId(Blake3::of(&bytes));
        let (mut changes, resolved) = replica.forge(&manifest)?;
        changes.push((Store::object_path(&manifest.run_object), Change::Bytes(bytes)));
        cases.extend(tampered(Rule::RootMismatch, path, (changes, resolved))?);
    }
    Ok(cases)
}

/// The last scores shard.
fn last_shard<'m>(replica: &'m Replica<'_>) -> Result<&'m ScoreShard, Skip> {
    replica.manifest.score_shards.last().map_or_else(|| not_applicable("a baseline has no scores"), Ok)
}

fn scores_shard_dropped(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    last_shard(replica)?;
    let mut manifest = replica.manifest.clone();
    manifest.score_shards.pop();
    tampered(Rule::TreeSize, format!("shard {}", manifest.score_shards.len()), replica.forge(&manifest)?)
}

/// The manifest with its last scores shard made of these pages.
fn with_last_shard(replica: &Replica<'_>, pages: &[&[u8]]) -> Result<(Manifest, (String, Change)), Skip> {
    let (shard, change) = replica.shard(last_shard(replica)?, pages)?;
    let mut manifest = replica.manifest.clone();
    manifest.score_shards.pop();
    manifest.score_shards.push(shard);
    Ok((manifest, change))
}

fn with_change(forged: (Changes, Resolved), change: (String, Change)) -> (Changes, Resolved) {
    let (mut changes, resolved) = forged;
    changes.push(change);
    (changes, resolved)
}

fn scores_page_dropped(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let pages = replica.pages(last_shard(replica)?)?;
    let mut bodies: Vec<&[u8]> = pages.iter().map(|page| page.body()).collect();
    bodies.pop();
    if bodies.is_empty() {
        return not_applicable("the last scores shard has one row");
    }
    let (manifest, change) = with_last_shard(replica, &bodies)?;
    tampered(Rule::TreeSize, format!("{} rows left", bodies.len()), with_change(replica.forge(&manifest)?, change))
}

fn rows_shard_cut(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut manifest = replica.manifest.clone();
    let Some(shard) = manifest.row_shards.last_mut().filter(|shard| shard.rows > 1) else {
        return not_applicable("the last rows shard has one row");
    };
    let count = usize::try_from(shard.rows).unwrap_or(0);
    let start = replica.rows.len().saturating_sub(count);
    let file = row_shard::encode(&replica.rows[start..replica.rows.len() - 1]);
    (shard.rows, shard.bytes, shard.object) = (shard.rows - 1, long(file.len()), ObjectId(Blake3::of(&file)));
    let change = (Store::object_path(&shard.object), Change::Bytes(file));
    tampered(Rule::TreeSize, format!("{} rows left", count - 1), with_change(replica.forge(&manifest)?, change))
}

fn scores_shards_swapped(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut digests: Vec<Option<Blake3>> = replica.rows.iter().map(|row| row.score_digest).collect();
    digests.sort();
    if digests.windows(2).any(|pair| pair[0] == pair[1]) {
        return not_applicable("rows with equal scores would also be named as copies");
    }
    let mut manifest = replica.manifest.clone();
    let mut changes = Vec::new();
    if manifest.score_shards.len() < 2 {
        // Where shards are cut is free: one shard can be cut in two.
        let like = last_shard(replica)?;
        let pages = replica.pages(like)?;
        let bodies: Vec<&[u8]> = pages.iter().map(|page| page.body()).collect();
        if bodies.len() < 2 {
            return not_applicable("there is one row");
        }
        let (first, second) = bodies.split_at(bodies.len() / 2);
        manifest.score_shards.clear();
        for part in [first, second] {
            let (shard, change) = replica.shard(like, part)?;
            manifest.score_shards.push(shard);
            changes.push(change);
        }
    }
    manifest.score_shards.swap(0, 1);
    let (more, resolved) = replica.forge(&manifest)?;
    changes.extend(more);
    tampered(Rule::RowSwapped, "shards 0 and 1", (changes, resolved))
}

/// Two rows of the last scores shard whose scores no other row has: their places in the shard and their keys.
fn two_rows(replica: &Replica<'_>, dice: &mut Dice) -> Result<(usize, usize, String), Skip> {
    let shard = last_shard(replica)?;
    let start = replica.rows.len().saturating_sub(usize::try_from(shard.rows).unwrap_or(0));
    let unique = |row: usize| {
        let digest = replica.rows[row].score_digest;
        replica.rows.iter().filter(|other| other.score_digest == digest).count() == 1
    };
    let mut fit: Vec<usize> = (start..replica.rows.len()).filter(|row| unique(*row)).collect();
    if fit.len() < 2 {
        return not_applicable("the last scores shard has no two rows with scores of their own");
    }
    let a = fit.swap_remove(dice.below(fit.len()));
    let b = fit.swap_remove(dice.below(fit.len()));
    Ok((a - start, b - start, format!("{} and {}", replica.rows[a].key, replica.rows[b].key)))
}

fn scores_pages_swapped(replica: &Replica<'_>, dice: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let (a, b, detail) = two_rows(replica, dice)?;
    let pages = replica.pages(last_shard(replica)?)?;
    let mut bodies: Vec<&[u8]> = pages.iter().map(|page| page.body()).collect();
    bodies.swap(a, b);
    let (manifest, change) = with_last_shard(replica, &bodies)?;
    tampered(Rule::RowSwapped, detail, with_change(replica.forge(&manifest)?, change))
}

fn score_in_shard_altered(replica: &Replica<'_>, dice: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let shard = last_shard(replica)?;
    let pages = replica.pages(shard)?;
    let row = dice.below(pages.len());
    let Some(page) = pages.get(row) else { return not_applicable("the last scores shard has no row") };
    let scores = replica.decode(page)?;
    let mut wide = Vec::new();
    scores.write_as(Dtype::F32, &mut wide);
    let mut values = Vec::new();
    scores.widen_into(&mut values);
    let finite: Vec<usize> = (0..values.len()).filter(|n| values[*n].is_finite()).collect();
    let Some(token) = dice.pick(&finite) else { return not_applicable("the row has no finite score") };
    // The lowest bit that every dtype has: still finite, and one step away in bf16.
    wide.iter_mut().skip(token * 4 + 2).take(1).for_each(|byte| *byte ^= 1);
    let mut changed = Canonical::default();
    changed.set_from_file_row(Dtype::F32, &wide);
    let body = replica.encode(&changed, shard)?;
    let mut bodies: Vec<&[u8]> = pages.iter().map(|page| page.body()).collect();
    if let Some(place) = bodies.get_mut(row) {
        *place = &body;
    }
    let (manifest, change) = with_last_shard(replica, &bodies)?;
    let start = replica.rows.len().saturating_sub(pages.len());
    let detail = replica.rows.get(start + row).map_or_else(String::new, |row| format!("{}, token id {token}", row.key));
    tampered(Rule::ScoreWitness, detail, with_change(replica.forge(&manifest)?, change))
}

fn row_record_altered(replica: &Replica<'_>, dice: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut manifest = replica.manifest.clone();
    let Some(shard) = manifest.row_shards.last_mut() else { return not_applicable("there are no rows") };
    let start = replica.rows.len().saturating_sub(usize::try_from(shard.rows).unwrap_or(0));
    let mut rows = replica.rows[start..].to_vec();
    let row = dice.below(rows.len());
    // A field that no other rule asks about.
    rows[row].step = Some(rows[row].step.map_or(1, |step| step ^ 1));
    let detail = format!("{}, step", rows[row].key);
    let file = row_shard::encode(&rows);
    (shard.bytes, shard.object) = (long(file.len()), ObjectId(Blake3::of(&file)));
    let change = (Store::object_path(&shard.object), Change::Bytes(file));
    tampered(Rule::RootMismatch, detail, with_change(replica.forge(&manifest)?, change))
}

fn row_x_respelled(replica: &Replica<'_>, dice: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut manifest = replica.manifest.clone();
    let mut rows = replica.rows.to_vec();
    let row = dice.below(rows.len());
    rows[row].x = Some("{ \"a\": 1}".into());
    let mut changes = Vec::new();
    set_rows(&mut manifest, &rows, &mut changes);
    let (more, resolved) = replica.forge_bytes(document::encode(&manifest)?, manifest.capture.id()?)?;
    changes.extend(more);
    tampered(Rule::ShardNoncanonical, rows[row].key.to_string(), (changes, resolved))
}

fn other_digest(digest: Sha256) -> Sha256 {
    let mut bytes = digest.0;
    bytes[0] ^= 1;
    Sha256(bytes)
}

fn capture_document_altered(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut manifest = replica.manifest.clone();
    manifest.capture.row_root = other_digest(manifest.capture.row_root);
    tampered(Rule::RootMismatch, "row_root", replica.forge(&manifest)?)
}

fn respelled(replica: &Replica<'_>, spell: fn(String) -> String) -> Result<Vec<Tampered>, Skip> {
    let text = String::from_utf8_lossy(&document::encode(replica.manifest)?).into_owned();
    let forged = replica.forge_bytes(spell(text).into_bytes(), replica.capture)?;
    tampered(Rule::JsonNotCanonical, "", forged)
}

fn unsorted(text: String) -> String {
    match Json::parse(text.as_bytes()) {
        Ok(Json::Object(mut members)) => {
            members.reverse();
            Json::Object(members).to_text()
        }
        _ => text,
    }
}

fn attachment_path_escape(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut manifest = replica.manifest.clone();
    let attachments = &mut manifest.capture.attachments;
    let path = "../outside".to_owned();
    attachments.push(Attachment { blake3: manifest.run_object.0, bytes: manifest.capture.run_json.bytes, path });
    attachments.sort_by(|a, b| a.path.as_bytes().cmp(b.path.as_bytes()));
    let forged = replica.forge_bytes(document::encode(&manifest)?, manifest.capture.id()?)?;
    tampered(Rule::PathEscape, "../outside", forged)
}

/// One case for the last rows shard and one for the last scores shard, with their bytes changed and rehashed.
fn reshaped(replica: &Replica<'_>, change: impl Fn(Vec<u8>) -> Option<Vec<u8>>) -> Result<Vec<Tampered>, Skip> {
    let mut cases = Vec::new();
    let mut manifest = replica.manifest.clone();
    if let Some(shard) = manifest.row_shards.last_mut()
        && let Some(bytes) = change(replica.object(&shard.object)?)
    {
        (shard.bytes, shard.object) = (long(bytes.len()), ObjectId(Blake3::of(&bytes)));
        let change = (Store::object_path(&shard.object), Change::Bytes(bytes));
        let forged = with_change(replica.forge(&manifest)?, change);
        cases.extend(tampered(Rule::ShardNoncanonical, "rows shard", forged)?);
    }
    let mut manifest = replica.manifest.clone();
    if let Some(shard) = manifest.score_shards.last_mut()
        && let Some(bytes) = change(replica.object(&shard.object)?)
    {
        (shard.bytes, shard.object) = (long(bytes.len()), ObjectId(Blake3::of(&bytes)));
        let change = (Store::object_path(&shard.object), Change::Bytes(bytes));
        let forged = with_change(replica.forge(&manifest)?, change);
        cases.extend(tampered(Rule::ShardNoncanonical, "scores shard", forged)?);
    }
    Ok(cases)
}

fn shard_padded(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    reshaped(replica, |bytes| Some([bytes.as_slice(), b"payload"].concat()))
}

fn shard_footer_altered(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    reshaped(replica, |mut bytes| {
        let writer = crate::shard::CREATED_BY.as_bytes();
        let at = bytes.windows(writer.len()).rposition(|window| window == writer)?;
        *bytes.get_mut(at)? ^= 1;
        Some(bytes)
    })
}

fn log_entry_altered(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut entries = replica.entries.clone();
    later(&mut entries);
    // The head stays.
    let changes = replica.forge_log(&entries)?.into_iter().filter(|(path, _)| path == "log/entries").collect();
    tampered(Rule::LogInconsistent, "at", (changes, replica.resolved()))
}

/// Changes the time of the last entry, and nothing of its length.
fn later(entries: &mut [crate::manifest::Entry]) {
    if let Some(last) = entries.last_mut() {
        let digit = last.at.pop();
        last.at.push(if digit == Some('1') { '2' } else { '1' });
    }
}

fn log_entry_dropped(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let shorter = replica.entries.split_last().map_or(&[][..], |(_, rest)| rest);
    let changes = replica.forge_log(shorter)?.into_iter().filter(|(path, _)| path == "log/entries").collect();
    tampered(Rule::LogInconsistent, format!("entry {}", shorter.len()), (changes, replica.resolved()))
}

fn log_entry_forged(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let capture = CaptureId(other_digest(replica.capture.0));
    let forged = replica.forge_bytes(document::encode(replica.manifest)?, capture)?;
    tampered(Rule::RootMismatch, format!("capture {capture}"), forged)
}

fn log_head_altered(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let head: Head = document::decode(&replica.file("log/head")?)?;
    let bytes: u64 = head.bytes.parse().unwrap_or(1);
    let altered = [
        ("size", Head { size: head.size + 1, ..head.clone() }),
        ("root", Head { root: other_digest(head.root), ..head.clone() }),
        ("bytes, one more", Head { bytes: (bytes + 1).to_string(), ..head.clone() }),
        ("bytes, one less", Head { bytes: bytes.saturating_sub(1).to_string(), ..head.clone() }),
        ("origin", Head { origin: head.origin.chars().rev().chain(['0']).collect(), ..head.clone() }),
    ];
    let mut cases = Vec::new();
    for (what, head) in altered {
        let changes = vec![("log/head".to_owned(), Change::Bytes(document::encode(&head)?))];
        cases.extend(tampered(Rule::LogInconsistent, what, (changes, replica.resolved()))?);
    }
    Ok(cases)
}

fn log_file_gone(replica: &Replica<'_>, path: &str) -> Result<Vec<Tampered>, Skip> {
    tampered(Rule::LogInconsistent, path, (vec![(path.to_owned(), Change::Gone)], replica.resolved()))
}

/// What only a head that somebody kept could tell.
const KEPT_HEAD: Expect = Expect::Undetectable("an older head that somebody kept would tell: verify --checkpoint FILE");

fn log_rolled_back(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let shorter = replica.entries.split_last().map_or(&[][..], |(_, rest)| rest);
    let changes = replica.forge_log(shorter)?;
    let detail = format!("to {} entries", shorter.len());
    Ok(vec![Tampered { detail, expect: KEPT_HEAD, changes, resolved: replica.resolved() }])
}

fn log_rewritten(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let mut entries = replica.entries.clone();
    later(&mut entries);
    let changes = replica.forge_log(&entries)?;
    let detail = format!("the time of entry {}", entries.len().saturating_sub(1));
    Ok(vec![Tampered { detail, expect: KEPT_HEAD, changes, resolved: replica.resolved() }])
}

fn ref_renamed(replica: &Replica<'_>, _: &mut Dice) -> Result<Vec<Tampered>, Skip> {
    let store = Store::open(&replica.root)?;
    let Some(name) = store.list("refs/runs")?.pop() else { return not_applicable("the store has no refs") };
    let bytes = replica.file(&format!("refs/runs/{name}"))?;
    let changes = vec![(format!("refs/runs/{name}-other"), Change::Bytes(bytes))];
    tampered(Rule::JsonNotCanonical, name, (changes, replica.resolved()))
}
