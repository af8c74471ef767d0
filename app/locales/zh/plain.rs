//! Chinese (simplified): pages that only the server renders.

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
    title: "登录",
    intro: "登录训练集群的编排器。",
    name: "用户名",
    password: "密码",
    submit: "登录",
    with_token: "使用API令牌",
    with_token_text: "将用户名留空，并将令牌粘贴到密码栏。",
    lost: "忘记密码？",
    lost_text: "管理员可以为您设置新密码。",
    setup_title: "初始设置",
    setup_intro: "目前还没有人可以登录。请将自己设为第一位管理员。",
    code: "初始设置码",
    code_hint: "服务器启动时已将其输出到日志，仅可使用一次。",
    name_hint: "可使用小写字母、数字、“.”、“_”和“-”。",
    password_hint: "至少12个字符。",
    setup_submit: "完成设置并登录",
};

pub(super) const ACCOUNT: Account = Account {
    intro: "您的API令牌、密码，以及您已登录的浏览器。",
    tokens: "API令牌",
    api: "API功能说明",
    no_tokens: "还没有令牌。脚本通过请求头“Authorization: Bearer …”发送令牌。",
    everything: "您有权执行的全部操作",
    used: "上次使用",
    never_used: "从未使用",
    ends: "到期时间",
    never_ends: "永不到期",
    revoke: "撤销",
    revoke_text: "此后使用它的请求都会被拒绝，且无法恢复。",
    revoke_confirm: "撤销此令牌",
    new_token: "新建API令牌",
    token_name: "用途",
    token_name_hint: "例如“ci”这样的名称。可使用小写字母、数字、“.”、“_”和“-”。",
    days: "有效天数",
    days_hint: "留空则使用服务器的默认值（未更改时为90天）。",
    never_expires: "永不到期",
    scopes: "允许的操作",
    scopes_hint: "不选择任何一项，则允许您有权执行的全部操作。",
    make: "创建令牌",
    made: Phrase("您的令牌“{0}”"),
    made_text: "请立即保存：它只显示这一次。",
    secret: "API令牌",
    password: "密码",
    old_password: "当前密码",
    new_password: "新密码",
    change: "更改密码",
    sessions: "已登录",
    session_lengths: Phrase("会话在{0}未使用后结束，并在登录{1}后结束。"),
    this_browser: "当前浏览器",
    end: "退出登录",
    end_text: "使用该浏览器的人需要重新登录。",
    end_confirm: "退出此浏览器",
};

pub(super) const PEOPLE: People = People {
    intro: "谁可以使用此服务器，以及可以做什么。",
    roles_title: "角色说明",
    viewer: "可查看所有任务和配置，不能更改任何内容",
    researcher: "可提交任务，查看和取消自己的任务，以及编辑配置",
    lead: "还可查看和取消所有人的任务，并指定哪些任务紧急",
    admin: "可执行全部操作：工作节点、用户、供所有人使用的机密、审计记录",
    none: "没有匹配的人员",
    none_hint: "其他人员已被筛选条件隐藏。",
    added: "添加时间",
    shut_out: "已禁止访问",
    add: "添加用户",
    role: "角色",
    password_optional: "至少12个字符。如不设置，则在您为其设置密码之前，该用户无法登录。",
    add_submit: "添加",
    person_intro: "该用户的权限及其登录情况。",
    access: "访问权限",
    shut: "停用访问",
    shut_text: "此人会立即在各处退出登录，其API令牌会被拒绝。其任务继续运行。",
    shut_confirm: "停用此人的访问",
    let_in: "恢复访问",
    save: "保存",
    reset: "设置密码",
    reset_text: "此人会在各处退出登录，其API令牌会被撤销，原密码失效。",
    reset_confirm: "设置此密码",
    no_tokens: "没有API令牌。",
    no_sessions: "未在任何位置登录。",
};

pub(super) const SECRETS: Secrets = Secrets {
    intro: "任务可从环境变量中获取的值，例如模型平台的令牌。这些值会加密保存，且不再显示。",
    own: "您的机密",
    none: "还没有机密。",
    shared: "供所有人的任务使用",
    shared_text: "如果您有同名的机密，则优先使用您的。",
    set: "设置于",
    last_given: "上次提供给任务是在",
    never_given: "从未提供给任务",
    remove: "移除",
    remove_text: "其值将永久丢失。此后开始的尝试都不会得到它。",
    remove_confirm: "移除此密钥",
    keep_title: "保存机密",
    name: "名称",
    name_hint: "变量名，例如HF_TOKEN或WANDB_API_KEY。已有的同名机密会被替换。",
    value: "值",
    value_hint: "至少8个字符。日志中会以星号代替。",
    share: "供所有人的任务使用",
    share_hint: "无论由谁提交，每个任务都会获得它。",
    keep: "保存",
};

pub(super) const CONFIRM: Confirm = Confirm {
    title: "请确认是您本人",
    intro: "此操作需要再次输入您的密码。目前尚未执行任何操作，请在确认后重新操作。",
    hint: "如果您使用API令牌登录，请输入该令牌。确认在15分钟内有效。",
    submit: "确认",
};

pub(super) const CREATE: Create = Create {
    title: "创建工作节点",
    intro: "为机器指定名称和专用令牌。下一页会显示一次令牌，以及要在机器上运行的命令。",
    name: "名称",
    name_hint: "您对机器的称呼，在集群中唯一，例如gpu-worker-1。",
    kind: "类型",
    kind_hint: "任务结束后如何处理。",
    persistent: "保留并接收下一个任务。适用于自有机器。",
    ephemeral: "完成一个任务后结束。适用于租用的机器。",
    labels: "标签",
    labels_hint: "每栏一个“key=value”。任务据此选择工作节点。",
    advanced: "令牌限制",
    networks: "允许的网络",
    networks_hint: "允许代理程序接入的网络或地址，例如10.0.0.0/8。留空则不限。",
    submit: "创建工作节点",
};

pub(super) const DELETE: DeleteWorker = DeleteWorker {
    title: Phrase("删除“{0}”？"),
    text: "其令牌将立即失效，工作节点将从集群中消失。以往的任务及其日志和文件会保留。",
    busy: count("", "它目前持有{0}个任务，这些任务将返回队列。"),
    confirm: "删除此工作节点",
    keep: "保留",
};
