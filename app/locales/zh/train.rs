//! Chinese (simplified): what is to be trained.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::train::Train;

pub(super) const TRAIN: Train = Train {
    title: "云端训练",
    intro: "提交一份配置。任务会保留文件当前的内容，不受之后更改的影响。",
    configuration: "配置",
    target: "运行位置",
    target_worker: "仅在远程工作节点上运行。等待直到有节点空闲。",
    target_auto: "有合适的工作节点则在其上运行，否则使用此服务器自己的GPU。",
    target_local: "仅使用此服务器自己的GPU。",
    gpu_count: "GPU数量",
    gpu_count_hint: "留空则按配置的要求。",
    labels: "工作节点标签",
    labels_hint: "每行一个“key=value”；工作节点必须具备全部标签。“*”代表任意内容。",
    labels_example: "gpu_type=a100*",
    known_labels: "集群中已有",
    advanced: "重试与检查点",
    retries: "工作节点失联后重新启动",
    retries_hint: "仅限工作节点或其主机出现问题时，最多重新启动这么多次。训练程序自身失败则不再重试。",
    checkpoints: "要发送到服务器的检查点",
    checkpoints_hint: "工作节点失联后，其他工作节点可从这些检查点继续。",
    checkpoints_last: "最新的",
    checkpoints_all: "全部",
    checkpoints_none: "无",
    exclusive: "绝不同时运行两份",
    exclusive_text: "失去联系的工作节点会停止任务，在此之前其他工作节点不会开始。因此工作节点失联后需要等待更长时间。",
    submit: "提交任务",
    files: count("", "{0}个文件"),
    revision: Phrase("修订 {0}"),
    none: "还没有配置",
    none_hint: "请先通过命令行或API将配置上传到服务器：",
    fleet_now: "当前集群",
    fleet: Phrase("{0}个空闲，{1}个忙碌，{2}个离线"),
    fleet_empty: "还没有工作节点加入。任务将会等待。",
};
