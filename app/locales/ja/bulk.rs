//! Japanese: what is done to several at once.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::bulk::{Bulk, Picking};

pub(super) const PICKING: Picking = Picking {
    one: Phrase("{0} を選択"),
    all: "このページのすべてを選択",
    picked: count("", "{0}件選択中"),
    none: "選択を解除",
    delete: "オフラインのものを削除",
    cancel: "ジョブをキャンセル",
};

pub(super) const BULK: Bulk = Bulk {
    drain: count("", "ワーカー{0}台をドレイン"),
    resume: count("", "ワーカー{0}台を再開"),
    delete: count("", "ワーカー{0}台を削除"),
    cancel: count("", "ジョブ{0}件をキャンセル"),
    retry: count("", "ジョブ{0}件を再実行"),
    drain_text: "ドレインしたワーカーは実行中のものを完了し、再開するまで新しいジョブを受け付けません。",
    delete_text: "削除したワーカーのトークンはすぐに無効になります。過去のジョブとそのログやファイルは残ります。",
    cancel_text: "キャンセルしたジョブが再び開始されることはありません。",
    retry_text: "それぞれについて、同じ条件と同じリビジョンの設定で新しいジョブを作成します。完了したものは最初から、その他は最新のチェックポイントから始まります。",
    happens: "実行される内容",
    nothing: "行うことはありません",
    nothing_text: "変更されるものはありません。戻って選び直してください。",
    missing: count("", "うち{0}件はすでに存在しません。"),
    keep: "一覧に戻る",
    between: "、",
    takes_nothing: "新しいジョブを受け付けません。",
    finishes: Phrase("{0} を完了し、新しいジョブを受け付けません。"),
    leaves: "新しいジョブを受け付けずに離脱します。",
    finishes_and_leaves: Phrase("{0} を完了してから離脱します。"),
    takes_nothing_later: "オフラインです。復帰しても新しいジョブを受け付けません。",
    drains_already: "すでにドレイン中のため、そのままです。",
    takes_again: "再びジョブを受け付けます。",
    drains_not: "ドレイン中ではないため、そのままです。",
    deleted: "削除されます。",
    deleted_with: count("", "削除されます。保持しているジョブ{0}件はキューに戻ります。"),
    not_offline: "オフラインではないため、残ります。",
    leaves_queue: "キューから外れます。",
    stops: "トレーナーを停止します。最後のチェックポイントを書き出すことがあります。",
    stops_already: "すでにキャンセル中です。",
    ended: "終了しているため、そのままです。",
    of_somebody_else: Phrase("{0} のジョブのため、そのままです。"),
    submitted_again: "新しいジョブとして再投入されます。",
    not_ended: "終了していないため、そのままです。",
    drained: count("", "ワーカー{0}台が新規ジョブの受付を停止しました。"),
    resumed: count("", "ワーカー{0}台がジョブの受付を再開しました。"),
    gone: count("", "ワーカー{0}台を削除しました。"),
    cancelled: count("", "ジョブ{0}件をキャンセルしています。"),
    retried: count("", "ジョブ{0}件を再投入しました。"),
    nothing_done: "変更されたものはありません。",
    unchanged: count("", "{0}件はすでにその状態でした。"),
    both: Phrase("{0}{1}"),
    refused: Phrase("{0} を除く：{1}"),
};
