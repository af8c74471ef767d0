//! Chinese (simplified): the words around a job: views, actions, timeline, samples.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::work::{Gallery, Lanes, Work};

pub(super) const WORK: Work = Work {
    views: "任务视图",
    events: "事件",
    clone: "修改后提交",
    again_of: Phrase("{0} 的重新运行"),
    cancel_waiting: "任务尚未启动，将离开队列。已取消的任务不会重新启动。",
    keep_waiting: "继续等待",
    retry: "重新运行",
    retry_text: "用同一修订的配置和相同的要求创建一个新任务。如有检查点，将从最新的检查点继续。",
    retry_confirm: "重新运行此任务",
    priority: "优先级",
    priority_text: "0 到 50，数值越大越优先。等待一小时的权重超过一个点。",
    set: "设置",
    top: "设为最优先",
    raise: Phrase("将优先级提高到{0}"),
    memory_each: Phrase("每个 {0} GB"),
    accelerator: "加速器",
    longest: "最长运行时间",
    exclusive: "独占",
    exclusive_text: "绝不同时运行两个训练程序",
    weights: "权重",
    no_weights: "训练结束时会得到权重。",
    all_files: "全部文件",
    checkpoints: "检查点",
    resumes_here: "下一次尝试从这里继续",
    of_user: "提交者",
    with_label: "标签，例如 team=nlp",
    narrow: "筛选",
    without: Phrase("移除筛选条件 {0}"),
    waiting: "等待中",
    waits_since: "自提交起一直等待",
    asks_for: "要求",
    anything: "任意工作节点",
    loss: Phrase("损失 {0}"),
    left: Phrase("剩余{0}"),
    actions: "操作",
    actions_of: Phrase("{0}的操作"),
};

pub(super) const LANES: Lanes = Lanes {
    title: "时间线",
    label: "任务在何时做了什么；下方表格内容相同",
    waiting: "等待",
    back_off: "等待重试",
    checkpoint: Phrase("第{0}步的检查点"),
};

pub(super) const GALLERY: Gallery = Gallery {
    all: "全部样本",
    hint: "按步数",
    not_made: "此步未生成",
    over_steps: "查看所有步数",
    sample: Phrase("样本 {0} 的所有步数"),
    earlier: "上一步",
    later: "下一步",
    before: "上一个样本",
    after: "下一个样本",
    compare: "对比",
    nothing: "无",
    show: "显示",
    full: "样本大图",
    close: "关闭",
};
