//! Japanese: the words around a job: views, actions, timeline, samples.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::work::{Gallery, Lanes, Work};

pub(super) const WORK: Work = Work {
    views: "ジョブの表示",
    events: "イベント",
    clone: "変更して送信",
    again_of: Phrase("{0} の再実行"),
    cancel_waiting: "まだ開始していません。キューから外れます。キャンセルしたジョブが再び開始されることはありません。",
    keep_waiting: "待機を続ける",
    retry: "再実行",
    retry_text: "同じリビジョンの設定と同じ条件で、新しいジョブを作成します。チェックポイントがあれば、最新のものから再開します。",
    retry_confirm: "このジョブを再実行",
    priority: "優先度",
    priority_text: "0～50。値が大きいほど先に開始します。1時間の待機は1ポイントより重く扱われます。",
    set: "設定",
    top: "最優先にする",
    raise: Phrase("優先度を{0}に上げる"),
    memory_each: Phrase("各{0} GB"),
    accelerator: "アクセラレーター",
    longest: "最長実行時間",
    exclusive: "排他",
    exclusive_text: "トレーナーを同時に2つ動かさない",
    weights: "重み",
    no_weights: "重みは、トレーニングの終了時に届きます。",
    all_files: "すべてのファイル",
    checkpoints: "チェックポイント",
    resumes_here: "次の試行はここから再開",
    of_user: "送信者",
    with_label: "ラベル（例：team=nlp）",
    narrow: "絞り込む",
    without: Phrase("フィルター {0} を解除"),
    waiting: "待機中",
    waits_since: "送信時から待機中",
    asks_for: "要求",
    anything: "どのワーカーでも可",
    loss: Phrase("損失 {0}"),
    left: Phrase("残り{0}"),
    actions: "操作",
    actions_of: Phrase("{0}の操作"),
};

pub(super) const LANES: Lanes = Lanes {
    title: "タイムライン",
    label: "ジョブがいつ何をしたか。同じ内容を下の表に示します",
    waiting: "待機",
    back_off: "再試行待ち",
    checkpoint: Phrase("ステップ {0} のチェックポイント"),
};

pub(super) const GALLERY: Gallery = Gallery {
    all: "すべてのサンプル",
    hint: "ステップ別",
    not_made: "このステップでは未生成",
    over_steps: "全ステップで見る",
    sample: Phrase("サンプル {0}（全ステップ）"),
    earlier: "前のステップ",
    later: "次のステップ",
    before: "前のサンプル",
    after: "次のサンプル",
    compare: "比較対象",
    nothing: "なし",
    show: "表示",
    full: "サンプルの拡大表示",
    close: "閉じる",
};
