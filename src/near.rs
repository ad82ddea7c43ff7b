//! Near words: what somebody may have meant who wrote a word that is not known.
//!
//! A word and the known ones go in, a question or nothing comes out, to end a message with. It is only ever said and never acted on.

/// "; did you mean …?" with the nearest of the `known` words, the first of several; nothing where none is near.
///
/// Near is what some letters left out, put in, exchanged with the next or written otherwise make of it, at most two and at most a quarter of the word.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let most = (word.chars().count() / 4).min(2);
    let near = known.into_iter().map(|known| (strsim::osa_distance(word, known), known));
    let nearest = near.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance);
    nearest.map_or_else(String::new, |(_, known)| format!("; did you mean {known}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_asked_for_and_nothing_else() {
        let asked = |word| did_you_mean(word, ["row-missing", "row-swapped", "run-mixed", "run-reused"]);
        for word in ["row-mising", "row-missinng", "row-msising", "row-missimg", "Row-misssing"] {
            assert_eq!(asked(word), "; did you mean row-missing?", "{word}");
        }
        assert_eq!(asked("run-mxied"), "; did you mean run-mixed?");
        for word in ["", "row", "missing", "row-moving-on", "no-such-rule"] {
            assert_eq!(asked(word), "", "{word}");
        }
        assert_eq!(did_you_mean("run-c2", []), "");
        assert_eq!(did_you_mean("run-c2", ["run-c1", "run-c4"]), "; did you mean run-c1?", "the first of several");
    }
}
