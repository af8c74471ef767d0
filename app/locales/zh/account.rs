//! Chinese: second factors and notices.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::account::{Factors, Notices};

pub(super) const FACTORS: Factors = Factors {
    title: "双重验证",
    none: "尚未设置。启用双重验证后，仅凭被盗的密码无法登录。",
    required: "此服务器要求启用：您将在下次登录时设置。",
    set_up: "设置身份验证器应用",
    since: Phrase("身份验证器应用，设置于{0}"),
    codes_left: count("剩余{0}个恢复码", "剩余{0}个恢复码"),
    renew: "重新生成恢复码",
    renew_text: "原有恢复码将失效。",
    renew_confirm: "生成新恢复码",
    remove: "移除",
    remove_text: "此后只需密码即可登录。",
    remove_confirm: "移除双重验证",
    enrol_title: "设置身份验证器应用",
    enrol_intro: "使用身份验证器应用扫描二维码，或在应用中输入密钥，然后输入应用显示的验证码。",
    qr: "身份验证器应用的二维码",
    key: "密钥",
    code: "验证码",
    code_hint: "应用中的六位数字。",
    turn_on: "启用",
    codes_title: "恢复码",
    codes_text: "每个恢复码可代替应用使用一次。请妥善保存：它们只显示这一次。",
    login_title: "输入验证码",
    login_intro: Phrase("正在以{0}的身份登录。"),
    login_hint: "身份验证器应用中的六位数字，或一个恢复码。",
    start_over: "重新开始",
    lost: "应用和恢复码都丢失了？",
    lost_text: "管理员可以移除您的双重验证。",
    person_none: "尚未设置。",
    person_remove_text: "此后该用户只需密码即可登录；如果此服务器要求，则需重新设置。",
};

pub(super) const NOTICES: Notices = Notices {
    title: "帐户动态",
    intro: "如果不是您本人，请结束该会话并更改密码。",
    new_browser: "使用新浏览器登录",
    new_network: "从新网络登录",
    wrong_code: "有人输入了正确的密码和错误的验证码",
    password_changed: "密码已更改",
    password_reset: "管理员设置了新密码",
    factor_added: "已设置双重验证",
    factor_removed: "已移除双重验证",
    recovery_codes_renewed: "已重新生成恢复码",
    recovery_code_used: "已使用一个恢复码",
    by: Phrase("操作者：{0}"),
    end: "不是我：结束会话",
    end_text: "该浏览器会立即退出登录。然后请更改密码。",
    end_confirm: "结束此会话",
    change: "更改密码",
    read: "标记为已读",
};
