//! Japanese: workers’ tokens.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::token::WorkerToken;

pub(super) const TOKEN: WorkerToken = WorkerToken {
    conflict: "1つのトークンに2つのエージェント",
    conflict_hint: "別のエージェントがこのワーカーのトークンで接続を試み、拒否されました。心当たりがない場合、トークンは盗まれています。ローテーションしてください。ご自分で起動した場合は、マシンごとに別のワーカーを作成してください。",
    conflict_hint_on: Phrase(
        "{0}上の別のエージェントがこのワーカーのトークンで接続を試み、拒否されました。心当たりがない場合、トークンは盗まれています。ローテーションしてください。ご自分で起動した場合は、マシンごとに別のワーカーを作成してください。",
    ),
    conflict_settle: "自分が起動しました",
    conflict_settled: "警告を解除しました。",
    access: "トークン",
    token_made: "発行日時",
    token_used: "最終使用",
    token_ends: "有効期限",
    token_never_ends: "なし",
    token_ends_unused: Phrase("{0}（それまでにエージェントが登録しない場合）"),
    token_ends_at: "トークンの有効期限",
    token_has_ended: "トークン期限切れ",
    old_token_ends: "旧トークンの有効期限",
    networks: "許可するネットワーク",
    any_network: "制限なし",
    days: "有効日数",
    days_hint: "空欄の場合は無期限です。期限を過ぎると、トークンをローテーションするまでエージェントは拒否されます。",
    rotate: "トークンをローテーション",
    rotate_hint: "新しいトークンを作成し、一度だけ表示します。旧トークンを使うエージェントは、その期限が切れると拒否されます。",
    overlap: "旧トークンの失効",
    overlap_hint: "遅くともこの時点で失効します。エージェントが新しいトークンで接続すると、その時点で失効します。",
    overlap_none: "ただちに",
    overlap_hour: "1時間後",
    overlap_day: "1日後",
    overlap_week: "1週間後",
};
