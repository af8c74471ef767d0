//! Chinese (simplified): charts.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::charts::Charts;

pub(super) const CHARTS: Charts = Charts {
    metrics: "指标",
    over: "横轴",
    by_step: "步数",
    by_time: "时间",
    scale: "纵轴",
    linear: "线性",
    log: "对数",
    no_points: "训练程序报告第一步后，曲线开始显示。",
    no_points_made: "训练程序没有报告任何一步。",
    kept_every: Phrase("训练程序报告的步数超过服务器的保存上限，每 {0} 步保留一步。"),
    throughput: "每秒步数",
    at_step: Phrase("第{0}步"),
    summary: Phrase("首个{0}，最新{1}，最低{2}，最高{3}"),
    numbers: "数值",
    step: "步",
    time: "时间",
    gpu: Phrase("GPU {0}"),
    gpus: "GPU走势",
    gpus_of_job: "此任务的GPU",
    no_readings: "这段时间内没有收到其GPU的读数。",
    range: "时间范围",
    hour: "最近一小时",
    day: "最近一天",
    fleet: "GPU利用率",
    all_gpus: "全部GPU",
    with_job: "有任务",
    busy_of: Phrase("{1}个GPU中{0}个有任务"),
};
