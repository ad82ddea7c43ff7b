//! Progress of long work, on stderr, for people only.

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::Context;
use crate::meter::Meter;

const TICK: Duration = Duration::from_millis(100);
/// Work that is done sooner shows nothing.
const PATIENCE: u32 = 5;

/// A bar that follows a meter until it is dropped.
pub(super) struct Progress {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows a bar, where there is somebody to see it.
    pub(super) fn start(context: &Context<'_>, what: &'static str) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let show = !context.quiet && io::stderr().is_terminal();
        let thread = show.then(|| {
            let (done, meter) = (Arc::clone(&done), Arc::clone(&context.meter));
            std::thread::spawn(move || follow(&done, &meter, what))
        });
        Self { done, thread }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A bar that failed to draw is no reason to fail.
            drop(thread.join());
        }
    }
}

fn follow(done: &AtomicBool, meter: &Meter, what: &'static str) {
    for _ in 0..PATIENCE {
        std::thread::sleep(TICK);
        if done.load(Ordering::Relaxed) {
            return;
        }
    }
    let bar = ProgressBar::new(0);
    let template = "{msg} {bar:30} {decimal_bytes}/{decimal_total_bytes} {decimal_bytes_per_sec} {eta}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.set_message(what);
    while !done.load(Ordering::Relaxed) {
        let (bytes, total) = meter.reading();
        bar.set_length(total.max(bytes));
        bar.set_position(bytes);
        std::thread::sleep(TICK);
    }
    bar.finish_and_clear();
}
