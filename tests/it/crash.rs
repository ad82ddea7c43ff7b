//! Crashes and failing disks: whatever stops a seal, the store verifies, the log is whole, and the next seal completes.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use super::support::{Bench, Run};
use super::synth::Synth;

/// Kills of the random test; `WITNESSMARK_KILLS` asks for more.
const KILLS: u64 = 25;

/// Captures to seal: a scored one, a replay and a baseline.
fn captures(bench: &Bench) -> Vec<PathBuf> {
    let write = |mode: &&str| {
        let dir = bench.path(mode);
        Synth::new(mode).write(&dir);
        dir
    };
    ["capture-only", "self-replay", "baseline"].iter().map(write).collect()
}

/// A store with one capture in it, so that there is something to lose; gives its id.
fn first_capture(bench: &Bench) -> String {
    let dir = bench.path("first");
    let mut synth = Synth::new("capture-only");
    synth.run["run_id"] = "first".into();
    synth.write(&dir);
    bench.seal(&dir)
}

/// What must hold after any accident: all that the log has verifies, the first capture among it, and a rerun seals the rest.
fn assert_whole(bench: &Bench, first: &str, dirs: &[PathBuf], accident: &str) {
    let verify = bench.run(&["verify", "--all"]);
    assert_eq!(verify.status, 0, "{accident}: {}{}", verify.stdout, verify.stderr);
    assert!(verify.stdout.contains(first), "{accident}: {}", verify.stdout);
    let again = seal(bench, dirs);
    assert_eq!(again.status, 0, "{accident}: {}", again.stderr);
    assert_eq!(again.stdout.lines().count(), dirs.len(), "{accident}");
    let log = bench.run(&["--json", "log", "show"]);
    assert_eq!((log.status, log.stdout.lines().count()), (0, dirs.len() + 1), "{accident}: {}", log.stdout);
    assert_eq!(bench.run(&["verify", "--all"]).status, 0, "{accident}");
}

fn seal(bench: &Bench, dirs: &[PathBuf]) -> Run {
    let args: Vec<&std::ffi::OsStr> =
        std::iter::once("seal".as_ref()).chain(dirs.iter().map(|dir| dir.as_os_str())).collect();
    bench.run(&args)
}

#[test]
fn kill_at_random_moments() {
    #[allow(clippy::disallowed_methods, reason = "a long run is asked for by hand")]
    let kills = std::env::var("WITNESSMARK_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(KILLS);
    for kill in 0..kills {
        let bench = Bench::quick();
        let first = first_capture(&bench);
        let dirs = captures(&bench);
        let mut command =
            bench.command(&["seal".as_ref(), dirs[0].as_os_str(), dirs[1].as_os_str(), dirs[2].as_os_str()]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Spread over the life of such a seal, a few milliseconds long, by a fixed irregular step.
        sleep(Duration::from_micros(kill * 7_919 % 12_000));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_whole(&bench, &first, &dirs, &format!("kill {kill}"));
    }
}

#[test]
fn each_call_failing_once() {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).status();
    if !works.is_ok_and(|status| status.success()) {
        eprintln!("not run: strace is not there or may not trace");
        return;
    }
    let mut points = 0;
    let mut said = String::new();
    for (calls, error) in [
        ("write", "ENOSPC"),
        ("fsync", "EIO"),
        ("rename", "EIO"),
        ("ftruncate", "EIO"),
        ("mkdir", "ENOSPC"),
        ("openat", "EMFILE"),
        ("openat2", "EMFILE"),
        ("flock", "ENOLCK"),
    ] {
        for nth in 1.. {
            let bench = Bench::quick();
            let first = first_capture(&bench);
            let dirs = captures(&bench);
            let trace = bench.path("trace");
            let mut command = Command::new("strace");
            // Calls that start the program are not the program's.
            command.args(["-f", "-qq", "-o"]).arg(&trace).arg("-e").arg(format!("trace={calls}"));
            command.arg("-e").arg(format!("inject={calls}:error={error}:when={nth}"));
            command.arg(env!("CARGO_BIN_EXE_witnessmark")).args(["--threads", "1", "--store"]).arg(bench.store());
            let output = command.arg("seal").args(&dirs).output().unwrap();
            let injected = std::fs::read_to_string(&trace).unwrap_or_default().contains("(INJECTED)");
            if !injected {
                break;
            }
            points += 1;
            let run = Run::new(output);
            let accident = format!("{calls} {nth}: {error} → {}", run.status);
            assert!(run.status == 0 || run.status == 3 || run.status == 127, "{accident}: {}", run.stderr);
            assert!(!run.stderr.contains("seal-"), "{accident}: nobody knows a staged file: {}", run.stderr);
            said.push_str(&run.stderr);
            assert_whole(&bench, &first, &dirs, &accident);
        }
    }
    // What was being written, and into which store.
    for what in ["a scores shard", "a rows shard", "run.json", "a manifest"] {
        assert!(said.contains(&format!("cannot write {what} into the store ")), "{what}: {said}");
    }
    assert!(points > 30, "only {points} points were tried");
    eprintln!("{points} fault points");
}
