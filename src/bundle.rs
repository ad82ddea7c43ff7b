//! Bundles: captures in one file, for an auditor who has no store.
//!
//! Captures go out with the log entries that name them, each proved up to the log's head, and with exactly the objects that their manifests name;
//! the file comes back as something `verify` reads in place ([`Bundle`]), or into a store ([`unbundle`]). Always holds: equal
//! captures under an equal head give equal bytes. It never makes a foreign entry an act of the own log. See `specs/format-v1.md`, section 14.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::Path;

use crate::canon::document;
use crate::catalog::{
    BUNDLES, Catalog, Resolved, check_document, check_own_head, parse_manifest, read_document, read_manifest,
};
use crate::digest::Sha256;
use crate::id::{CaptureId, ObjectId, long};
use crate::log::Log;
use crate::manifest::{
    Act, BUNDLE_SCHEMA, BundleHeader, BundledObject, Document, DocumentAct, Entry, MAX_DOCUMENT, Manifest, ProvedEntry,
};
use crate::meter::Meter;
use crate::proof::check_header;
use crate::qualify::{Recorded, parse_result};
use crate::refusal::{Refusal, Rule, Subject};
use crate::store::{Fault, Found, Span, Store, StoreError, io_error, open_regular};

/// The first bytes of a bundle.
pub const MAGIC: &[u8; 22] = b"witnessmark.bundle/v1\n";
const FILE: &str = "the bundle";

/// A bundle that was written.
#[derive(Debug, Clone)]
pub struct Made {
    /// Its header
    pub header: BundleHeader,
    /// Its length
    pub bytes: u64,
}

fn refuse(rule: Rule, expected: impl Into<String>, found: impl Into<String>) -> Refusal {
    Refusal::new(rule, Subject::File(FILE.to_owned()), expected, found)
}

/// What an entry names: a manifest and what it lists, in its order, or a document.
struct Named {
    objects: Vec<(ObjectId, u64)>,
    /// The manifest, of a capture
    manifest: Option<Manifest>,
}

impl Named {
    /// Reads what `entry` names, with digests checked.
    fn read(store: &Store, entry: &Entry) -> Result<Self, Fault> {
        match entry.act {
            Act::Seal(capture, id) => {
                let (_, bytes) = store.open_object(&id, None, "manifest")?;
                Ok(Self::manifest(id, bytes, read_manifest(store, &id, capture)?))
            }
            Act::Document(act, document) => {
                let bytes = read_document(store, &document)?;
                Self::document(act, &document, &bytes).map_err(Fault::Refused)
            }
        }
    }

    /// A document whose digests are known to be right. A result must be one: whoever has it looks into it with whatever is asked of a store.
    fn document(act: DocumentAct, document: &Document, bytes: &[u8]) -> Result<Self, Refusal> {
        if act == DocumentAct::Qualify {
            parse_result(document, bytes)?;
        }
        Ok(Self { objects: vec![(document.object, long(bytes.len()))], manifest: None })
    }

    fn manifest(id: ObjectId, bytes: u64, manifest: Manifest) -> Self {
        let objects = manifest.objects().into_iter().map(|(id, bytes, _)| (id, bytes));
        Self { objects: std::iter::once((id, bytes)).chain(objects).collect(), manifest: Some(manifest) }
    }
}

/// The object that an entry names itself.
fn head_object(entry: &Entry) -> ObjectId {
    match entry.act {
        Act::Seal(_, manifest) => manifest,
        Act::Document(_, document) => document.object,
    }
}

/// All objects that entries name, in their order; each object once, where it comes first.
fn implied<'n>(named: impl Iterator<Item = &'n Named>) -> Vec<BundledObject> {
    let mut seen = BTreeSet::new();
    let objects = named.flat_map(|named| named.objects.iter().copied());
    objects.filter(|(id, _)| seen.insert(*id)).map(|(object, bytes)| BundledObject { bytes, object }).collect()
}

/// Whether what is listed is what is implied.
fn check_listed(listed: &[BundledObject], implied: &[BundledObject]) -> Vec<Refusal> {
    let key = |object: &BundledObject| (object.object, object.bytes);
    let (in_list, in_manifests): (BTreeSet<_>, BTreeSet<_>) =
        (listed.iter().map(key).collect(), implied.iter().map(key).collect());
    let subject = |id: &ObjectId| Subject::Object(*id, "object".to_owned());
    let mut refusals = Vec::new();
    for (id, bytes) in in_list.difference(&in_manifests) {
        let found = format!("one of {bytes} bytes");
        refusals.push(Refusal::new(Rule::ObjectUnlisted, subject(id), "only objects that the manifests name", found));
    }
    for (id, bytes) in in_manifests.difference(&in_list) {
        let expected = format!("an object of {bytes} bytes, which a manifest names");
        refusals.push(Refusal::new(Rule::ObjectMissing, subject(id), expected, "none in the bundle"));
    }
    if refusals.is_empty() && listed != implied {
        let expected = "objects in the order of the manifests, each once";
        refusals.push(refuse(Rule::JsonNotCanonical, expected, "another order"));
    }
    refusals
}

