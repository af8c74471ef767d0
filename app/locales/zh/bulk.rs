//! Chinese (simplified): what is done to several at once.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::bulk::{Bulk, Picking};

pub(super) const PICKING: Picking = Picking {
    one: Phrase("选择 {0}"),
    all: "选择本页全部",
    picked: count("", "已选择{0}项"),
    none: "清除选择",
    delete: "删除离线节点",
    cancel: "取消任务",
};

pub(super) const BULK: Bulk = Bulk {
    drain: count("", "排空{0}个工作节点"),
    resume: count("", "恢复{0}个工作节点"),
    delete: count("", "删除{0}个工作节点"),
    cancel: count("", "取消{0}个任务"),
    retry: count("", "重新运行{0}个任务"),
    drain_text: "排空的工作节点会完成正在运行的任务，并且在恢复之前不接收新任务。",
    delete_text: "被删除的工作节点的令牌会立即失效。其过往任务以及日志和文件会保留。",
    cancel_text: "已取消的任务不会重新启动。",
    retry_text: "每个任务都会用相同的要求和同一修订的配置创建一个新任务：已完成的从头开始，其余的从最新的检查点继续。",
    happens: "将会发生什么",
    nothing: "无需操作",
    nothing_text: "不会有任何变化。请返回并选择其他项。",
    missing: count("", "其中{0}个已不存在。"),
    keep: "返回列表",
    between: "、",
    takes_nothing: "不再接收新任务。",
    finishes: Phrase("完成 {0}，不再接收新任务。"),
    leaves: "不再接收新任务，然后离开。",
    finishes_and_leaves: Phrase("完成 {0}，然后离开。"),
    takes_nothing_later: "当前离线；重新连接后不接收新任务。",
    drains_already: "已在排空：保持不变。",
    takes_again: "重新接收任务。",
    drains_not: "未在排空：保持不变。",
    deleted: "将被删除。",
    deleted_with: count("", "将被删除；其持有的{0}个任务会回到队列。"),
    not_offline: "未离线：保留。",
    leaves_queue: "离开队列。",
    stops: "其训练程序将停止，并可能写入最后一个检查点。",
    stops_already: "已在取消中。",
    ended: "已结束：保持不变。",
    of_somebody_else: Phrase("属于 {0}：保持不变。"),
    submitted_again: "将作为新任务重新提交。",
    not_ended: "尚未结束：保持不变。",
    drained: count("", "{0}个工作节点不再接收新任务。"),
    resumed: count("", "{0}个工作节点已重新接收任务。"),
    gone: count("", "已删除{0}个工作节点。"),
    cancelled: count("", "正在取消{0}个任务。"),
    retried: count("", "已重新提交{0}个任务。"),
    nothing_done: "没有任何更改。",
    unchanged: count("", "{0}个原本就是如此。"),
    both: Phrase("{0}{1}"),
    refused: Phrase("{0} 除外：{1}"),
};
