//! `witnessmark explain`.

use super::args::ExplainArgs;
use super::{CliError, Context, Status};
use crate::near::did_you_mean;
use crate::refusal::Rule;
use crate::report::text;
use crate::rule::about;

pub(super) fn run(context: &mut Context<'_>, args: &ExplainArgs) -> Result<Status, CliError> {
    let wanted: Vec<Rule> = match &args.rule {
        None => Rule::ALL.to_vec(),
        Some(id) => match Rule::ALL.iter().find(|rule| rule.id() == id) {
            Some(rule) => vec![*rule],
            None => {
                let meant = did_you_mean(id, Rule::ALL.iter().map(|rule| rule.id()));
                return Err(CliError::Usage(format!("no rule {id:?} (witnessmark explain lists them){meant}")));
            }
        },
    };
    if context.json {
        for rule in wanted {
            let about = about(rule);
            let (protects, remedy, asked) = (about.protects, about.remedy, text::asked(rule));
            context
                .out
                .json(&serde_json::json!({ "rule": rule, "protects": protects, "remedy": remedy, "asked": asked }))?;
        }
    } else if let ([rule], Some(_)) = (wanted.as_slice(), &args.rule) {
        context.out.print(&text::explain(*rule))?;
    } else {
        context.out.print(&text::rules())?;
    }
    Ok(Status::Good)
}
