//! Japanese: pages that only the server renders.

use super::account::{FACTORS, NOTICES, PASSKEYS};
use super::bulk::BULK;
use super::configs::CONFIGS;
use super::count;
use super::desk::{AUDIT, REFUSED, SYSTEM, USAGE};
use super::job_pages::JOB_PAGES;
use super::train::TRAIN;
use super::worker_pages::WORKER_PAGES;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::plain::{Account, Confirm, Create, DeleteWorker, Login, People, Plain, Secrets};

pub(in crate::ui::locales) const PLAIN: Plain = Plain {
    preferences: super::habits::PREFERENCES,
    login: LOGIN,
    account: ACCOUNT,
    factors: FACTORS,
    passkeys: PASSKEYS,
    notices: NOTICES,
    people: PEOPLE,
    secrets: SECRETS,
    confirm: CONFIRM,
    train: TRAIN,
    job: JOB_PAGES,
    worker: WORKER_PAGES,
    configs: CONFIGS,
    create: CREATE,
    delete: DELETE,
    bulk: BULK,
    usage: USAGE,
    audit: AUDIT,
    system: SYSTEM,
    refused: REFUSED,
};

pub(super) const LOGIN: Login = Login {
    title: "サインイン",
    intro: "学習フリートのオーケストレーターにサインインします。",
    name: "ユーザー名",
    password: "パスワード",
    submit: "サインイン",
    with_token: "APIトークンを使う場合",
    with_token_text: "ユーザー名は空欄のままにし、パスワード欄にトークンを貼り付けてください。",
    lost: "パスワードを忘れた場合",
    lost_text: "管理者が新しいパスワードを発行できます。",
    setup_title: "セットアップ",
    setup_intro: "サインインできるユーザーはまだいません。最初の管理者になってください。",
    code: "セットアップコード",
    code_hint: "サーバーが起動時にログへ出力したものです。1回だけ使えます。",
    name_hint: "英小文字、数字、「.」「_」「-」を使用できます。",
    password_hint: "12文字以上。",
    setup_submit: "セットアップしてサインイン",
};

pub(super) const ACCOUNT: Account = Account {
    intro: "ご自分のAPIトークン、パスワード、サインイン中のブラウザ。",
    tokens: "APIトークン",
    api: "APIでできること",
    no_tokens: "まだありません。スクリプトでは、ヘッダー「Authorization: Bearer …」で送信します。",
    everything: "自分に許可されたすべての操作",
    used: "最終使用",
    never_used: "未使用",
    ends: "有効期限",
    never_ends: "無期限",
    revoke: "無効化",
    revoke_text: "以後、このトークンを送っても拒否されます。元に戻せません。",
    revoke_confirm: "このトークンを失効させる",
    new_token: "新しいAPIトークン",
    token_name: "用途",
    token_name_hint: "「ci」のような名前。英小文字、数字、「.」「_」「-」を使用できます。",
    days: "有効日数",
    days_hint: "空欄の場合はサーバーの既定値（変更がなければ90日）です。",
    never_expires: "無期限にする",
    scopes: "許可する操作",
    scopes_hint: "何も選択しないと、自分に許可されたすべての操作が対象になります。",
    make: "トークンを作成",
    made: Phrase("トークン「{0}」"),
    made_text: "今すぐ保管してください。表示されるのは今回だけです。",
    secret: "APIトークン",
    password: "パスワード",
    old_password: "現在のパスワード",
    new_password: "新しいパスワード",
    change: "パスワードを変更",
    sessions: "サインイン中",
    session_lengths: Phrase("セッションは、未使用のまま{0}経過するか、サインインから{1}経過すると終了します。"),
    this_browser: "このブラウザ",
    end: "サインアウト",
    end_text: "そのブラウザーでは、もう一度サインインが必要になります。",
    end_confirm: "このブラウザーをサインアウト",
};

