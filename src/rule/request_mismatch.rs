//! `request-mismatch`: every row belongs to exactly one declared request.

use std::collections::{BTreeMap, BTreeSet};

use super::{About, Applies, Bench};
use crate::id::RequestKey;
use crate::refusal::{Rule, Subject};

/// What the rule is for.
pub(super) const ABOUT: About = About {
    protects: "Request ids are unique, places in the workload are unique, and a row's request_id is that of the request at its place: \
               rows cannot be given to another request by renaming.",
    remedy: "Have the adapter take request_id, prompt_index and sample_index from one record of the request.",
    applies: Applies::Always,
};

pub(super) fn check(bench: &mut Bench<'_>) {
    let run = bench.evidence.run;
    let mut ids = BTreeSet::new();
    let mut keys: BTreeMap<RequestKey, &str> = BTreeMap::new();
    for request in &run.requests {
        if !ids.insert(request.request_id.as_str()) {
            let subject = Subject::Request(request.key);
            let found = format!("{:?} twice", request.request_id);
            bench.refuse(Rule::RequestMismatch, subject, "a request_id of its own", found);
            bench.broken.insert(request.key);
        }
        if let Some(first) = keys.insert(request.key, &request.request_id) {
            let found = format!("{first:?} and {:?}", request.request_id);
            bench.refuse(Rule::RequestMismatch, Subject::Request(request.key), "one request", found);
            bench.broken.insert(request.key);
        }
    }
    for row in bench.evidence.rows {
        let declared = keys.get(&row.request());
        if declared.is_none_or(|id| **id != *row.request_id) {
            let expected = declared.map_or("a request that run.json has".to_owned(), |id| format!("request_id {id:?}"));
            bench.refuse_row(Rule::RequestMismatch, row, expected, format!("request_id {:?}", row.request_id));
            bench.broken.insert(row.request());
            let owner = run.requests.iter().find(|request| request.request_id == *row.request_id);
            bench.broken.extend(owner.map(|request| request.key));
        }
    }
}
