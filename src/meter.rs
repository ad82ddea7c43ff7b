//! A meter: how far long work is, and whether it should stop.
//!
//! Work adds bytes as it goes and looks whether it was asked to stop; whoever shows progress reads it from another thread. It knows neither
//! the clock nor the screen, and changes no result.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts bytes and carries the wish to stop.
#[derive(Debug, Default)]
pub struct Meter {
    done: AtomicU64,
    total: AtomicU64,
    stop: AtomicBool,
}

impl Meter {
    /// More bytes are done.
    pub fn add(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    /// More bytes are to be done.
    pub fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes done, and to be done in all, as far as is known.
    #[must_use]
    pub fn reading(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Asks the work to stop.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether the work was asked to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
