//! Chinese (simplified): the plain pages of a job.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::job_pages::JobPages;

pub(super) const JOB_PAGES: JobPages = JobPages {
    events_hint: "从旧到新",
    no_events_hint: "审计记录中已没有关于此任务的条目。",
    details: "详情",
    submitted: Phrase("已提交：{0}，修订 {1}"),
    resubmitted: Phrase("在 {0} 之后重新提交"),
    prioritised: Phrase("优先级由{0}改为{1}"),
    offered: Phrase("第{0}次尝试已分派给 {1}"),
    offer_expired: Phrase("{1} 未接收第{0}次尝试，任务重新等待"),
    starting: Phrase("{1} 接收了第{0}次尝试，正在准备训练程序"),
    running: Phrase("第{0}次尝试的训练程序在 {1} 上运行"),
    kept_back: Phrase("保留到 {0}：失联的训练程序可能仍在运行"),
    requeued: Phrase("第{0}次尝试失联，任务重新等待：{1}"),
    cancelling: Phrase("已取消；已要求 {0} 停止训练程序"),
    cancelled: "已取消",
    completed: Phrase("第{0}次尝试在 {1} 上完成"),
    failed: Phrase("失败：{0}"),
    secrets_given: Phrase("已向第{0}次尝试提供密钥：{1}"),
    by_worker: Phrase("工作节点 {0}"),
    by_server: "服务器",
    all_revisions: "全部修订",
    stored: "保存时间",
    in_short: "概要",
    cancel_title: Phrase("要取消 {0} 吗？"),
};
