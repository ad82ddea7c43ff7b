//! Notes: texts that keys have signed, as C2SP signed-note and tlog-checkpoint write them.
//!
//! A log's head becomes a checkpoint, a key makes a note of it, and a note is read back with all its signatures. Ed25519 only; signatures
//! by other keys are kept apart and never judged. Always holds: what does not parse strictly is no note and no key. It
//! makes no randomness and does no I/O. See `specs/format-v1.md`, section 13, and c2sp.org/signed-note.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ed25519_dalek::{Signature, Signer as _};

use crate::digest::{Sha256, hex};
use crate::merkle::Size;

/// The signature type of Ed25519.
const ED25519: u8 = 1;
/// The largest note that is read, in bytes.
pub const MAX_NOTE: u64 = 1 << 20;

/// Why a text is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// No note
    #[error("not a signed note: {0}")]
    Note(&'static str),
    /// No checkpoint
    #[error("not a checkpoint: {0}")]
    Checkpoint(&'static str),
    /// No key
    #[error("not a key: {0}")]
    Key(&'static str),
}

/// Whether a name can stand in a key: not empty, no spaces, no plus, no control characters.
#[must_use]
pub fn is_key_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c == '+' || c.is_whitespace() || c.is_control())
}

/// SHA-256(name ‖ LF ‖ type ‖ public key), its first four bytes.
fn key_id(name: &str, public: &[u8; 32]) -> [u8; 4] {
    let digest = Sha256::of(&[name.as_bytes(), b"\n", &[ED25519], public].concat());
    let [a, b, c, d, ..] = digest.0;
    [a, b, c, d]
}

/// The 32 bytes behind the type byte of an encoded key.
fn key_bytes(text: &str) -> Result<[u8; 32], NoteError> {
    let bytes = BASE64.decode(text).map_err(|_| NoteError::Key("its last part is not base64"))?;
    let (&[kind], rest) = bytes.split_first_chunk().ok_or(NoteError::Key("its last part is empty"))?;
    if kind != ED25519 {
        return Err(NoteError::Key("it is not an Ed25519 key"));
    }
    rest.try_into().map_err(|_| NoteError::Key("an Ed25519 key has 32 bytes"))
}

fn key_text(bytes: &[u8; 32]) -> String {
    BASE64.encode([&[ED25519], bytes.as_slice()].concat())
}

/// A key that signs notes.
pub struct SigningKey {
    name: String,
    key: ed25519_dalek::SigningKey,
}

impl SigningKey {
    /// The key of a name and 32 random bytes.
    ///
    /// # Errors
    /// When the name cannot stand in a key.
    pub fn new(name: &str, seed: &[u8; 32]) -> Result<Self, NoteError> {
        if !is_key_name(name) {
            return Err(NoteError::Key("its name is empty or has spaces or a plus"));
        }
        Ok(Self { name: name.to_owned(), key: ed25519_dalek::SigningKey::from_bytes(seed) })
    }

    /// Reads `PRIVATE+KEY+name+id+base64`.
    ///
    /// # Errors
    /// When it is not such a key, or its id is not that of the key.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let rest = text.trim_end_matches('\n').strip_prefix("PRIVATE+KEY+");
        let mut parts = rest.ok_or(NoteError::Key("it does not begin with PRIVATE+KEY+"))?.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoteError::Key("it is PRIVATE+KEY+name+id+base64"));
        };
        let key = Self::new(name, &key_bytes(key)?)?;
        if hex(&key.verifier().id) == id { Ok(key) } else { Err(NoteError::Key("its id is not that of the key")) }
    }

    /// `PRIVATE+KEY+name+id+base64`: whoever has it can sign.
    #[must_use]
    pub fn encode(&self) -> String {
        format!("PRIVATE+KEY+{}+{}+{}", self.name, hex(&self.verifier().id), key_text(&self.key.to_bytes()))
    }

    /// The key that checks what this one signs.
    #[must_use]
    pub fn verifier(&self) -> VerifierKey {
        let key = self.key.verifying_key();
        VerifierKey { name: self.name.clone(), id: key_id(&self.name, key.as_bytes()), key }
    }

    /// The signed note of a text that ends with a line feed.
    #[must_use]
    pub fn sign(&self, text: &str) -> String {
        let signature = self.key.sign(text.as_bytes()).to_bytes();
        let signed = BASE64.encode([self.verifier().id.as_slice(), &signature].concat());
        format!("{text}\n\u{2014} {} {signed}\n", self.name)
    }
}

