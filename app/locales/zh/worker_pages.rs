//! Chinese (simplified): the plain pages of a worker.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::worker_pages::WorkerPages;

pub(super) const WORKER_PAGES: WorkerPages = WorkerPages {
    newest_first: "从新到旧",
    attempts: "尝试",
    of_late: count("", "最近{0}天"),
    success: "成功率",
    ended_so: Phrase("{0}次完成，{1}次失败，{2}次失联"),
    fast_failures: "连续快速失败",
    fast_failures_hint: "最近24小时内，启动后一分钟内失败的次数",
    no_attempts: "还没有尝试",
    no_attempts_hint: "分派给此工作节点的尝试及其结果会列在这里。",
    no_events: "没有记录",
    no_events_hint: "审计记录中已没有关于此工作节点的条目。",
    said_goodbye: "它已主动断开。",
    fell_silent: "太久没有收到它的消息。",
    server_gone: "它所连接的服务器已不存在。",
    until: Phrase("直到 {0}"),
    withheld: Phrase("已停用：{0}"),
    given_back: Phrase("已恢复：{0}"),
    fit_again: "它又开始接收任务。",
    from_host: Phrase("来自主机 {0}"),
};
