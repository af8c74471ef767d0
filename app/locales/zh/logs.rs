//! Chinese (simplified): the page of a log.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::logs::Logs;

pub(super) const LOGS: Logs = Logs {
    title: Phrase("{0}的日志"),
    open: "打开日志",
    attempts: "尝试",
    search: "搜索日志",
    search_hint: "搜索",
    regex: "正则表达式",
    case: "区分大小写",
    previous: "上一处匹配",
    next: "下一处匹配",
    matches: count("", "{0}行匹配"),
    rank: Phrase("第{0}处，共{1}处"),
    so_far: Phrase("目前{0}处……"),
    none: "没有匹配的行",
    errors: "错误",
    errors_hint: "查找说明出错原因的行",
    line: "转到行",
    go: "转到",
    first: "开头",
    earlier: "更早",
    later: "更晚",
    last: "末尾",
    shown: Phrase("第{0}–{1}行，共{2}行"),
    newer: count("", "{0}行新内容"),
    missing: "部分行无法获取。页面会继续尝试。",
    copy_link: "复制链接",
    copy_lines: "复制行",
    omitted: Phrase("该行其余{0}请查看完整日志"),
    gap: Phrase("日志缺失{0}：工作节点无法发送，也没有空间保存"),
};