/// A key that checks signatures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    id: [u8; 4],
    key: ed25519_dalek::VerifyingKey,
}

impl VerifierKey {
    /// Reads `name+id+base64`.
    ///
    /// # Errors
    /// When it is not such a key, or its id is not that of the key.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let mut parts = text.trim_end_matches('\n').splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(NoteError::Key("it is name+id+base64"));
        };
        let public = key_bytes(key)?;
        if !is_key_name(name) || hex(&key_id(name, &public)) != id {
            return Err(NoteError::Key("its id is not that of its name and key"));
        }
        let key = ed25519_dalek::VerifyingKey::from_bytes(&public);
        let key = key.map_err(|_| NoteError::Key("its bytes are no point of the curve"))?;
        Ok(Self { name: name.to_owned(), id: key_id(name, &public), key })
    }

    /// `name+id+base64`.
    #[must_use]
    pub fn encode(&self) -> String {
        format!("{}+{}+{}", self.name, hex(&self.id), key_text(self.key.as_bytes()))
    }
}

/// One signature line.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    name: String,
    id: [u8; 4],
    signature: Vec<u8>,
}

/// A text with signatures, none of them believed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    lines: Vec<Line>,
}

impl Note {
    /// Reads a signed note.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, NoteError> {
        let note = std::str::from_utf8(bytes).map_err(|_| NoteError::Note("not UTF-8"))?;
        if note.chars().any(|c| c < ' ' && c != '\n') {
            return Err(NoteError::Note("a control character"));
        }
        let (text, signatures) = note.rsplit_once("\n\n").ok_or(NoteError::Note("no blank line before signatures"))?;
        let signatures = signatures.strip_suffix('\n').ok_or(NoteError::Note("no line feed at the end"))?;
        let lines = signatures.split('\n').map(|line| {
            let (name, signed) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
            let bytes = BASE64.decode(signed).ok()?;
            let (&id, signature) = bytes.split_first_chunk()?;
            is_key_name(name).then(|| Line { name: name.to_owned(), id, signature: signature.to_vec() })
        });
        let lines = lines.collect::<Option<Vec<Line>>>().ok_or(NoteError::Note("a signature line that is none"))?;
        Ok(Self { text: format!("{text}\n"), lines })
    }

    /// The note as it is written.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut note = format!("{}\n", self.text);
        for line in &self.lines {
            let signed = BASE64.encode([line.id.as_slice(), &line.signature].concat());
            note.push_str(&format!("\u{2014} {} {signed}\n", line.name));
        }
        note
    }

    /// This note with the signatures of another of the same text; none where the texts are not one.
    #[must_use]
    pub fn joined(mut self, other: &Self) -> Option<Self> {
        if self.text != other.text {
            return None;
        }
        for line in &other.lines {
            if !self.lines.contains(line) {
                self.lines.push(line.clone());
            }
        }
        Some(self)
    }

    /// The text, which ends with a line feed.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether `key` signed the text. A signature under the key's name and id that does not hold spoils the note, whatever stands beside it.
    ///
    /// # Errors
    /// What there is instead, in words.
    pub fn check(&self, key: &VerifierKey) -> Result<(), String> {
        let mut own = self.lines.iter().filter(|line| line.name == key.name && line.id == key.id).peekable();
        if own.peek().is_none() {
            let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
            return Err(format!("signatures by {} only", names.join(", ")));
        }
        let holds = |line: &Line| {
            let signature = Signature::from_slice(&line.signature);
            signature.is_ok_and(|signature| key.key.verify_strict(self.text.as_bytes(), &signature).is_ok())
        };
        if own.all(holds) { Ok(()) } else { Err("a signature that does not hold for the text".to_owned()) }
    }
}

/// The head of a log, as the body of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log
    pub origin: String,
    /// Its size and root
    pub head: Size,
}

