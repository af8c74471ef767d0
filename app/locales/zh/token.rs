//! Chinese (simplified): workers’ tokens.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::token::WorkerToken;

pub(super) const TOKEN: WorkerToken = WorkerToken {
    conflict: "两个代理程序使用同一令牌",
    conflict_hint: "另一个代理程序使用此工作节点的令牌接入，已被拒绝。如果不是您启动的，说明令牌已被盗用：请轮换令牌。如果是您启动的，请为每台机器创建各自的工作节点。",
    conflict_hint_on: Phrase(
        "{0}上的另一个代理程序使用此工作节点的令牌接入，已被拒绝。如果不是您启动的，说明令牌已被盗用：请轮换令牌。如果是您启动的，请为每台机器创建各自的工作节点。",
    ),
    conflict_settle: "是我启动的",
    conflict_settled: "警报已解除。",
    access: "令牌",
    token_made: "创建时间",
    token_used: "上次使用",
    token_ends: "到期时间",
    token_never_ends: "永不到期",
    token_ends_unused: Phrase("{0}（若此前没有代理用它注册）"),
    token_ends_at: "令牌到期时间",
    token_has_ended: "令牌已到期",
    old_token_ends: "旧令牌到期时间",
    networks: "允许的网络",
    any_network: "不限",
    days: "有效天数",
    days_hint: "留空则永不到期。到期后代理程序会被拒绝，直到令牌轮换为止。",
    rotate: "轮换令牌",
    rotate_hint: "创建新令牌并显示一次。旧令牌到期后，仍使用它的代理程序会被拒绝。",
    overlap: "旧令牌失效时间",
    overlap_hint: "最迟在此时失效；如果代理程序提前使用新令牌接入，旧令牌会提前失效。",
    overlap_none: "立即",
    overlap_hour: "1小时后",
    overlap_day: "1天后",
    overlap_week: "1周后",
};
