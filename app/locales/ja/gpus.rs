//! Japanese: GPUs.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::gpus::Gpus;

pub(super) const GPUS: Gpus = Gpus {
    title: "GPU",
    intro: "フリートのすべてのGPUの現在の状態です。",
    view: "表示形式",
    as_tiles: "タイル",
    as_table: "表",
    none_yet: "GPUはまだありません",
    none_yet_hint: "GPUを備えたワーカーが接続すると、ここに表示されます。",
    none_match: "この状態のGPUはありません",
    none_match_hint: "ほかの状態のGPUはフィルターで隠れています。",
    show_all: "すべてのGPUを表示",
    gpu: "GPU",
    state: "状態",
    memory: "メモリ",
    memory_of: Phrase("GPU {0}のメモリ使用量"),
    utilisation: "使用率",
    utilisation_of: Phrase("GPU {0}の使用率"),
    temperature: "温度",
    power: "電力",
    clocks: "クロック",
    read: "計測",
    no_reading: "計測値なし",
    ecc: Phrase("ECCエラー：{0}"),
    part_of: Phrase("{0}の一部"),
    unified: "ホストのメモリを共有",
    free: "空き",
    busy: "ジョブで使用中",
    quarantined: "隔離中",
    in_use: "ジョブ以外が使用中",
    not_connected: "未接続",
    withheld: count("", "GPU {0}個を除外中"),
    withheld_hint: "エージェントが一部のGPUをジョブから除外しています。故障しているか、ジョブ以外のプロセスが使用中です。どのGPUがなぜ除外されたかは、ワーカーのページで確認できます。",
};
