//! Japanese: the plain pages of a job.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::job_pages::JobPages;

pub(super) const JOB_PAGES: JobPages = JobPages {
    events_hint: "古い順",
    no_events_hint: "監査証跡に、このジョブに関する記録は残っていません。",
    details: "詳細",
    submitted: Phrase("送信：{0}、リビジョン {1}"),
    resubmitted: Phrase("{0} の再実行として送信"),
    prioritised: Phrase("優先度を{0}から{1}に変更"),
    offered: Phrase("試行 {0} を {1} に依頼"),
    offer_expired: Phrase("{1} が試行 {0} を引き受けず、ジョブは再び待機"),
    starting: Phrase("{1} が試行 {0} を引き受け、トレーナーを準備"),
    running: Phrase("試行 {0} のトレーナーが {1} で動作中"),
    kept_back: Phrase("{0} まで保留：途絶したトレーナーが動作している可能性"),
    requeued: Phrase("試行 {0} が途絶し、ジョブは再び待機：{1}"),
    cancelling: Phrase("キャンセル：{0} にトレーナーの停止を要求"),
    cancelled: "キャンセル済み",
    completed: Phrase("試行 {0} が {1} で完了"),
    failed: Phrase("失敗：{0}"),
    secrets_given: Phrase("試行 {0} にシークレットを渡しました：{1}"),
    by_worker: Phrase("ワーカー {0}"),
    by_server: "サーバー",
    all_revisions: "すべてのリビジョン",
    stored: "保存日時",
    in_short: "概要",
    cancel_title: Phrase("{0} をキャンセルしますか？"),
};
