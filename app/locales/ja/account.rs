//! Japanese: second factors and notices.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::account::{Factors, Notices};

pub(super) const FACTORS: Factors = Factors {
    title: "2段階認証",
    none: "設定されていません。2段階認証を設定すると、パスワードが盗まれてもそれだけではサインインできません。",
    required: "このサーバーでは必須です。次回のサインイン時に設定します。",
    set_up: "認証アプリを設定",
    since: Phrase("認証アプリ（設定日時: {0}）"),
    codes_left: count("残りのリカバリーコード: {0}件", "残りのリカバリーコード: {0}件"),
    renew: "リカバリーコードを再発行",
    renew_text: "これまでのコードは使えなくなります。",
    renew_confirm: "新しいコードを作成",
    remove: "削除",
    remove_text: "以後はパスワードだけでサインインします。",
    remove_confirm: "2段階認証を削除",
    enrol_title: "認証アプリを設定",
    enrol_intro: "認証アプリでQRコードを読み取るか、キーを入力してください。その後、アプリに表示されるコードを入力します。",
    qr: "認証アプリ用のQRコード",
    key: "キー",
    code: "コード",
    code_hint: "アプリに表示される6桁の数字。",
    turn_on: "有効にする",
    codes_title: "リカバリーコード",
    codes_text: "アプリの代わりに、それぞれ1回だけ使えます。安全な場所に保管してください。表示されるのは今回だけです。",
    login_title: "コードを入力",
    login_intro: Phrase("{0}としてサインインしています。"),
    login_hint: "認証アプリの6桁の数字、またはリカバリーコード。",
    start_over: "最初からやり直す",
    lost: "アプリとコードの両方を失くした場合",
    lost_text: "管理者が2段階認証を削除できます。",
    person_none: "設定されていません。",
    person_remove_text: "以後はパスワードだけでサインインします。このサーバーで必須の場合は、新しく設定します。",
};

pub(super) const NOTICES: Notices = Notices {
    title: "アカウントのアクティビティ",
    intro: "心当たりがない場合は、セッションを終了してパスワードを変更してください。",
    new_browser: "新しいブラウザーからのサインイン",
    new_network: "新しいネットワークからのサインイン",
    wrong_code: "パスワードは正しく、コードが誤って入力されました",
    password_changed: "パスワードが変更されました",
    password_reset: "管理者が新しいパスワードを設定しました",
    factor_added: "2段階認証が設定されました",
    factor_removed: "2段階認証が削除されました",
    recovery_codes_renewed: "リカバリーコードが再発行されました",
    recovery_code_used: "リカバリーコードが使用されました",
    by: Phrase("実行者: {0}"),
    end: "心当たりがない: セッションを終了",
    end_text: "そのブラウザーはただちにサインアウトされます。その後、パスワードを変更してください。",
    end_confirm: "このセッションを終了",
    change: "パスワードを変更",
    read: "既読にする",
};
