//! Signals: long work is asked to stop, cleans up, and then the process dies by the signal, as a shell expects.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use signal_hook::consts::{SIGINT, SIGPIPE, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::meter::Meter;

static RECEIVED: AtomicI32 = AtomicI32::new(0);

/// Listens for SIGINT and SIGTERM: the first stops `meter`, the second kills at once.
pub(super) fn install(meter: Arc<Meter>) {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if RECEIVED.swap(signal, Ordering::Relaxed) != 0 {
                die(signal);
            }
            meter.stop();
        }
    });
}

/// Dies by the signal that was received, if one was.
pub(super) fn obey() {
    let signal = RECEIVED.load(Ordering::Relaxed);
    if signal != 0 {
        die(signal);
    }
}

/// Dies as a process dies whose reader went away: quietly.
pub(super) fn die_of_broken_pipe() {
    die(SIGPIPE);
}

fn die(signal: i32) {
    // Does not return for these signals; where it cannot, the exit status stands.
    drop(emulate_default_handler(signal));
}
