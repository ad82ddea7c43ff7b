//! Files that are named on the command line, and standard input.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::CliError;
use crate::meter::Meter;
use crate::note::{MAX_NOTE, VerifierKey};
use crate::refusal::{Refusal, Rule, Subject};
use crate::store::{Found, open_regular};

/// How long silence lasts before it is asked again whether to go on.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Opens a file. A pipe is not waited for, and a folder is not read: what is no regular file is refused.
pub(super) fn open(path: &Path) -> Result<Result<File, Refusal>, CliError> {
    let shown = path.display().to_string();
    Ok(match open_regular(path, true)? {
        Found::File(file, _) => Ok(file),
        Found::Nothing => return Err(CliError::Failed(format!("cannot open {shown}: there is no such file"))),
        Found::NotRegular(what) => {
            Err(Refusal::new(Rule::NotARegularFile, Subject::File(shown), "a regular file", what))
        }
    })
}

/// Reads a whole file, up to a limit.
pub(super) fn read(path: &Path, limit: u64) -> Result<Result<Vec<u8>, Refusal>, CliError> {
    let shown = path.display().to_string();
    let file = match open(path)? {
        Ok(file) => file,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|error| CliError::Failed(format!("cannot read {shown}: {error}")))?;
    if bytes.len() > usize::try_from(limit).unwrap_or(usize::MAX) {
        let expected = format!("at most {limit} bytes");
        return Ok(Err(Refusal::new(Rule::LimitExceeded, Subject::File(shown), expected, "more")));
    }
    Ok(Ok(bytes))
}

/// A verifier key, as it is or from a file.
pub(super) fn verifier_key(text: &str) -> Result<VerifierKey, CliError> {
    let content = if text.contains('+') && !Path::new(text).is_file() {
        text.to_owned()
    } else {
        match read(Path::new(text), MAX_NOTE)? {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(refusal) => return Err(CliError::Usage(format!("--verifier-key: {refusal}"))),
        }
    };
    VerifierKey::parse(&content).map_err(|error| CliError::Usage(format!("--verifier-key: {error}")))
}

/// Standard input that ends with an error when the work is stopped: whoever writes to it may be silent for ever.
pub(super) struct Stdin<'m>(pub(super) &'m Meter);

impl Read for Stdin<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let stdin = io::stdin();
        while !self.0.is_stopped() {
            match poll(&mut [PollFd::new(&stdin, PollFlags::IN)], Some(&PATIENCE)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(rustix::io::read(&stdin, buffer)?),
                Err(errno) => return Err(errno.into()),
            }
        }
        // Not of the kind `Interrupted`, after which a reader tries again.
        Err(io::Error::other("interrupted"))
    }
}