/// Places in the own log of what `resolved` names; empty where it is known from a bundle only.
#[must_use]
pub fn places(catalog: &Catalog<'_>, resolved: &Resolved) -> Vec<u64> {
    let named = |entry: &Entry| {
        entry
            .sealed()
            .is_some_and(|(capture, manifest)| capture == resolved.capture && resolved.manifests.contains(&manifest))
    };
    catalog.log.places().filter(|(_, entry)| named(entry)).map(|(place, _)| place).collect()
}

/// Places in the own log of all that a result rests on: its spec, its captures, itself. None where one of them is known from a bundle only.
#[must_use]
pub fn places_of_result(catalog: &Catalog<'_>, recorded: &Recorded) -> Option<Vec<u64>> {
    let mut wanted: BTreeSet<Sha256> = recorded.result.captures.iter().map(|line| line.capture.0).collect();
    wanted.extend([recorded.result.spec, recorded.document.subject]);
    let mut places = Vec::new();
    let mut found = BTreeSet::new();
    for (place, entry) in catalog.log.places() {
        let subject = match entry.act {
            Act::Seal(capture, _) => capture.0,
            Act::Document(_, document) => document.subject,
        };
        if wanted.contains(&subject) {
            places.push(place);
            found.insert(subject);
        }
    }
    (found == wanted).then_some(places)
}

/// Writes the bundle of the entries at `places` of the log, which is sound.
///
/// # Errors
/// When the store cannot be read or `out` not written. What was written then is no bundle.
///
/// # Refusals
/// What a manifest or an object can be refused for.
pub fn write(
    catalog: &Catalog<'_>,
    places: &BTreeSet<u64>,
    out: &mut impl Write,
    meter: &Meter,
) -> Result<Made, Fault> {
    let store = catalog.store();
    let mut entries = Vec::new();
    let mut named = Vec::new();
    for &index in places {
        let entry = usize::try_from(index).ok().and_then(|index| catalog.log.entries.get(index));
        let (Some(entry), Some(path)) = (entry, catalog.log.inclusion(index)) else { continue };
        named.push(Named::read(store, entry)?);
        entries.push(ProvedEntry { entry: entry.clone(), index, path });
    }
    let objects = implied(named.iter());
    let header = BundleHeader { entries, head: catalog.log.head(store), objects, schema: BUNDLE_SCHEMA.to_owned() };
    let encoded = document::encode(&header);
    let encoded = encoded.map_err(|source| StoreError::Document { path: store.root().to_owned(), source })?;
    if long(encoded.len()) > MAX_DOCUMENT {
        let expected = format!("a header of at most {MAX_DOCUMENT} bytes");
        return Err(Fault::Refused(refuse(Rule::LimitExceeded, expected, format!("{} bytes", encoded.len()))));
    }
    let start = [MAGIC.as_slice(), &long(encoded.len()).to_le_bytes(), &encoded].concat();
    out.write_all(&start).map_err(io_error("write", FILE))?;
    meter.expect(header.objects.iter().map(|object| object.bytes).sum());
    for object in &header.objects {
        if meter.is_stopped() {
            return Err(io_error("write", FILE)(io::ErrorKind::Interrupted.into()).into());
        }
        store.copy_object(&object.object, object.bytes, "object", out, &|step| meter.add(step))?;
    }
    out.flush().map_err(io_error("write", FILE))?;
    let bytes = long(start.len()) + header.objects.iter().map(|object| object.bytes).sum::<u64>();
    Ok(Made { header, bytes })
}

/// Reads magic and header; also gives the header's bytes.
fn read_start(input: &mut impl Read) -> io::Result<Result<(BundleHeader, Vec<u8>), Refusal>> {
    let mut start = Vec::new();
    let expected = MAGIC.len() + 8;
    input.by_ref().take(long(expected)).read_to_end(&mut start)?;
    let length = start.strip_prefix(MAGIC).and_then(|rest| rest.try_into().ok()).map(u64::from_le_bytes);
    let Some(length) = length else {
        return Ok(Err(refuse(
            Rule::SchemaInvalid,
            "a bundle, which begins with witnessmark.bundle/v1",
            "other bytes",
        )));
    };
    if length > MAX_DOCUMENT {
        let expected = format!("a header of at most {MAX_DOCUMENT} bytes");
        return Ok(Err(refuse(Rule::LimitExceeded, expected, format!("{length} bytes"))));
    }
    let mut bytes = Vec::new();
    input.by_ref().take(length).read_to_end(&mut bytes)?;
    let header = document::decode(&bytes);
    Ok(match header {
        Ok(header) => Ok((header, bytes)),
        Err(error) => Err(refuse(Rule::from(&error), "a canonical header", error.to_string())),
    })
}

