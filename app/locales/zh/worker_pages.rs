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
    edit_title: Phrase("编辑“{0}”"),
    reported: "代理程序上报的标签",
    reported_hint: "它们来自代理程序自身的设置，需在那里更改。",
    none_reported: "没有上报标签。",
    overridden: Phrase("不生效：您的标签为 {0}"),
    not_counted: "不生效",
    ignore: "忽略代理程序上报的标签",
    ignore_hint: "此后任务只按您设置的标签选择它。适用于不应由其运营者挑选任务的主机。",
    older: "拒绝旧版代理",
    older_hint: "使用旧协议的代理在所有请求中使用工作节点的令牌，并随任务派发获得 HF_TOKEN。",
    older_agents: "旧版代理",
    older_refused: "拒绝",
    ignored_everywhere: "此服务器忽略所有工作节点上代理程序上报的标签。",
    overtaken: "期间有其他人更改了此工作节点。您输入的内容仍保留在下方，旁边是当前保存的内容。再次保存将用您的内容替换它。",
    stored: "当前保存的内容",
};
