//! Chinese (simplified): search, keys, notifications, preferences.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::habits::{Habits, Preferences};

pub(super) const HABITS: Habits = Habits {
    preferences: "偏好设置",
    search: "搜索",
    search_hint: "页面、工作节点、任务或操作",
    nothing_found: "这里没有叫这个名字的内容。",
    palette_hint: "↑ ↓ 选择，↵ 打开，Ctrl ↵ 在新标签页打开",
    page: "页面",
    action: "操作",
    verb: Phrase("{0} …"),
    choice: Phrase("{0}：{1}"),
    density: "密度",
    comfortable: "宽松",
    compact: "紧凑",
    zone: "时区",
    utc: "UTC",
    local: "本地时间",
    keys: "单键快捷键",
    keys_on: "开启",
    keys_off: "关闭",
    shortcuts: "键盘快捷键",
    go_to: Phrase("前往{0}"),
    k_palette: "搜索任何内容",
    k_help: "显示这些快捷键",
    k_filter: "筛选本页内容",
    k_next: "下一行",
    k_previous: "上一行",
    k_open: "打开该行",
    k_select: "选择该行",
    k_create: "创建或提交",
    k_drain: "排空或恢复此工作节点",
    k_undo: "前往“撤销”",
    k_menu: "可对该行执行的操作",
    k_close: "关闭",
    keys_are_off: "单键快捷键已在偏好设置中关闭。",
    notes: "通知",
    notes_none: "此标签页中还没有发生任何事。",
    undo: "撤销",
    close: "关闭",
};

pub(super) const PREFERENCES: Preferences = Preferences {
    intro: "此浏览器如何显示页面。其他浏览器各有自己的设置。",
    theme_hint: "“跟随系统”会跟随设备的浅色或深色模式。",
    density_hint: "紧凑模式一次显示更多行。",
    zone_hint: "本地时间取自您的浏览器；没有脚本时页面显示 UTC。",
    keys_hint: "例如 g j 前往任务，? 显示列表。使用语音输入或容易误按时请关闭；Ctrl K 仍然可用。",
    save: "保存",
    search_intro: "您可以查看的页面、工作节点、任务和配置，以及可对它们执行的操作。",
};
