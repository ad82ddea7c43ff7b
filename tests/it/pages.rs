//! Pages for a browser: well-formed, self-contained, the same to the byte, as full as the evidence and no fuller, and readable at every width.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};
use witnessmark::digest::Sha256;
use witnessmark::refusal::Rule;
use witnessmark::rule::about;

use crate::support::{Bench, embedded};
use crate::synth::{BEST, SECOND, Synth};

const HOSTILE: &str = "\"><script>alert('1')</script>&amp;\u{202e}\u{7}\u{2028}<!--";

/// A campaign of two oracles and a candidate that takes another token once, and leaves the oracle's path once. Gives result SHA and qualification id.
pub(crate) fn qualified(bench: &Bench, candidate: &str) -> (String, Value) {
    let oracle = Synth::new("capture-only");
    let prompts: Vec<&Value> =
        oracle.run["requests"].as_array().unwrap().iter().map(|request| &request["prompt_token_ids"]).collect();
    let corpus = Sha256::of(json!({"prompts": prompts, "schema": "witnessmark.corpus/v1"}).to_string().as_bytes());
    let spec = format!(
        "schema = \"witnessmark.spec/v1\"\nworkload = \"small <&> workload\"\n\
         [corpus]\nsha256 = \"{corpus}\"\nrequests = 3\nnew_tokens = 5\n\
         [strata]\nconcurrency = [3]\nphases = [\"prefill\", \"decode\"]\n\
         [[runs]]\nrole = \"oracle\"\nmode = \"capture-only\"\nconcurrency = [3]\nrepetitions = 2\n\
         [[runs]]\nrole = \"candidate\"\nmode = \"common-replay\"\nconcurrency = [3]\nrepetitions = 1\n\
         [comparison]\nshapes = [\"schedule.slots\"]\n"
    );
    let path = bench.path("spec.toml");
    fs::write(&path, spec).unwrap();
    let spec = path.to_str().unwrap();
    assert_eq!(bench.run(&["spec", "seal", spec]).status, 0);
    for name in ["oracle-a", "oracle-b"] {
        let mut synth = oracle.clone();
        synth.of_run(name, name);
        synth.write(&bench.path(name));
        bench.seal(&bench.path(name));
    }
    let mut synth = Synth::new("common-replay");
    synth.of_run(candidate, "candidate");
    synth.run["role"] = json!("candidate");
    let row = synth.row(1, 3);
    let (best, second) = (row["argmax"].clone(), row["runner_up"].clone());
    (row["argmax"], row["runner_up"], row["sampled_token_id"]) = (second.clone(), best.clone(), second.clone());
    let place = |token: &Value| usize::try_from(token.as_u64().unwrap()).unwrap();
    let scores = synth.scores(1, 3);
    (scores[place(&best)], scores[place(&second)]) = (SECOND, BEST);
    synth.rewitness();
    synth.write(&bench.path("candidate"));
    bench.seal(&bench.path("candidate"));
    let run = bench.run(&["qualify", spec, "--json"]);
    assert_eq!(run.status, 1, "{}{}", run.stdout, run.stderr);
    let found = run.json().remove(0);
    (found["result_sha256"].as_str().unwrap().to_owned(), found["result"].clone())
}

/// Draws a page, which must succeed with this status.
fn draw(bench: &Bench, what: &[&str], file: &str, status: i32) -> String {
    let run = bench.run(&[&["report", "-o", file], what].concat());
    assert_eq!(run.status, status, "{}{}", run.stdout, run.stderr);
    fs::read_to_string(bench.path(file)).unwrap()
}

