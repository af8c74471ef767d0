use app::domain::gpu::Gpu;
use app::domain::ids::WorkerId;
use app::domain::time::{Millis, Timestamp};
use proptest::prelude::*;

use super::file::CorruptHistory;
use super::*;

const NOW: Timestamp = Timestamp(1_705_314_600_000);
const SMALL: Resolution = Resolution { step: Millis(10), cells: 8 };

fn busy_sample(percent: f64) -> GpuSample {
    GpuSample { utilization: Some(percent), temperature: Some(percent / 2.0), ..GpuSample::default() }
}

fn worker(number: u8) -> WorkerId {
    WorkerId::new(Timestamp(0), [number; 10])
}

fn gpu(index: u32) -> Gpu {
    let (uuid, name) = (format!("GPU-{index}"), "A100".to_owned());
    Gpu { index, uuid, name, vram_gb: Some(80.0), memory: None, part_of: None, unavailable: None }
}

/// Records samples of a worker with one GPU, at seconds of its own clock.
fn record(history: &mut History, moments: &[(i64, f64)], now: Timestamp) {
    let samples: Vec<_> = moments
        .iter()
        .map(|(at, utilization)| (Timestamp(at * 1_000), vec![("GPU-0".to_owned(), busy_sample(*utilization))]))
        .collect();
    history.record(&worker(1), &[gpu(0)], &samples, now);
}

fn known_cells(ring: &Ring) -> Vec<(i64, f64, f64)> {
    let cells =
        (ring.oldest_index()..=ring.newest_index()).map(|number| (number - ring.newest_index(), ring.cell(number)));
    cells.filter_map(|(offset, cell)| Some((offset, cell.utilization()?, cell.peak_utilization()?))).collect()
}

#[test]
fn cell_takes_8_bytes_and_gpu_less_than_8_kilobytes() {
    assert_eq!(size_of::<HistoryCell>(), 8);
    let track = GpuTrack::new(&gpu(0));
    let bytes = size_of::<GpuTrack>()
        + (FINE.cells + COARSE.cells) * size_of::<HistoryCell>()
        + track.uuid.len()
        + track.name.len();
    assert!(bytes < 8_192, "{bytes}");
}

#[test]
fn samples_become_means_and_maxima() {
    let mut history = History::default();
    record(&mut history, &[(0, 10.0), (5, 30.0), (10, 80.0)], Timestamp(NOW.0 + 14_000));
    let [track] = history.worker_tracks(&worker(1)) else { panic!("one GPU") };
    assert_eq!(known_cells(&track.fine), [(0, 40.0, 80.0)]);
    assert_eq!(track.fine.cell(track.fine.newest_index()).max_temperature(), Some(40.0));
    assert_eq!(known_cells(&track.coarse), [(0, 40.0, 80.0)]);
}

#[test]
fn agent_clock_is_used_for_durations_only() {
    for skew in [-86_400_000 * 400, 0, 86_400_000 * 400] {
        let mut history = History::default();
        record(&mut history, &[(skew, 10.0), (skew + 60, 90.0)], NOW);
        let [track] = history.worker_tracks(&worker(1)) else { panic!("one GPU") };
        assert_eq!(known_cells(&track.fine), [(-4, 10.0, 10.0), (0, 90.0, 90.0)]);
        assert_eq!(track.fine.newest_index(), FINE.cell_index(NOW));
    }
    // A clock that is set back between two samples moves none of them into the future.
    let mut history = History::default();
    record(&mut history, &[(5_000, 10.0), (0, 90.0)], NOW);
    assert_eq!(history.worker_tracks(&worker(1))[0].fine.newest_index(), FINE.cell_index(NOW));
}

#[test]
fn late_sample_fills_gaps_and_raises_maxima_only() {
    let mut ring = Ring::new(SMALL);
    for (at, utilization) in [(100, 20.0), (140, 40.0)] {
        ring.record(Timestamp(at), &busy_sample(utilization));
    }
    assert_eq!(known_cells(&ring), [(-4, 20.0, 20.0), (0, 40.0, 40.0)], "between them is a gap");
    ring.record(Timestamp(122), &busy_sample(70.0));
    ring.record(Timestamp(105), &busy_sample(90.0));
    ring.record(Timestamp(0), &busy_sample(99.0));
    assert_eq!(known_cells(&ring), [(-4, 20.0, 90.0), (-2, 70.0, 70.0), (0, 40.0, 40.0)]);
}

#[test]
fn clock_set_back_leaves_no_cells_in_the_future() {
    let mut history = History::default();
    record(&mut history, &[(0, 10.0)], NOW);
    let earlier = Timestamp(NOW.0 - 600_000);
    record(&mut history, &[(0, 50.0)], earlier);
    let [track] = history.worker_tracks(&worker(1)) else { panic!("one GPU") };
    assert_eq!(
        (track.fine.newest_index(), track.coarse.newest_index()),
        (FINE.cell_index(earlier), COARSE.cell_index(earlier))
    );
    assert_eq!(known_cells(&track.fine), [(0, 50.0, 50.0)]);
}

#[test]
fn removed_gpus_and_old_workers_are_pruned() {
    let mut history = History::default();
    record(&mut history, &[(0, 10.0)], NOW);
    history.record(
        &worker(1),
        &[gpu(1)],
        &[(NOW, vec![("GPU-1".to_owned(), busy_sample(1.0)), ("GPU-9".to_owned(), busy_sample(1.0))])],
        NOW,
    );
    assert_eq!(history.worker_tracks(&worker(1)).iter().map(|track| track.index).collect::<Vec<_>>(), [1]);
    history.prune(Timestamp(NOW.0 + 86_000_000));
    assert_eq!(history.track_count(), 1, "a deleted worker stays for a day");
    history.prune(Timestamp(NOW.0 + 86_600_000));
    assert_eq!(history, History::default());
}

