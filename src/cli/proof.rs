//! `witnessmark prove` and `witnessmark check-proof`.

use super::args::{CheckProofArgs, ProveArgs};
use super::{CliError, Context, Status, input};
use crate::canon::document;
use crate::catalog::Catalog;
use crate::id::{RequestKey, RowKey};
use crate::proof::{MAX_PROOF, Proof};
use crate::prove::prove_row;
use crate::refusal::{Refusal, Rule, Subject};
use crate::report::proof as text;
use crate::store::{Fault, Store};

/// `prompt:position` or `prompt:sample:position`.
fn parse_row(text: &str) -> Option<RowKey> {
    let parts: Option<Vec<u32>> = text.split(':').map(|part| part.parse().ok()).collect();
    let (prompt_index, sample_index, position) = match *parts?.as_slice() {
        [prompt, position] => (prompt, 0, position),
        [prompt, sample, position] => (prompt, sample, position),
        _ => return None,
    };
    Some(RowKey { request: RequestKey { prompt_index, sample_index }, position })
}

pub(super) fn prove(context: &mut Context<'_>, args: &ProveArgs) -> Result<Status, CliError> {
    let usage = || {
        CliError::Usage(format!(
            "{:?} is no row: give PROMPT:POSITION or PROMPT:SAMPLE:POSITION, such as 0:24",
            args.row
        ))
    };
    let key = parse_row(&args.row).ok_or_else(usage)?;
    let store = Store::open(&context.store)?;
    let catalog = Catalog::load_one(&store, &args.what)?;
    if !catalog.log.refusals.is_empty() {
        return context.refused("store: ", &catalog.log.refusals);
    }
    let resolved = catalog.resolve(&args.what, false)?;
    let proof = match prove_row(&catalog, &resolved, key, args.scores) {
        Ok(Some(proof)) => proof,
        Ok(None) => return Err(CliError::Failed(format!("capture {} has no row {key}", resolved.capture))),
        Err(Fault::Refused(refusal)) => return context.refused(&format!("{}: ", args.what), &[refusal]),
        Err(Fault::Error(error)) => return Err(error.into()),
    };
    let bytes = document::encode(&proof).map_err(|error| CliError::Failed(error.to_string()))?;
    context.document(&bytes, args.output.as_deref())?;
    if let Some(file) = args.output.as_ref().filter(|_| context.json) {
        context.out.json(&serde_json::json!({
            "file": file.display().to_string(), "capture": resolved.capture, "key": key, "row": proof.row, "rows": proof.tree_size,
        }))?;
    }
    context.prose(&text::made(&proof, &key, &resolved.capture))?;
    Ok(Status::Good)
}

pub(super) fn check(context: &mut Context<'_>, args: &CheckProofArgs) -> Result<Status, CliError> {
    let proof = input::read(&args.file, MAX_PROOF)?.and_then(|bytes| Proof::parse(&bytes));
    let outcome = match &proof {
        Ok(Proof::Row(proof)) => {
            if args.old_root.is_some() || args.new_root.is_some() {
                return Err(CliError::Usage(
                    "--old-root and --new-root are for proofs of the log; this one is of a row".to_owned(),
                ));
            }
            proof.check().and_then(|claim| match args.capture.filter(|id| *id != claim.capture) {
                None => Ok((
                    text::row(proof, &claim, args.capture.is_some()),
                    serde_json::json!({
                        "capture": claim.capture, "row": proof.row, "rows": proof.tree_size, "key": claim.row.key,
                        "token_id": claim.row.token_id, "prefix_sha256": claim.row.prefix_sha256,
                        "score_digest": claim.row.score_digest, "scores": claim.scores.is_some(),
                    }),
                )),
                Some(id) => Err(not(format!("a row of capture {id}"), format!("one of capture {}", claim.capture))),
            })
        }
        Ok(Proof::Log(proof)) => {
            if args.capture.is_some() {
                return Err(CliError::Usage("--capture is for the proof of a row; this one is of the log".to_owned()));
            }
            let known = [(args.old_root, proof.old_root), (args.new_root, proof.new_root)];
            let other = known
                .into_iter()
                .find_map(|(known, found)| known.filter(|known| *known != found).map(|known| (known, found)));
            proof.check().and_then(|()| match other {
                None => Ok((
                    text::log(proof, args.old_root.is_some()),
                    serde_json::json!({
                        "origin": proof.origin, "old_size": proof.old_size, "old_root": proof.old_root,
                        "new_size": proof.new_size, "new_root": proof.new_root,
                    }),
                )),
                Some((known, found)) => Err(not(format!("a proof for root {known}"), format!("one for root {found}"))),
            })
        }
        Err(refusal) => Err(refusal.clone()),
    };
    match outcome {
        Ok((_, json)) if context.json => context.out.json(&json)?,
        Ok((text, _)) => context.out.print(&text)?,
        Err(refusal) => return context.refused(&format!("{}: ", args.file.display()), &[refusal]),
    }
    Ok(Status::Good)
}

fn not(expected: String, found: String) -> Refusal {
    Refusal::new(Rule::ProofInvalid, Subject::File("the proof".to_owned()), expected, found)
}
