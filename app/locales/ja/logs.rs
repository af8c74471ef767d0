//! Japanese: the page of a log.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::logs::Logs;

pub(super) const LOGS: Logs = Logs {
    title: Phrase("{0}のログ"),
    open: "ログを開く",
    attempts: "試行",
    search: "ログを検索",
    search_hint: "検索",
    regex: "正規表現",
    case: "大文字と小文字を区別",
    previous: "前の一致",
    next: "次の一致",
    matches: count("", "{0}行が一致"),
    rank: Phrase("{0} / {1}"),
    so_far: Phrase("これまでに{0}行 …"),
    none: "一致する行はありません",
    errors: "エラー",
    errors_hint: "何が問題だったかを示す行を検索",
    line: "行へ移動",
    go: "移動",
    first: "最初の行",
    earlier: "前の行",
    later: "後の行",
    last: "最後の行",
    shown: Phrase("全{2}行中{0}～{1}行"),
    newer: count("", "新しい行{0}行"),
    missing: "一部の行を取得できませんでした。再取得を試み続けています。",
    copy_link: "リンクをコピー",
    copy_lines: "行をコピー",
    omitted: Phrase("この行の残り{0}は、ログ全体で確認できます"),
    gap: Phrase("ログのうち{0}が欠けています。ワーカーが送信できず、保存する空きもありませんでした"),
};
