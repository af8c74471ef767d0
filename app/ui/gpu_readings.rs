//! GPU readings as text. Missing values are omitted; a dash replaces a text without any value.

use crate::protocol::gpu::{GpuReadingView, GpuView, MemoryKind};

/// The text for a missing value.
pub(crate) const NO_VALUE: &str = "–";

/// Returns the used and total memory: `61.5 / 80 GB`.
pub(crate) fn memory(gpu: &GpuView) -> String {
    let used = gpu.reading.as_ref().and_then(|reading| reading.memory_used_gb).map(|gb| format!("{gb:.1}"));
    used_of_total(used, gpu.gpu.vram_gb.map(|gb| format!("{gb:.0}")), "GB")
}

/// Returns the used memory in percent.
pub(crate) fn memory_percent(gpu: &GpuView) -> Option<f64> {
    let total = gpu.gpu.vram_gb.filter(|gb| *gb > 0.0)?;
    Some((gpu.reading.as_ref()?.memory_used_gb? / total * 100.0).clamp(0.0, 100.0))
}

/// Returns whether the GPU uses the memory of its host.
pub(crate) fn is_unified(gpu: &GpuView) -> bool {
    gpu.gpu.memory_kind == Some(MemoryKind::Unified)
}

/// Returns the temperature: `71 °C`.
pub(crate) fn temperature(reading: &GpuReadingView) -> String {
    used_of_total(reading.temperature_celsius.map(|celsius| format!("{celsius:.0}")), None, "°C")
}

/// Returns the power draw and its limit: `390 / 400 W`.
pub(crate) fn power(reading: &GpuReadingView) -> String {
    let watts = |watts: Option<f64>| watts.map(|watts| format!("{watts:.0}"));
    used_of_total(watts(reading.power_watts), watts(reading.power_limit_watts), "W")
}

/// Returns the core and memory clocks: `1410 / 1593 MHz`.
pub(crate) fn clocks(reading: &GpuReadingView) -> String {
    let clock = |mhz: Option<u32>| mhz.map(|mhz| mhz.to_string());
    used_of_total(clock(reading.clock_mhz), clock(reading.memory_clock_mhz), "MHz")
}

fn used_of_total(used: Option<String>, total: Option<String>, unit: &str) -> String {
    match (used, total) {
        (Some(used), Some(total)) => format!("{used}\u{a0}/\u{a0}{total}\u{a0}{unit}"),
        (Some(value), None) | (None, Some(value)) => format!("{value}\u{a0}{unit}"),
        (None, None) => NO_VALUE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::gpu::Gpu;

    fn gpu_with(vram_gb: Option<f64>, reading: Option<GpuReadingView>) -> GpuView {
        GpuView { gpu: Gpu { vram_gb, ..Gpu::default() }, reading, ..GpuView::default() }
    }

    #[test]
    fn known_gpu_readings_are_listed() {
        let full = GpuReadingView {
            memory_used_gb: Some(61.54),
            temperature_celsius: Some(70.6),
            power_watts: Some(390.4),
            power_limit_watts: Some(400.0),
            clock_mhz: Some(1_410),
            memory_clock_mhz: Some(1_593),
            ..GpuReadingView::default()
        };
        let without_nbsp = |text: String| text.replace('\u{a0}', " ");
        assert_eq!(without_nbsp(memory(&gpu_with(Some(79.6), Some(full.clone())))), "61.5 / 80 GB");
        assert_eq!(without_nbsp(memory(&gpu_with(None, Some(full.clone())))), "61.5 GB");
        assert_eq!(without_nbsp(memory(&gpu_with(Some(80.0), None))), "80 GB");
        assert_eq!(memory(&gpu_with(None, None)), "–");
        let texts = [temperature, power, clocks].map(|text| without_nbsp(text(&full)));
        assert_eq!(texts, ["71 °C", "390 / 400 W", "1410 / 1593 MHz"]);
        assert_eq!([temperature, power, clocks].map(|text| text(&GpuReadingView::default())), ["–"; 3]);
        assert_eq!(memory_percent(&gpu_with(Some(123.08), Some(full.clone()))).map(f64::round), Some(50.0));
        assert_eq!(memory_percent(&gpu_with(Some(0.0), Some(full.clone()))), None);
        assert_eq!(memory_percent(&gpu_with(Some(10.0), Some(full))), Some(100.0));
    }
}
