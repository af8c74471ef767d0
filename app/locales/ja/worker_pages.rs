//! Japanese: the plain pages of a worker.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::worker_pages::WorkerPages;

pub(super) const WORKER_PAGES: WorkerPages = WorkerPages {
    newest_first: "新しい順",
    attempts: "試行",
    of_late: count("", "過去{0}日間"),
    success: "成功率",
    ended_so: Phrase("完了{0}、失敗{1}、途絶{2}"),
    fast_failures: "連続する早期失敗",
    fast_failures_hint: "過去24時間に、開始から1分以内に失敗した回数",
    no_attempts: "試行はまだありません",
    no_attempts_hint: "このワーカーに依頼した試行と、その結果がここに表示されます。",
    no_events: "記録がありません",
    no_events_hint: "監査証跡に、このワーカーに関する記録は残っていません。",
    said_goodbye: "エージェントが終了を通知しました。",
    fell_silent: "長時間、通信がありませんでした。",
    server_gone: "接続先のサーバーがなくなりました。",
    until: Phrase("{0} まで"),
    withheld: Phrase("除外：{0}"),
    given_back: Phrase("復帰：{0}"),
    fit_again: "再びジョブを引き受けます。",
    from_host: Phrase("ホスト {0} から"),
    edit_title: Phrase("「{0}」を編集"),
    reported: "エージェントが報告するラベル",
    reported_hint: "エージェント自身の設定によるもので、そちらで変更します。",
    none_reported: "報告されたラベルはありません。",
    overridden: Phrase("無効：こちらのラベルは {0} です"),
    not_counted: "無効",
    ignore: "エージェントの報告を無視",
    ignore_hint: "ジョブは、こちらで付けたラベルだけでこのワーカーを選びます。運用者にジョブを選ばせたくないホスト向け。",
    older: "古いエージェントを拒否する",
    older_hint: "古いプロトコルのエージェントはすべてにワーカーのトークンを使い、ジョブのオファーと共に HF_TOKEN を受け取ります。",
    older_agents: "古いエージェント",
    older_refused: "拒否",
    ignored_everywhere: "このサーバーは、すべてのワーカーでエージェントの報告を無視します。",
    overtaken: "その間に別の人がこのワーカーを変更しました。入力内容は下に残っており、現在保存されている内容も表示しています。もう一度保存すると、入力内容で置き換えられます。",
    stored: "現在の保存内容",
};
