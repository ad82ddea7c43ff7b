//! One ordered stream, worked on in parallel.
//!
//! Two sets of slots take turns: while all threads work on one, one thread drains the other in order and fills it again. Memory is that of
//! two sets, results come out in the order they went in, whatever the number of threads. Knows nothing of what flows.

use rayon::prelude::*;

/// Runs a stream through `sets` of slots.
///
/// `fill` loads a slot and answers whether there was anything to load; `work` runs on many slots at once; `drain` takes results, in order.
///
/// # Errors
/// The first error of `fill` or `drain`; nothing is drained after it.
pub fn run<S: Send, E: Send>(
    mut sets: [Vec<S>; 2],
    mut fill: impl FnMut(&mut S) -> Result<bool, E> + Send,
    work: impl Fn(&mut S) + Sync,
    mut drain: impl FnMut(&mut S) -> Result<(), E> + Send,
) -> Result<(), E> {
    let [current, other] = &mut sets;
    let mut loaded = fill_set(current, &mut fill)?;
    let mut worked = 0;
    while loaded > 0 {
        let mut turn = || -> Result<usize, E> {
            for slot in other.iter_mut().take(worked) {
                drain(slot)?;
            }
            fill_set(other, &mut fill)
        };
        // One slot is all there is of most small streams: waking a thread would take longer.
        let (filled, ()) = if let [slot] = current.get_mut(..loaded).unwrap_or_default() {
            work(slot);
            (turn(), ())
        } else {
            rayon::join(turn, || current.par_iter_mut().take(loaded).for_each(&work))
        };
        worked = loaded;
        loaded = filled?;
        std::mem::swap(current, other);
    }
    other.iter_mut().take(worked).try_for_each(drain)
}

fn fill_set<S, E>(slots: &mut [S], fill: &mut impl FnMut(&mut S) -> Result<bool, E>) -> Result<usize, E> {
    let mut loaded = 0;
    for slot in slots {
        if !fill(slot)? {
            break;
        }
        loaded += 1;
    }
    Ok(loaded)
}

/// Two sets of slots for `rows` rows of `row_bytes`, no more of them than such a stream can use; `slot` makes one for up to so many rows.
///
/// # Errors
/// The first error of `slot`.
pub fn sets<S, E>(rows: usize, row_bytes: usize, slot: impl Fn(usize) -> Result<S, E>) -> Result<[Vec<S>; 2], E> {
    const SLOT_BYTES: usize = 1 << 20;
    let rows_a_slot = (SLOT_BYTES / row_bytes.max(1)).clamp(1, 256).min(rows.max(1));
    let most = rayon::current_num_threads() * 2;
    let needed = rows.div_ceil(rows_a_slot);
    // The end of the stream is seen by a slot that finds nothing.
    let first = needed.clamp(1, most);
    let second = needed.saturating_sub(first).clamp(1, most);
    let set = |slots: usize| (0..slots).map(|_| slot(rows_a_slot)).collect::<Result<Vec<S>, E>>();
    Ok([set(first)?, set(second)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_nothing_is_lost() {
        for total in [0_u32, 1, 3, 4, 5, 8, 9, 100] {
            let mut next = 0;
            let mut out = Vec::new();
            run::<u32, ()>(
                [vec![0; 4], vec![0; 4]],
                |slot| {
                    *slot = next;
                    next += 1;
                    Ok(*slot < total)
                },
                |slot| *slot *= 3,
                |slot| {
                    out.push(*slot);
                    Ok(())
                },
            )
            .unwrap();
            assert_eq!(out, (0..total).map(|n| n * 3).collect::<Vec<_>>());
        }
    }
}
