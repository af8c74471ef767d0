//! Japanese: the overview.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::overview::Overview;

pub(super) const OVERVIEW: Overview = Overview {
    title: "概要",
    disk_full: "サーバーのディスクがほぼいっぱいです。実行中のものは続行しますが、管理者が空きを確保するまで、新しいジョブは受け付けません。",
    workers_online: "オンラインのワーカー",
    workers_of: Phrase("全{0}台"),
    gpus: "GPU",
    gpus_busy: count("", "{0}個を使用中"),
    running: "実行中",
    waiting: "キュー待ち",
    failed: "失敗",
    ended_well: count("", "完了{0}件"),
    now_running: "現在実行中",
    nothing_running: "実行中のジョブはありません",
    nothing_running_hint: "設定を送信すると、次に空いたワーカーで開始します。",
    recent: "最近のジョブ",
    all_jobs: "すべてのジョブ",
    fleet: "フリート",
    all_workers: "すべてのワーカー",
    start_title: "最初のジョブまでの3ステップ",
    start_intro: "このサーバーは、GPUを搭載したマシンに学習ジョブを割り当てます。参加しているマシンはまだありません。",
    step_worker: "ワーカーを作成",
    step_worker_text: "トークンと、GPUマシンで実行するコマンドが得られます。",
    step_connect: "GPUマシンでエージェントを起動",
    step_connect_text: "マシンでコマンドを貼り付けます。エージェントがGPUを検出し、サーバーに接続します。",
    step_job: "クラウドで学習",
    step_job_text: "設定を選んで送信します。進捗、ログ、ファイルがここに表示されます。",
    done: "完了",
};
