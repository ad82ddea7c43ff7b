//! What the captures of one batch say of each other: digests that rows carry for their scores, and outputs that replays follow.
//!
//! A replay is held against a run of its own batch when all of the batch is there, so that nothing depends on the order of directories, but for
//! replays that follow each other in a circle. A run that is refused for this is no course for others: they are held against what the store has of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::binding::{Course, Request, Run};
use crate::id::{RequestKey, RowKey, TokenId};
use crate::refusal::{Findings, Refusal};
use crate::row::{Row, claims};
use crate::rule::continuation_mismatch::{departs_from, unseen};

/// The captures of a batch, as far as others ask about them.
#[derive(Default)]
pub(super) struct Siblings {
    /// Refused captures included
    claims: BTreeMap<[u8; 32], (Arc<str>, RowKey)>,
    /// Runs that ended, by their run ids
    runs: BTreeMap<Arc<str>, Outputs>,
    /// Requests of replays that name a run, by the slots of their captures
    followers: BTreeMap<usize, Vec<Follower>>,
}

/// What a run generated.
struct Outputs {
    slot: usize,
    by_request: BTreeMap<String, Vec<TokenId>>,
}

/// A request of a replay, and what it follows.
struct Follower {
    key: RequestKey,
    run: String,
    request: String,
    output: Vec<TokenId>,
}

/// What a capture says, taken before it is given away to be written.
pub(super) struct Said {
    run_id: Arc<str>,
    complete: bool,
    replay: bool,
    requests: Vec<Request>,
    claims: Vec<([u8; 32], RowKey)>,
}

/// Holds an output against what the store has of a run.
pub(super) type Stored<'a> = dyn Fn(&str, &str, &[TokenId]) -> Course + 'a;

impl Said {
    pub(super) fn of(run: &Run, complete: bool, rows: &[Row]) -> Self {
        let claims = rows.iter().flat_map(|row| claims(row).map(|digest| (digest, row.key)));
        Self {
            run_id: run.run_id.as_str().into(),
            complete,
            replay: run.mode.is_replay(),
            requests: run.requests.clone(),
            claims: claims.collect(),
        }
    }
}

impl Siblings {
    /// Whether a run of this name was prepared before.
    pub(super) fn has(&self, run: &str) -> bool {
        self.runs.contains_key(run)
    }

    /// Rows of runs but `own` that carry one of `digests`.
    pub(super) fn rows_with(&self, digests: &BTreeSet<[u8; 32]>, own: &str) -> BTreeMap<[u8; 32], (String, RowKey)> {
        let here = digests.iter().filter_map(|digest| Some((*digest, self.claims.get(digest)?)));
        let others = here.filter(|(_, (run, _))| **run != *own);
        others.map(|(digest, (run, key))| (digest, (run.to_string(), *key))).collect()
    }

    /// Remembers the rows of a capture, refused or not.
    pub(super) fn hear(&mut self, said: &Said) {
        for (digest, key) in &said.claims {
            self.claims.entry(*digest).or_insert_with(|| (Arc::clone(&said.run_id), *key));
        }
    }

    /// Remembers the requests of a capture that is sealed in `slot`, if no other capture speaks against it.
    pub(super) fn join(&mut self, slot: usize, said: Said) {
        let mut by_request = BTreeMap::new();
        for request in said.requests {
            let Request { key, request_id, output_token_ids: output, continuation, .. } = request;
            let source = continuation.and_then(|continuation| continuation.source);
            // What a run generated is no evidence for itself.
            if let Some((run, request)) = source.filter(|(run, _)| said.replay && **run != *said.run_id) {
                let follower = Follower { key, run, request, output: output.clone() };
                self.followers.entry(slot).or_default().push(follower);
            }
            by_request.insert(request_id, output);
        }
        if said.complete {
            self.runs.insert(said.run_id, Outputs { slot, by_request });
        }
    }

    /// Says of the capture in `slot` what the others make of it: refusals where it departs from a run of the batch that stands, or from what the
    /// store has of one that does not, and which of them was not seen.
    pub(super) fn settle(&self, slot: usize, standing: &mut Standing, stored: &Stored<'_>, findings: &mut Findings) {
        for follower in self.followers.get(&slot).into_iter().flatten() {
            if !self.has(&follower.run) {
                continue;
            }
            let note = unseen(&follower.run);
            findings.notes.retain(|known| *known != note);
            match self.course(follower, standing, stored) {
                Course::Unseen | Course::Later => findings.notes.push(note),
                course => findings.refusals.extend(follower.departs(&course)),
            }
        }
    }

    /// What a replay is to the run of the batch that it follows, and to what the store has under the same run id.
    fn course(&self, follower: &Follower, standing: &mut Standing, stored: &Stored<'_>) -> Course {
        let Some(outputs) = self.runs.get(follower.run.as_str()) else { return Course::Unseen };
        let here = match outputs.by_request.get(&follower.request) {
            Some(generated) if self.stands(outputs.slot, standing, stored) => Course::of(&follower.output, generated),
            _ => Course::Unseen,
        };
        here.or(|| stored(&follower.run, &follower.request, &follower.output))
    }

    /// Whether a capture is not refused for the course of another. In a circle the one that closes it is taken to stand.
    fn stands(&self, slot: usize, standing: &mut Standing, stored: &Stored<'_>) -> bool {
        if let Some(&known) = standing.0.get(&slot) {
            return known;
        }
        standing.0.insert(slot, true);
        let mut followers = self.followers.get(&slot).into_iter().flatten();
        let stands = followers.all(|follower| follower.departs(&self.course(follower, standing, stored)).is_none());
        standing.0.insert(slot, stands);
        stands
    }
}

/// Which captures stand, as far as it was asked.
#[derive(Default)]
pub(super) struct Standing(BTreeMap<usize, bool>);

impl Follower {
    fn departs(&self, course: &Course) -> Option<Refusal> {
        departs_from(self.key, (&self.run, &self.request), course, &self.output)
    }
}
