//! Japanese: search, keys, notifications, preferences.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::habits::{Habits, Preferences};

pub(super) const HABITS: Habits = Habits {
    preferences: "環境設定",
    search: "検索",
    search_hint: "ページ、ワーカー、ジョブ、操作",
    nothing_found: "その名前のものはありません。",
    palette_hint: "↑ ↓ で選択、↵ で開く、Ctrl ↵ で新しいタブ",
    page: "ページ",
    action: "操作",
    verb: Phrase("{0} …"),
    choice: Phrase("{0}: {1}"),
    density: "表示密度",
    comfortable: "標準",
    compact: "コンパクト",
    zone: "タイムゾーン",
    utc: "UTC",
    local: "ローカル時刻",
    keys: "1 キーのショートカット",
    keys_on: "オン",
    keys_off: "オフ",
    shortcuts: "キーボードショートカット",
    go_to: Phrase("{0}へ移動"),
    k_palette: "すべてを検索",
    k_help: "ショートカットを表示",
    k_filter: "ページの内容を絞り込む",
    k_next: "次の行",
    k_previous: "前の行",
    k_open: "行を開く",
    k_select: "行を選択",
    k_create: "作成または送信",
    k_drain: "このワーカーをドレインまたは再開",
    k_undo: "「元に戻す」へ移動",
    k_menu: "行に対する操作",
    k_close: "閉じる",
    keys_are_off: "1 キーのショートカットは環境設定でオフになっています。",
    notes: "通知",
    notes_none: "このタブではまだ何も起きていません。",
    undo: "元に戻す",
    close: "閉じる",
};

pub(super) const PREFERENCES: Preferences = Preferences {
    intro: "このブラウザーでのページの表示方法です。ほかのブラウザーには影響しません。",
    theme_hint: "「システムに合わせる」は端末のライト／ダークに従います。",
    density_hint: "コンパクトにすると一度により多くの行が表示されます。",
    zone_hint: "ローカル時刻はブラウザーの時刻です。スクリプトなしでは UTC で表示します。",
    keys_hint: "g j でジョブ、? で一覧など。音声入力を使う場合や誤ってキーを押しやすい場合はオフにしてください。Ctrl K は使えます。",
    save: "保存",
    search_intro: "閲覧できるページ、ワーカー、ジョブ、設定と、それらに対する操作です。",
};