pub(super) const PEOPLE: People = People {
    intro: "このサーバーを使用できるユーザーと、その権限。",
    roles_title: "ロールについて",
    viewer: "すべてのジョブと設定を閲覧できます。変更はできません",
    researcher: "ジョブの送信、自分のジョブの閲覧とキャンセル、設定の編集ができます",
    lead: "さらに、全員のジョブの閲覧とキャンセル、優先度の指定ができます",
    admin: "すべての操作ができます：ワーカー、ユーザー、全員用のシークレット、監査証跡",
    none: "該当する人はいません",
    none_hint: "ほかの人はフィルターで隠れています。",
    added: "追加日時",
    shut_out: "アクセス停止中",
    add: "ユーザーを追加",
    role: "ロール",
    password_optional: "12文字以上。設定しない場合、後で設定するまでこのユーザーはサインインできません。",
    add_submit: "追加",
    person_intro: "このユーザーの権限と、サインインの状況。",
    access: "アクセス",
    shut: "アクセスを停止",
    shut_text: "すべての場所からただちにサインアウトされ、APIトークンは拒否されます。ジョブは続行されます。",
    shut_confirm: "この人のアクセスを停止",
    let_in: "アクセスを再開",
    save: "保存",
    reset: "パスワードを設定",
    reset_text: "すべての場所からサインアウトされ、APIトークンは無効になり、これまでのパスワードは使えなくなります。",
    reset_confirm: "このパスワードを設定",
    no_tokens: "APIトークンはありません。",
    no_sessions: "どこにもサインインしていません。",
};

pub(super) const SECRETS: Secrets = Secrets {
    intro: "モデルハブのトークンなど、ジョブに環境変数として渡される値です。暗号化して保管され、再び表示されることはありません。",
    own: "自分用",
    none: "まだありません。",
    shared: "全員のジョブ用",
    shared_text: "同じ名前のシークレットが自分用にあれば、そちらが優先されます。",
    set: "設定",
    last_given: "ジョブへの最終提供",
    never_given: "ジョブへの提供なし",
    remove: "削除",
    remove_text: "値は完全に失われます。以後に始まる試行には渡されません。",
    remove_confirm: "このシークレットを削除",
    keep_title: "シークレットを保存",
    name: "名前",
    name_hint: "HF_TOKENやWANDB_API_KEYなどの変数名です。既にある場合は置き換えられます。",
    value: "値",
    value_hint: "8文字以上。ログではアスタリスクに置き換えて表示されます。",
    share: "全員のジョブ用",
    share_hint: "誰が送信したかにかかわらず、すべてのジョブに渡されます。",
    keep: "保存",
};

pub(super) const CONFIRM: Confirm = Confirm {
    title: "ご本人確認",
    intro: "この操作には、パスワードの再入力が必要です。まだ何も実行されていません。確認後に、もう一度操作してください。",
    hint: "APIトークンでサインインした場合は、そのトークンを入力します。確認は15分間有効です。",
    submit: "確認",
};

pub(super) const CREATE: Create = Create {
    title: "ワーカーを作成",
    intro: "マシンに名前と専用のトークンを割り当てます。トークンは、マシンで実行するコマンドとともに、次のページに一度だけ表示されます。",
    name: "名前",
    name_hint: "フリート内で一意の、マシンの呼び名です。例：gpu-worker-1",
    kind: "種類",
    kind_hint: "ジョブ終了時の動作。",
    persistent: "そのまま残り、次のジョブを受け付けます。自前のマシン向け。",
    ephemeral: "ジョブを1つ終えると終了します。レンタルしたマシン向け。",
    labels: "ラベル",
    labels_hint: "1欄に1つの「key=value」。ジョブはこれでワーカーを選びます。",
    advanced: "トークンの制限",
    networks: "許可するネットワーク",
    networks_hint: "エージェントの接続を許可するネットワークまたはアドレス（例：10.0.0.0/8）。空欄の場合は制限なし。",
    submit: "ワーカーを作成",
};

pub(super) const DELETE: DeleteWorker = DeleteWorker {
    title: Phrase("「{0}」を削除しますか？"),
    text: "トークンはただちに使えなくなり、ワーカーはフリートから消えます。過去のジョブとそのログ、ファイルは残ります。",
    busy: count("", "現在、ジョブ{0}件を抱えています。これらはキューに戻ります。"),
    confirm: "このワーカーを削除",
    keep: "削除しない",
};
