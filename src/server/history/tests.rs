use app::domain::gpu::Gpu;
use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use proptest::prelude::*;

use super::file::Damaged;
use super::*;

const NOW: Timestamp = Timestamp(1_705_314_600_000);
const SMALL: Grain = Grain { step: Millis(10), cells: 8 };

fn busy(percent: f64) -> Sample {
    Sample { utilization: Some(percent), temperature: Some(percent / 2.0), ..Sample::default() }
}

fn worker(number: u8) -> WorkerId {
    WorkerId::new(Timestamp(0), [number; 10])
}

fn gpu(index: u32) -> Gpu {
    let (uuid, name) = (format!("GPU-{index}"), "A100".to_owned());
    Gpu { index, uuid, name, vram_gb: Some(80.0), memory: None, part_of: None, withheld: None }
}

/// A worker with one GPU tells of these moments, in seconds by its own clock.
fn told(history: &mut History, moments: &[(i64, f64)], now: Timestamp) {
    let said: Vec<_> =
        moments.iter().map(|(at, used)| (Timestamp(at * 1_000), vec![("GPU-0".to_owned(), busy(*used))])).collect();
    history.note(&worker(1), &[gpu(0)], &said, now);
}

fn known(ring: &Ring) -> Vec<(i64, f64, f64)> {
    let cells = (ring.oldest()..=ring.newest()).map(|number| (number - ring.newest(), ring.cell(number)));
    cells.filter_map(|(back, cell)| Some((back, cell.utilization()?, cell.peak()?))).collect()
}

#[test]
fn a_cell_takes_eight_bytes_and_a_gpu_less_than_eight_kilobytes() {
    assert_eq!(size_of::<Cell>(), 8);
    let track = Track::new(&gpu(0));
    let bytes =
        size_of::<Track>() + (FINE.cells + COARSE.cells) * size_of::<Cell>() + track.uuid.len() + track.name.len();
    assert!(bytes < 8_192, "{bytes}");
}

#[test]
fn moments_become_means_and_the_highest_stays() {
    let mut history = History::default();
    told(&mut history, &[(0, 10.0), (5, 30.0), (10, 80.0)], Timestamp(NOW.0 + 14_000));
    let [track] = history.of(&worker(1)) else { panic!("one GPU") };
    assert_eq!(known(&track.fine), [(0, 40.0, 80.0)]);
    assert_eq!(track.fine.cell(track.fine.newest()).hottest(), Some(40.0));
    assert_eq!(known(&track.coarse), [(0, 40.0, 80.0)]);
}

#[test]
fn an_agents_clock_tells_spans_and_no_moments() {
    for skew in [-86_400_000 * 400, 0, 86_400_000 * 400] {
        let mut history = History::default();
        told(&mut history, &[(skew, 10.0), (skew + 60, 90.0)], NOW);
        let [track] = history.of(&worker(1)) else { panic!("one GPU") };
        assert_eq!(known(&track.fine), [(-4, 10.0, 10.0), (0, 90.0, 90.0)]);
        assert_eq!(track.fine.newest(), FINE.cell_of(NOW));
    }
    // One that is set back between two moments puts none of them into the future.
    let mut history = History::default();
    told(&mut history, &[(5_000, 10.0), (0, 90.0)], NOW);
    assert_eq!(history.of(&worker(1))[0].fine.newest(), FINE.cell_of(NOW));
}

#[test]
fn what_comes_late_fills_a_gap_and_raises_the_highest_only() {
    let mut ring = Ring::new(SMALL);
    for (at, used) in [(100, 20.0), (140, 40.0)] {
        ring.note(Timestamp(at), &busy(used));
    }
    assert_eq!(known(&ring), [(-4, 20.0, 20.0), (0, 40.0, 40.0)], "between them is a gap");
    ring.note(Timestamp(122), &busy(70.0));
    ring.note(Timestamp(105), &busy(90.0));
    ring.note(Timestamp(0), &busy(99.0));
    assert_eq!(known(&ring), [(-4, 20.0, 90.0), (-2, 70.0, 70.0), (0, 40.0, 40.0)]);
}

#[test]
fn a_clock_that_is_set_back_leaves_nothing_in_the_future() {
    let mut history = History::default();
    told(&mut history, &[(0, 10.0)], NOW);
    let earlier = Timestamp(NOW.0 - 600_000);
    told(&mut history, &[(0, 50.0)], earlier);
    let [track] = history.of(&worker(1)) else { panic!("one GPU") };
    assert_eq!((track.fine.newest(), track.coarse.newest()), (FINE.cell_of(earlier), COARSE.cell_of(earlier)));
    assert_eq!(known(&track.fine), [(0, 50.0, 50.0)]);
}

#[test]
fn gpus_that_are_gone_and_workers_of_yesterday_are_forgotten() {
    let mut history = History::default();
    told(&mut history, &[(0, 10.0)], NOW);
    history.note(
        &worker(1),
        &[gpu(1)],
        &[(NOW, vec![("GPU-1".to_owned(), busy(1.0)), ("GPU-9".to_owned(), busy(1.0))])],
        NOW,
    );
    assert_eq!(history.of(&worker(1)).iter().map(|track| track.index).collect::<Vec<_>>(), [1]);
    history.prune(Timestamp(NOW.0 + 86_000_000));
    assert_eq!(history.tracks(), 1, "a worker that is gone stays for a day");
    history.prune(Timestamp(NOW.0 + 86_600_000));
    assert_eq!(history, History::default());
}

