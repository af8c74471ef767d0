//! Japanese: what is to be trained.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::train::Train;

pub(super) const TRAIN: Train = Train {
    title: "クラウドで学習",
    intro: "設定を送信します。後から変更があっても、ジョブは現時点のファイルを使います。",
    configuration: "設定",
    target: "実行先",
    target_worker: "リモートのワーカーのみ。空くまで待機します。",
    target_auto: "条件に合うワーカーがあればそこで、なければこのサーバーのGPUで実行します。",
    target_local: "このサーバーのGPUのみ。",
    gpu_count: "GPU数",
    gpu_count_hint: "空欄の場合は、設定の指定に従います。",
    labels: "ワーカーのラベル",
    labels_hint: "1行に1つの「key=value」。ワーカーはそのすべてを備えている必要があります。「*」は任意の文字列を表します。",
    labels_example: "gpu_type=a100*",
    known_labels: "フリート内のラベル",
    advanced: "再実行とチェックポイント",
    retries: "ワーカー途絶後の再実行",
    retries_hint: "ワーカーまたはそのホストに原因がある場合に再実行する、最大回数です。トレーナー自体の失敗では再実行しません。",
    checkpoints: "サーバーに送信するチェックポイント",
    checkpoints_hint: "ワーカーが途絶しても、別のワーカーがここから続行できます。",
    checkpoints_last: "最新のみ",
    checkpoints_all: "すべて",
    checkpoints_none: "なし",
    exclusive: "二重に実行しない",
    exclusive_text: "接続を失ったワーカーはジョブを停止し、それまで他のワーカーは開始しません。ワーカー途絶後の再実行には、より時間がかかります。",
    submit: "ジョブを送信",
    files: count("", "ファイル{0}件"),
    revision: Phrase("リビジョン {0}"),
    none: "設定はまだありません",
    none_hint: "まず、コマンドラインまたはAPIでサーバーに設定を登録してください：",
    fleet_now: "現在のフリート",
    fleet: Phrase("待機中 {0}、稼働中 {1}、オフライン {2}"),
    fleet_empty: "参加しているワーカーはありません。ジョブは待機します。",
};
