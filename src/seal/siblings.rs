//! What the captures of one batch say of each other before the store has any of them: outputs that replays follow, digests that rows carry for their scores.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::binding::{Request, Run};
use crate::id::{RequestKey, RowKey, TokenId};
use crate::refusal::Refusal;
use crate::row::{Row, claims};
use crate::rule::leaves_its_course;

/// A run and one of its requests, by the names that they give themselves.
type Named = (String, String);

/// A request of a replay, and what it follows.
struct Follower {
    slot: usize,
    key: RequestKey,
    source: Named,
    output: Vec<TokenId>,
}

/// The captures of a batch, as far as others ask about them.
#[derive(Default)]
pub(super) struct Siblings {
    outputs: BTreeMap<Named, Vec<TokenId>>,
    /// Refused captures included
    claims: BTreeMap<[u8; 32], (Arc<str>, RowKey)>,
    followers: Vec<Follower>,
}

/// What a capture says, taken before it is given away to be written.
pub(super) struct Said {
    run_id: Arc<str>,
    requests: Vec<Request>,
    claims: Vec<([u8; 32], RowKey)>,
}

impl Said {
    pub(super) fn of(run: &Run, rows: &[Row]) -> Self {
        let claims = rows.iter().flat_map(|row| claims(row).map(|digest| (digest, row.key)));
        Self { run_id: run.run_id.as_str().into(), requests: run.requests.clone(), claims: claims.collect() }
    }
}

impl Siblings {
    /// The output of a request of a run that was prepared before.
    pub(super) fn output(&self, run: &str, request: &str) -> Option<Vec<TokenId>> {
        self.outputs.get(&(run.to_owned(), request.to_owned())).cloned()
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

    /// Remembers the requests of a capture that is sealed in `slot`, if nothing that comes after it speaks against it.
    pub(super) fn join(&mut self, slot: usize, said: Said) {
        for request in said.requests {
            let Request { key, request_id, output_token_ids: output, continuation, .. } = request;
            if let Some(source) = continuation.and_then(|continuation| continuation.source) {
                self.followers.push(Follower { slot, key, source, output: output.clone() });
            }
            self.outputs.insert((said.run_id.to_string(), request_id), output);
        }
    }

    /// Replays whose source came into the batch after them and generated something else, by their slots.
    pub(super) fn departed(&self) -> BTreeMap<usize, Vec<Refusal>> {
        let mut departed: BTreeMap<usize, Vec<Refusal>> = BTreeMap::new();
        for Follower { slot, key, source, output } in &self.followers {
            if let Some(course) = self.outputs.get(source)
                && let Some(refusal) = leaves_its_course(*key, course, output)
            {
                departed.entry(*slot).or_default().push(refusal);
            }
        }
        departed
    }
}
