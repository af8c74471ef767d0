//! Japanese: charts.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::charts::Charts;

pub(super) const CHARTS: Charts = Charts {
    metrics: "メトリクス",
    over: "横軸",
    by_step: "ステップ",
    by_time: "時間",
    scale: "縦軸",
    linear: "線形",
    log: "対数",
    no_points: "トレーナーが最初のステップを報告すると、曲線が表示されます。",
    no_points_made: "トレーナーはステップを報告しませんでした。",
    kept_every: Phrase(
        "トレーナーが報告したステップは、サーバーの保存上限を超えたため、{0} 件に 1 件だけ保存されています。",
    ),
    throughput: "毎秒ステップ数",
    at_step: Phrase("ステップ {0}"),
    summary: Phrase("最初{0}、最後{1}、最小{2}、最大{3}"),
    numbers: "数値",
    step: "ステップ",
    time: "時刻",
    gpu: Phrase("GPU {0}"),
    gpus: "GPUの推移",
    gpus_of_job: "このジョブのGPU",
    no_readings: "この期間のGPUの測定値はありません。",
    range: "期間",
    hour: "直近1時間",
    day: "直近1日",
    fleet: "GPU使用率",
    all_gpus: "すべてのGPU",
    with_job: "ジョブあり",
    busy_of: Phrase("{1}個中{0}個のGPUにジョブあり"),
};