/// A page that is well-formed, runs nothing and loads nothing.
fn checked(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(page, options).unwrap_or_else(|error| panic!("{error}:\n{page}"));
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(!["script", "link", "img", "iframe", "object", "base", "form"].contains(&name), "{name}");
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!name.starts_with("on") && name != "src", "{name}");
            assert!(name != "href" || value.starts_with('#'), "{value}");
        }
        if name == "use" {
            let id = node.attribute("href").unwrap().trim_start_matches('#');
            assert!(document.descendants().any(|node| node.attribute("id") == Some(id)), "no {id}");
        }
        if name == "svg" {
            let said = node.attribute("aria-label").is_some() && node.attribute("role") == Some("img");
            assert!(said || node.attribute("aria-hidden") == Some("true"), "a drawing that says nothing");
        }
        if name == "th" {
            assert!(node.attribute("scope").is_some());
        }
    }
    assert!(!page.contains("url(") && !page.contains("@import"));
    let turns = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2028}'..='\u{2029}' | '\u{2066}'..='\u{2069}');
    assert!(!page.chars().any(|c| turns(c) || (c.is_control() && c != '\n')));
    document
}

fn of_class<'a, 'd>(document: &'a Document<'d>, class: &str) -> Vec<Node<'a, 'd>> {
    let has = |node: &Node<'_, '_>| {
        node.attribute("class").is_some_and(|classes| classes.split(' ').any(|found| found == class))
    };
    document.descendants().filter(has).collect()
}

/// The marks of all strips below a node, by shape.
fn marks(node: Node<'_, '_>, shape: &str) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for node in node.descendants().filter(|node| node.has_tag_name("use")) {
        // A mark of a row says which; those of a legend say nothing.
        let title = node.children().find(|child| child.has_tag_name("title"));
        let name = node.attribute("href").unwrap().strip_prefix(shape);
        if let (Some(name), Some(_)) = (name, title) {
            *counts.entry(name.to_owned()).or_default() += 1;
        }
    }
    counts
}