#[test]
fn number_of_gpus_is_limited() {
    let mut history = History::default();
    let gpus: Vec<Gpu> = (0..64).map(gpu).collect();
    for number in 0..=u8::MAX {
        history.record(&worker(number), &gpus, &[(NOW, Vec::new())], NOW);
    }
    assert_eq!(history.track_count(), 256 * 64);
    let more: Vec<Gpu> = (0..5_000).map(gpu).collect();
    history.record(&WorkerId::new(Timestamp(1), [0; 10]), &more, &[(NOW, Vec::new())], NOW);
    assert_eq!(history.track_count(), MAX_TRACKS);
}

#[test]
fn merged_history_has_the_data_of_both() {
    let (mut ours, mut theirs) = (History::default(), History::default());
    record(&mut theirs, &[(0, 30.0)], Timestamp(NOW.0 - 300_000));
    record(&mut ours, &[(0, 60.0)], NOW);
    theirs.record(&worker(2), &[gpu(5)], &[(NOW, vec![("GPU-5".to_owned(), busy_sample(5.0))])], NOW);
    let mut merged = ours.clone();
    merged.merge(theirs.clone());
    assert_eq!(known_cells(&merged.worker_tracks(&worker(1))[0].fine), [(-20, 30.0, 30.0), (0, 60.0, 60.0)]);
    assert_eq!(merged.worker_tracks(&worker(2))[0].index, 5);
    let mut again = merged.clone();
    again.merge(theirs);
    again.merge(ours);
    assert_eq!(again, merged, "known data changes nothing");
}

#[test]
fn damaged_bytes_are_rejected() {
    let mut history = History::default();
    record(&mut history, &[(0, 30.0)], NOW);
    let bytes = history.to_bytes();
    for index in [0, 9, 200, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[index] ^= 1;
        assert_eq!(History::from_bytes(&damaged), Err(CorruptHistory), "{index}");
    }
    for length in [0, 8, 40, bytes.len() - 1] {
        assert_eq!(History::from_bytes(&bytes[..length]), Err(CorruptHistory), "{length}");
    }
}

fn samples() -> impl Strategy<Value = Vec<(i64, f64)>> {
    prop::collection::vec((0_i64..300, 0.0..100.0_f64), 1..60)
}

proptest! {
    /// Whatever the order of samples, a ring has no data for a period without a sample, keeps each maximum, and means
    /// lie between the samples.
    #[test]
    fn ring_invents_no_data_and_keeps_maxima(moments in samples()) {
        let mut ring = Ring::new(SMALL);
        for (at, utilization) in &moments {
            ring.record(Timestamp(*at), &busy_sample(*utilization));
        }
        let newest = moments.iter().map(|(at, _)| at / 10).max().unwrap_or_default();
        prop_assert_eq!(ring.newest_index(), newest);
        for number in newest - 20..=newest + 20 {
            let cell = ring.cell(number);
            // A sample that was too old is ignored, even if the ring begins there.
            let mut latest = i64::MIN;
            let values: Vec<f64> = moments
                .iter()
                .filter(|(at, _)| {
                    latest = latest.max(at / 10);
                    at / 10 == number && number > latest - 8
                })
                .map(|(_, utilization)| *utilization)
                .collect();
            let expects_data = number > newest - 8 && !values.is_empty();
            prop_assert_eq!(cell.has_data(), expects_data);
            if expects_data {
                let low = values.iter().copied().fold(f64::MAX, f64::min);
                let high = values.iter().copied().fold(f64::MIN, f64::max);
                let mean = cell.utilization().expect("a mean");
                prop_assert!((cell.peak_utilization().expect("the highest") - high).abs() <= 0.51);
                prop_assert!(low - 0.26 <= mean && mean <= high + 0.26);
            }
        }
    }

    #[test]
    fn history_round_trips_through_bytes(moments in samples(), uuid in "\\PC{0,40}", vram in prop::option::of(0.0..1_000.0_f64)) {
        let gpu = Gpu { uuid: uuid.clone(), vram_gb: vram, ..gpu(3) };
        let sample = |utilization: f64| vec![(uuid.clone(), busy_sample(utilization))];
        let samples: Vec<_> = moments.iter().map(|(at, utilization)| (Timestamp(at * 1_000), sample(*utilization))).collect();
        let mut history = History::default();
        history.record(&worker(7), &[gpu], &samples, NOW);
        let parsed = History::from_bytes(&history.to_bytes()).expect("valid bytes");
        let (ours, theirs) = (&history.worker_tracks(&worker(7))[0], &parsed.worker_tracks(&worker(7))[0]);
        prop_assert_eq!((&ours.uuid, ours.index, ours.vram_gb), (&theirs.uuid, theirs.index, theirs.vram_gb));
        for resolution in [FINE, COARSE] {
            let (ours, theirs) = (ours.ring(resolution), theirs.ring(resolution));
            prop_assert_eq!(ours.newest_index(), theirs.newest_index());
            for number in ours.oldest_index()..=ours.newest_index() {
                prop_assert_eq!(ours.cell(number), theirs.cell(number));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_are_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        use sha2::{Digest, Sha256};
        let mut bytes = [b"STGPUH01".as_slice(), &bytes].concat();
        let digest = Sha256::digest(&bytes);
        bytes.extend(digest);
        let _read_or_rejected = History::from_bytes(&bytes);
    }
}