/// A bundle that is read in place.
#[derive(Debug)]
pub struct Bundle {
    /// What stands in front of the objects
    pub header: BundleHeader,
    /// What is wrong with the bundle itself, sorted; its captures are verified apart
    pub refusals: Vec<Refusal>,
    store: Store,
    names: BTreeMap<String, CaptureId>,
}

impl Bundle {
    /// Opens the bundle in a file: header, proofs, and whether it holds what its manifests name and nothing else.
    ///
    /// # Errors
    /// When it cannot be read.
    ///
    /// # Refusals
    /// The inner error, where nothing more can be looked at: not-a-regular-file, schema-invalid, limit-exceeded, json-not-canonical.
    pub fn open(path: &Path) -> Result<Result<Self, Refusal>, StoreError> {
        let (mut file, len) = match open_regular(path, true)? {
            Found::File(file, len) => (file, len),
            Found::Nothing => return Err(io_error("open", path)(io::ErrorKind::NotFound.into())),
            Found::NotRegular(what) => return Ok(Err(refuse(Rule::NotARegularFile, "a regular file", what))),
        };
        let (header, encoded) = match read_start(&mut file).map_err(io_error("read", path))? {
            Ok(start) => start,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut refusals = check_header(&header);
        let mut spans = BTreeMap::new();
        let mut end = long(MAGIC.len() + 8 + encoded.len());
        for object in &header.objects {
            // What a file that was cut short has of an object is of another length: refused where the object is opened. An empty one may end the file.
            if end < len || end == len && object.bytes == 0 {
                spans.entry(object.object).or_insert(Span { offset: end, bytes: object.bytes.min(len - end) });
            }
            end = end.saturating_add(object.bytes);
        }
        if len > end {
            let found = format!("{} bytes", len - end);
            refusals.push(refuse(Rule::ObjectUnlisted, "nothing after the last object", found));
        }
        let store = Store::packed(path, header.head.origin.clone(), spans)?;
        let mut named = Vec::new();
        for proved in &header.entries {
            match Named::read(&store, &proved.entry) {
                Ok(found) => named.push(found),
                // `verify` refuses the capture for it; what else the bundle should hold is not known then.
                Err(Fault::Refused(refusal)) => {
                    refusals.extend(proved.entry.document().map(|_| refusal));
                }
                Err(Fault::Error(error)) => return Err(error),
            }
        }
        if named.len() == header.entries.len() {
            refusals.extend(check_listed(&header.objects, &implied(named.iter())));
        }
        refusals.sort();
        let names = names(&store, &named);
        Ok(Ok(Self { header, refusals, store, names }))
    }

    /// The bundle as `verify` sees a store.
    #[must_use]
    pub fn catalog(&self) -> Catalog<'_> {
        let entries = self.header.entries.iter().map(|proved| (proved.index, proved.entry.clone()));
        Catalog::of(&self.store, Log::of(entries), self.names.clone())
    }
}

/// Captures by run id, where a run id is that of one capture: a replay finds what it replays.
fn names(store: &Store, named: &[Named]) -> BTreeMap<String, CaptureId> {
    let catalog = Catalog::of(store, Log::default(), BTreeMap::new());
    let mut names: BTreeMap<String, BTreeSet<CaptureId>> = BTreeMap::new();
    for manifest in named.iter().filter_map(|named| named.manifest.as_ref()) {
        if let (Some(run), Ok(capture)) = (catalog.run(manifest), manifest.capture.id()) {
            names.entry(run.run_id).or_default().insert(capture);
        }
    }
    let single = names.into_iter().filter(|(_, captures)| captures.len() == 1);
    single.filter_map(|(name, captures)| Some((name, captures.into_iter().next()?))).collect()
}

/// A bundle whose objects are in a store.
#[derive(Debug, Clone)]
pub struct Unbundled {
    /// Its header
    pub header: BundleHeader,
    /// SHA-256 of the header: the name under which the store keeps it
    pub record: Sha256,
    /// Whether the store had it before
    pub already: bool,
}