#[test]
fn there_is_a_most_that_is_kept() {
    let mut history = History::default();
    let gpus: Vec<Gpu> = (0..64).map(gpu).collect();
    for number in 0..=u8::MAX {
        history.note(&worker(number), &gpus, &[(NOW, Vec::new())], NOW);
    }
    assert_eq!(history.tracks(), 256 * 64);
    let more: Vec<Gpu> = (0..5_000).map(gpu).collect();
    history.note(&WorkerId::new(Timestamp(1), [0; 10]), &more, &[(NOW, Vec::new())], NOW);
    assert_eq!(history.tracks(), MOST_TRACKS);
}

#[test]
fn two_histories_become_one_that_knows_what_both_know() {
    let (mut ours, mut theirs) = (History::default(), History::default());
    told(&mut theirs, &[(0, 30.0)], Timestamp(NOW.0 - 300_000));
    told(&mut ours, &[(0, 60.0)], NOW);
    theirs.note(&worker(2), &[gpu(5)], &[(NOW, vec![("GPU-5".to_owned(), busy(5.0))])], NOW);
    let mut merged = ours.clone();
    merged.merge(theirs.clone());
    assert_eq!(known(&merged.of(&worker(1))[0].fine), [(-20, 30.0, 30.0), (0, 60.0, 60.0)]);
    assert_eq!(merged.of(&worker(2))[0].index, 5);
    let mut again = merged.clone();
    again.merge(theirs);
    again.merge(ours);
    assert_eq!(again, merged, "what is known already changes nothing");
}

#[test]
fn bytes_that_were_damaged_are_no_history() {
    let mut history = History::default();
    told(&mut history, &[(0, 30.0)], NOW);
    let bytes = history.to_bytes();
    for place in [0, 9, 200, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1;
        assert_eq!(History::from_bytes(&damaged), Err(Damaged), "{place}");
    }
    for length in [0, 8, 40, bytes.len() - 1] {
        assert_eq!(History::from_bytes(&bytes[..length]), Err(Damaged), "{length}");
    }
}

fn samples() -> impl Strategy<Value = Vec<(i64, f64)>> {
    prop::collection::vec((0_i64..300, 0.0..100.0_f64), 1..60)
}

proptest! {
    /// Whatever the order of moments, a ring knows of no time that nobody spoke of, keeps the highest of each, and a
    /// mean lies between what was said.
    #[test]
    fn a_ring_invents_nothing_and_loses_no_extreme(moments in samples()) {
        let mut ring = Ring::new(SMALL);
        for (at, used) in &moments {
            ring.note(Timestamp(*at), &busy(*used));
        }
        let newest = moments.iter().map(|(at, _)| at / 10).max().unwrap_or_default();
        prop_assert_eq!(ring.newest(), newest);
        for number in newest - 20..=newest + 20 {
            let cell = ring.cell(number);
            // What was too old when it came means nothing, even if the ring begins there.
            let mut latest = i64::MIN;
            let heard: Vec<f64> = moments
                .iter()
                .filter(|(at, _)| {
                    latest = latest.max(at / 10);
                    at / 10 == number && number > latest - 8
                })
                .map(|(_, used)| *used)
                .collect();
            let is_kept = number > newest - 8 && !heard.is_empty();
            prop_assert_eq!(cell.is_heard(), is_kept);
            if is_kept {
                let (low, high) = heard.iter().fold((f64::MAX, f64::MIN), |(low, high), used| (low.min(*used), high.max(*used)));
                let mean = cell.utilization().expect("a mean");
                prop_assert!((cell.peak().expect("the highest") - high).abs() <= 0.51);
                prop_assert!(low - 0.26 <= mean && mean <= high + 0.26);
            }
        }
    }

    #[test]
    fn what_is_written_is_read(moments in samples(), uuid in "\\PC{0,40}", vram in prop::option::of(0.0..1_000.0_f64)) {
        let gpu = Gpu { uuid: uuid.clone(), vram_gb: vram, ..gpu(3) };
        let said: Vec<_> = moments.iter().map(|(at, used)| (Timestamp(at * 1_000), vec![(uuid.clone(), busy(*used))])).collect();
        let mut history = History::default();
        history.note(&worker(7), &[gpu], &said, NOW);
        let read = History::from_bytes(&history.to_bytes()).expect("whole");
        let (ours, theirs) = (&history.of(&worker(7))[0], &read.of(&worker(7))[0]);
        prop_assert_eq!((&ours.uuid, ours.index, ours.vram_gb), (&theirs.uuid, theirs.index, theirs.vram_gb));
        for grain in [FINE, COARSE] {
            let (ours, theirs) = (ours.ring(grain), theirs.ring(grain));
            prop_assert_eq!(ours.newest(), theirs.newest());
            for number in ours.oldest()..=ours.newest() {
                prop_assert_eq!(ours.cell(number), theirs.cell(number));
            }
        }
    }

    #[test]
    fn whatever_the_bytes_are_they_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        use sha2::{Digest, Sha256};
        let mut bytes = [b"STGPUH01".as_slice(), &bytes].concat();
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        let _read_or_refused = History::from_bytes(&bytes);
    }
}