fn counts(expected: &[(&str, usize)]) -> BTreeMap<String, usize> {
    expected.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn a_page_of_a_result_shows_what_the_result_says() {
    let bench = Bench::quick();
    let (sha, result) = qualified(&bench, "candidate");
    let qualification = result["qualification"].as_str().unwrap();
    let page = draw(&bench, &[&sha], "page.html", 0);
    assert_eq!(page, draw(&bench, &[&qualification[..8], "--threads", "1"], "again.html", 0), "the same to the byte");
    let document = checked(&page);
    for id in [&sha, qualification, result["spec"].as_str().unwrap()] {
        assert!(of_class(&document, "ids")[0].descendants().any(|node| node.text() == Some(id)), "{id}");
    }
    assert!(of_class(&document, "banner")[0].descendants().any(|node| node.text() == Some("Not accepted")));
    assert!(page.contains(&format!("witnessmark verify {sha}")));
    for line in result["captures"].as_array().unwrap() {
        let id = line["capture"].as_str().unwrap();
        assert!(of_class(&document, "captures")[0].descendants().any(|node| node.text() == Some(id)), "{id}");
    }
    // Two oracles that are equal to the bit: two comparisons, each with every row of the candidate.
    let pairs: Vec<Node<'_, '_>> = document.descendants().filter(|node| node.has_tag_name("article")).collect();
    assert_eq!(pairs.len(), 2);
    let strata = result["strata"].as_array().unwrap();
    for (n, pair) in pairs.iter().enumerate() {
        let sum = |of: &dyn Fn(&Value) -> u64| strata.iter().map(|stratum| of(&stratum["comparisons"][n])).sum::<u64>();
        let rows = sum(&|found| found["rows"].as_u64().unwrap());
        let bitwise = sum(&|found| found["bitwise"].as_u64().unwrap());
        let flips = sum(&|found| u64::try_from(found["flips"].as_array().unwrap().len()).unwrap());
        assert_eq!((rows, bitwise, flips), (13, 12, 1));
        assert_eq!(marks(*pair, "#cell-"), counts(&[("bitwise", 12), ("flip", 1), ("absent", 2)]));
        // Each row stands once in each of two plots.
        assert_eq!(marks(*pair, "#dot-"), counts(&[("decode", 2 * 9), ("prefill", 2 * 3), ("flip", 2)]));
    }
    let cards: Vec<&str> = of_class(&document, "cards")[0].descendants().filter_map(|node| node.text()).collect();
    assert!(cards.contains(&"NOT_ACCEPTED") && cards.contains(&"c3 decode") && cards.contains(&"9 of 10"), "{cards:?}");
}

#[test]
fn one_document_says_what_was_drawn() {
    let bench = Bench::quick();
    let (sha, _) = qualified(&bench, "candidate");
    let run = bench.run(&["report", &sha, "-o", "page.html", "--json"]);
    let page = fs::read(bench.path("page.html")).unwrap();
    let expected = json!({"file": "page.html", "sha256": Sha256::of(&page), "verdict": "NOT_ACCEPTED"});
    assert_eq!((run.status, run.json()), (0, vec![expected]));
    // What is there is not written over, and a page is of one result or of two captures.
    assert_eq!(bench.run(&["report", &sha, "-o", "page.html"]).status, 3);
    assert_eq!(bench.run(&["report", "oracle-a", "-o", "other.html"]).status, 64);
    assert_eq!(bench.run(&["report", "nobody", "-o", "other.html"]).status, 3);
    assert!(!bench.path("other.html").exists());
}

#[test]
fn a_bundle_is_drawn_without_a_store() {
    let bench = Bench::quick();
    let (sha, _) = qualified(&bench, "candidate");
    let page = draw(&bench, &[&sha], "page.html", 0);
    for (what, file) in [(sha.as_str(), "result.wmb"), ("oracle-a", "capture.wmb")] {
        assert_eq!(bench.run(&["bundle", what, "-o", file]).status, 0);
    }
    fs::rename(bench.store(), bench.path("away")).unwrap();
    assert_eq!(draw(&bench, &["result.wmb"], "bundle.html", 0), page, "the same to the byte");
    let none = bench.run(&["report", "capture.wmb", "-o", "none.html"]);
    assert_eq!(none.status, 64);
    assert!(none.stderr.contains("has no result"), "{}", none.stderr);
    let mut bytes = fs::read(bench.path("result.wmb")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(bench.path("damaged.wmb"), bytes).unwrap();
    checked(&draw(&bench, &["damaged.wmb"], "damaged.html", 2));
}

#[test]
fn documents_of_the_log_are_shown_as_they_are() {
    let bench = Bench::quick();
    let (sha, result) = qualified(&bench, "candidate");
    let spec = result["spec"].as_str().unwrap();
    let shown = bench.run(&["show", &spec[..8]]);
    assert_eq!((shown.status, shown.stdout), (0, fs::read_to_string(bench.path("spec.toml")).unwrap()));
    let shown = bench.run(&["show", &sha, "--json"]).json().remove(0);
    assert_eq!((&shown["act"], &shown["sha256"]), (&json!("qualify"), &json!(sha)));
    assert_eq!(serde_json::from_str::<Value>(shown["text"].as_str().unwrap()).unwrap(), result);
    // A spec is no capture, and that is what is said.
    let run = bench.run(&["verify", spec]);
    assert_eq!(run.status, 64);
    assert!(run.stderr.contains(&format!("no capture but the spec {spec} of the log")), "{}", run.stderr);
}

/// What a store names and does not have could have spoken against a claim: nothing is said then.
#[test]
fn no_claim_is_judged_where_something_that_could_speak_against_it_is_gone() {
    let bench = Bench::quick();
    let (sha, _) = qualified(&bench, "candidate");
    let mut stranger = Synth::new("capture-only");
    stranger.of_run("stranger", "stranger");
    stranger.write(&bench.path("stranger"));
    bench.seal(&bench.path("stranger"));
    let named = ["oracle-a", "oracle-b", "candidate"];
    let judge = |command: &str| bench.run(&[&[command, "spec.toml"], &named[..]].concat());
    assert_eq!(judge("qualify").status, 1);
    let shown = bench.run(&["show", "stranger", "--json"]).json().remove(0);
    let run_object = shown["manifest"]["run_object"].as_str().unwrap();
    let object = bench.store().join("objects").join(&run_object[..2]).join(&run_object[2..]);
    let kept = fs::read(&object).unwrap();
    fs::remove_file(&object).unwrap();
    for command in ["qualify", "calibrate"] {
        let run = judge(command);
        assert_eq!((run.status, run.refused()), (2, vec!["object-missing".to_owned()]), "{command}: {}", run.stdout);
    }
    assert_eq!(bench.run(&["verify", &sha]).status, 2);
    fs::write(&object, kept).unwrap();
    assert_eq!(judge("qualify").status, 1);
    fs::create_dir_all(bench.store().join("refs/bundles")).unwrap();
    fs::write(bench.store().join("refs/bundles").join("0".repeat(64)), "cut").unwrap();
    for command in ["qualify", "calibrate"] {
        let run = judge(command);
        assert_eq!(
            (run.status, run.refused()),
            (2, vec!["json-not-canonical".to_owned()]),
            "{command}: {}",
            run.stdout
        );
    }
}

#[test]
fn names_in_evidence_stay_text() {
    let bench = Bench::quick();
    let (sha, result) = qualified(&bench, HOSTILE);
    assert_eq!(result["captures"][0]["run_id"], HOSTILE);
    let shown = "\"><script>alert('1')</script>&amp;\\u{202e}\\u{7}\\u{2028}<!--";
    for (what, file) in [(vec![sha.as_str()], "result.html"), (vec!["oracle-a", HOSTILE], "diff.html")] {
        let page = draw(&bench, &what, file, 0);
        let document = checked(&page);
        assert!(of_class(&document, "run").iter().any(|node| node.text() == Some(shown)), "{page}");
    }
}

#[test]
fn a_refusal_has_a_page_too() {
    let bench = Bench::quick();
    let (sha, _) = qualified(&bench, "candidate");
    let shown = bench.run(&["show", "candidate", "--json"]).json().remove(0);
    let object = shown["manifest"]["score_shards"][0]["object"].as_str().unwrap();
    let scores = bench.store().join("objects").join(&object[..2]).join(&object[2..]);
    let mut bytes = fs::read(&scores).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::remove_file(&scores).unwrap();
    fs::write(&scores, bytes).unwrap();
    for (what, file) in [(vec![sha.as_str()], "result.html"), (vec!["oracle-a", "candidate"], "diff.html")] {
        let page = draw(&bench, &what, file, 2);
        let document = checked(&page);
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        assert!(texts.contains(&"Refused") && texts.contains(&"object-digest"), "{texts:?}");
        let about = about(Rule::ObjectDigest);
        assert!(texts.contains(&about.protects) && texts.contains(&about.remedy), "{texts:?}");
        assert!(of_class(&document, "banner")[0].attribute("class") == Some("banner bad"));
        assert!(!page.contains("NOT_ACCEPTED"), "a refusal gives no verdict");
    }
    let run = bench.run(&["report", &sha, "-o", "json.html", "--json"]);
    assert_eq!((run.status, &run.json()[0]["verdict"]), (2, &json!("REFUSED")));
    assert_eq!(run.json()[0]["refusals"][0]["rule"], "object-digest");
}

#[test]
fn a_page_of_two_captures_shows_what_diff_says() {
    let bench = Bench::quick();
    let ids = ["oracle-c1-rep0", "oracle-c4-rep0"].map(|name| bench.seal(&embedded(name)));
    let what = [ids[0].as_str(), ids[1].as_str()];
    let page = draw(&bench, &what, "diff.html", 0);
    let document = checked(&page);
    for id in what {
        assert!(of_class(&document, "ids")[0].descendants().any(|node| node.text() == Some(id)), "{id}");
    }
    let diff = bench.run(&["diff", what[0], what[1], "--json"]).json().remove(0);
    let cells = marks(document.root(), "#cell-");
    let scores = &diff["scores"];
    assert_eq!(u64::try_from(cells["bitwise"]).ok(), scores["equal_rows"].as_u64());
    let differing = ["agrees", "near", "flip"].iter().filter_map(|name| cells.get(*name)).sum::<usize>();
    assert_eq!(differing, scores["differing"].as_array().unwrap().len());
    let all = cells.values().sum::<usize>() - cells.get("absent").copied().unwrap_or(0);
    assert_eq!(marks(document.root(), "#dot-").values().sum::<usize>(), 2 * all);

    // A capture beside itself.
    let same = draw(&bench, &[what[0], what[0]], "same.html", 0);
    let document = checked(&same);
    assert!(of_class(&document, "banner")[0].descendants().any(|node| node.text() == Some("Identical")));
    assert_eq!(marks(document.root(), "#cell-").keys().collect::<Vec<_>>(), ["bitwise"]);
}

/// A browser by one of the names that distributions give it.
fn browser() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "where programs are is said from outside")]
    let path = std::env::var_os("PATH")?;
    let names = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];
    std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name))).find(|path| path.is_file())
}