/// The origin line of the log of the store `origin`.
#[must_use]
pub fn origin_line(origin: &str) -> String {
    format!("witnessmark/{origin}")
}

impl Checkpoint {
    /// The text to sign.
    #[must_use]
    pub fn encode(&self) -> String {
        format!("{}\n{}\n{}\n", self.origin, self.head.size, BASE64.encode(self.head.root.0))
    }

    /// Reads the text of a note. Extension lines are part of what is signed, and ignored.
    ///
    /// # Errors
    /// When it is no checkpoint.
    pub fn parse(text: &str) -> Result<Self, NoteError> {
        let fault = NoteError::Checkpoint;
        let body = text.strip_suffix('\n').ok_or(fault("no line feed at the end"))?;
        let mut lines = body.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(fault("fewer than three lines"));
        };
        if origin.is_empty() || lines.any(str::is_empty) {
            return Err(fault("an empty line"));
        }
        let number = size.parse::<u64>().ok().filter(|number| number.to_string() == size);
        let root = BASE64.decode(root).ok().and_then(|bytes| bytes.try_into().ok());
        let (Some(size), Some(root)) = (number, root) else {
            return Err(fault("its second line is a size and its third a root"));
        };
        Ok(Self { origin: origin.to_owned(), head: Size { size, root: Sha256(root) } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Go package golang.org/x/mod/sumdb/note, where the format comes from.
    const PUBLIC: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
    const PRIVATE: &str = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
    const SIGNED: &str = "If you think cryptography is the answer to your problem,\n\
        then you don't know what your problem is.\n\n\
        — PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

    #[test]
    fn the_example_of_the_go_package_comes_out() {
        let key = SigningKey::parse(PRIVATE).unwrap();
        assert_eq!(key.encode(), PRIVATE);
        assert_eq!(key.verifier().encode(), PUBLIC);
        assert_eq!(VerifierKey::parse(PUBLIC).unwrap(), key.verifier());
        let note = Note::parse(SIGNED.as_bytes()).unwrap();
        assert_eq!(key.sign(note.text()), SIGNED);
        assert_eq!(note.encode(), SIGNED);
        assert_eq!(note.check(&key.verifier()), Ok(()));
    }

    #[test]
    fn a_changed_text_a_changed_signature_and_another_key_are_told_apart() {
        let key = SigningKey::new("a/b", &[1; 32]).unwrap();
        let note = key.sign("text\n");
        let good = |note: &str| Note::parse(note.as_bytes()).is_ok_and(|note| note.check(&key.verifier()).is_ok());
        assert!(good(&note));
        assert!(!good(&note.replacen("text", "test", 1)));
        let other = SigningKey::new("a/b", &[2; 32]).unwrap();
        assert!(!good(&other.sign("text\n")));
        // A second signature by an unknown key is ignored; a second one by this key must hold too.
        let line = other.sign("text\n").split_off("text\n\n".len());
        assert!(good(&format!("{note}{line}")));
        let both = |a: &str, b: &str| Note::parse(a.as_bytes()).unwrap().joined(&Note::parse(b.as_bytes()).unwrap());
        assert_eq!(both(&note, &other.sign("text\n")).unwrap().encode(), format!("{note}{line}"));
        assert_eq!(both(&note, &note).unwrap().encode(), note);
        assert_eq!(both(&note, &key.sign("other\n")), None);
        let spoiled = key.sign("other\n").split_off("other\n\n".len());
        assert!(!good(&format!("{note}{spoiled}")));
    }

    #[test]
    fn checkpoints_round_trip_and_nothing_else_is_read() {
        let head = Size { size: 20_852_163, root: Sha256([9; 32]) };
        let checkpoint = Checkpoint { origin: origin_line("00"), head };
        assert_eq!(Checkpoint::parse(&checkpoint.encode()), Ok(checkpoint));
        for bad in ["", "o\n1\n", "o\n01\nAAAA\n", "\n1\nAAAA\n", "o\n1\nAAAA\n"] {
            assert!(Checkpoint::parse(bad).is_err(), "{bad:?}");
        }
    }
}