/// Puts a bundle's objects into a store and keeps its header beside the log, in one pass over `input`. Objects are hashed and entries proved;
/// whether the captures hold is for `verify` to say.
///
/// # Errors
/// When the input cannot be read or the store not written.
///
/// # Refusals
/// All that is wrong with the bundle; then nothing of it is in the store.
pub fn unbundle(
    store: &Store,
    input: &mut impl Read,
    meter: &Meter,
) -> Result<Result<Unbundled, Vec<Refusal>>, StoreError> {
    let (header, encoded) = match read_start(input).map_err(io_error("read", FILE))? {
        Ok(start) => start,
        Err(refusal) => return Ok(Err(vec![refusal])),
    };
    let mut refusals = check_header(&header);
    let subject = Subject::File("the bundle's head".to_owned());
    refusals.extend(check_own_head(store, &Log::load(store)?, &header.head, subject)?);
    if !refusals.is_empty() {
        return Ok(Err(refusals));
    }
    // Several entries may name one object, and each must be right about it.
    let mut acts: BTreeMap<ObjectId, Vec<Act>> = BTreeMap::new();
    for ProvedEntry { entry, .. } in &header.entries {
        acts.entry(head_object(entry)).or_default().push(entry.act);
    }
    header.objects.iter().for_each(|object| meter.expect(object.bytes));
    let mut staging = store.stage()?;
    let mut named: BTreeMap<Act, Named> = BTreeMap::new();
    for object in &header.objects {
        if meter.is_stopped() {
            return Err(io_error("read", FILE)(io::ErrorKind::Interrupted.into()));
        }
        let mut part = input.by_ref().take(object.bytes);
        let found = if let Some(acts) = acts.get(&object.object).filter(|_| object.bytes <= MAX_DOCUMENT) {
            let mut bytes = Vec::new();
            part.read_to_end(&mut bytes).map_err(io_error("read", FILE))?;
            for &act in acts {
                match arrived(&act, object, &bytes) {
                    Ok(found) => drop(named.insert(act, found)),
                    Err(refusal) => refusals.push(refusal),
                }
            }
            (staging.add_bytes(&bytes, "write a document into the store")?, long(bytes.len()))
        } else {
            staging.add_stream(part, "copy an object into the store")?
        };
        meter.add(object.bytes);
        if found != (object.object, object.bytes) {
            let subject = Subject::Object(object.object, "object".to_owned());
            let expected = format!("{} bytes with this BLAKE3", object.bytes);
            refusals.push(Refusal::new(
                Rule::ObjectDigest,
                subject,
                expected,
                format!("{} bytes with {}", found.1, found.0),
            ));
        }
    }
    if input.take(1).read(&mut [0]).map_err(io_error("read", FILE))? > 0 {
        refusals.push(refuse(Rule::ObjectUnlisted, "nothing after the last object", "more bytes"));
    }
    if refusals.is_empty() {
        let in_order: Vec<&Named> = header.entries.iter().filter_map(|proved| named.get(&proved.entry.act)).collect();
        refusals = check_listed(&header.objects, &implied(in_order.iter().copied()));
        if in_order.len() < header.entries.len() {
            refusals.push(refuse(Rule::ObjectMissing, "what every entry names", "less"));
        }
    }
    if refusals.is_empty() {
        refusals.extend(staging.commit()?.into_values());
    }
    if !refusals.is_empty() {
        refusals.sort();
        return Ok(Err(refusals));
    }
    keep(store, header, &encoded)
}

/// What an entry names, from the bytes of the object that it names itself.
fn arrived(act: &Act, object: &BundledObject, bytes: &[u8]) -> Result<Named, Refusal> {
    match act {
        Act::Seal(capture, id) => Ok(Named::manifest(*id, object.bytes, parse_manifest(bytes, id, *capture)?)),
        Act::Document(act, document) => {
            check_document(document, bytes)?;
            Named::document(*act, document, bytes)
        }
    }
}

/// Keeps the header under its own digest. Under the log's lock nobody collects objects that are not named yet.
fn keep(store: &Store, header: BundleHeader, encoded: &[u8]) -> Result<Result<Unbundled, Vec<Refusal>>, StoreError> {
    let _lock = Log::lock(store)?;
    for object in &header.objects {
        match store.open_object(&object.object, Some(object.bytes), "object") {
            Ok(_) => {}
            Err(Fault::Error(error)) => return Err(error),
            Err(Fault::Refused(refusal)) => return Ok(Err(vec![refusal])),
        }
    }
    let record = Sha256::of(encoded);
    let path = format!("{BUNDLES}/{record}");
    let already = store.has_file(&path)?;
    if !already {
        store.replace_file(&path, encoded)?;
    }
    Ok(Ok(Unbundled { header, record, already }))
}
