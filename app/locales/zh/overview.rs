//! Chinese (simplified): the overview.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::overview::Overview;

pub(super) const OVERVIEW: Overview = Overview {
    title: "概览",
    disk_full: "服务器磁盘即将用尽。正在运行的任务会继续，但在管理员腾出空间之前不接收新任务。",
    workers_online: "在线工作节点",
    workers_of: Phrase("共{0}个"),
    gpus: "GPU",
    gpus_busy: count("", "{0}个使用中"),
    running: "运行中",
    waiting: "排队中",
    failed: "失败",
    ended_well: count("", "{0}个已完成"),
    now_running: "正在运行",
    nothing_running: "没有正在运行的任务",
    nothing_running_hint: "提交一份配置，它会在下一个空闲的工作节点上启动。",
    recent: "最近的任务",
    all_jobs: "全部任务",
    fleet: "集群",
    all_workers: "全部工作节点",
    start_title: "三步开始第一个任务",
    start_intro: "此服务器将训练任务分配给配有GPU的机器。目前还没有机器加入。",
    step_worker: "创建工作节点",
    step_worker_text: "获取令牌以及要在GPU机器上运行的命令。",
    step_connect: "在机器上启动代理程序",
    step_connect_text: "在GPU机器上粘贴该命令。代理程序会自动检测GPU并连接到服务器。",
    step_job: "云端训练",
    step_job_text: "选择一份配置并提交。进度、日志和文件会显示在这里。",
    done: "已完成",
};