/// Runs a browser on a page, light or dark; gives what it prints.
fn browse(browser: &Path, bench: &Bench, dark: bool, args: &[&str], file: &str) -> String {
    // To Blink 0 is dark and 1 is light.
    let scheme = format!("--blink-settings=preferredColorScheme={}", u8::from(!dark));
    let profile = format!("--user-data-dir={}", bench.path("profile").display());
    let fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--allow-file-access-from-files"];
    let output = Command::new(browser)
        .args(fixed)
        .args([&scheme, &profile])
        .args(args)
        .arg(format!("file://{}", bench.path(file).display()))
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_browser_shows_pages_at_every_width() {
    let Some(browser) = browser() else {
        let line = "SKIPPED: pages::a_browser_shows_pages_at_every_width: no chromium in PATH\n";
        return std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).unwrap();
    };
    let bench = Bench::new();
    let (sha, _) = qualified(&bench, &HOSTILE.repeat(4));
    for name in ["oracle-c1-rep0", "oracle-c4-rep0"] {
        bench.seal(&embedded(name));
    }
    draw(&bench, &[&sha], "result.html", 0);
    draw(&bench, &["oracle-c1-rep0", "oracle-c4-rep0"], "diff.html", 0);
    for file in ["result.html", "diff.html"] {
        for (dark, paper) in [(false, "rgb(252, 252, 251)"), (true, "rgb(19, 21, 24)")] {
            for width in [360, 1280] {
                // A window cannot be as narrow as a phone; a frame can. All that is folded is unfolded.
                let frame = format!(
                    "<!doctype html><body style=\"margin:0\"><iframe src=\"{file}\" style=\"border:0;width:{width}px;height:2000px\"></iframe><script>\
                     onload = () => {{ const page = frames[0].document; page.querySelectorAll('details').forEach(part => part.open = true);\
                     const seen = [page.documentElement.clientWidth, page.documentElement.scrollWidth, getComputedStyle(frames[0].document.body).backgroundColor];\
                     document.title = seen.join(' / '); }}</script>"
                );
                fs::write(bench.path("frame.html"), frame).unwrap();
                let seen = browse(&browser, &bench, dark, &["--dump-dom"], "frame.html");
                let title = format!("<title>{width} / {width} / {paper}</title>");
                assert!(seen.contains(&title), "{file}: {title} expected, found {seen}");
                let shot = bench.path("shot.png");
                let args = [format!("--screenshot={}", shot.display()), format!("--window-size={width},2000")];
                browse(&browser, &bench, dark, &[&args[0], &args[1]], "frame.html");
                // A blank picture of this size takes some thousand bytes.
                let size = fs::metadata(&shot).unwrap().len();
                assert!(size > 40_000, "{file} at {width}: a picture of {size} bytes");
                fs::remove_file(shot).unwrap();
            }
        }
    }
}
