//! Chinese (simplified): GPUs.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::gpus::Gpus;

pub(super) const GPUS: Gpus = Gpus {
    title: "GPU",
    intro: "集群中所有GPU的当前状态。",
    view: "显示方式",
    as_tiles: "平铺",
    as_table: "表格",
    none_yet: "还没有GPU",
    none_yet_hint: "带有GPU的工作节点接入后，GPU会显示在这里。",
    none_match: "没有处于此状态的GPU",
    none_match_hint: "其他状态的GPU已被筛选条件隐藏。",
    show_all: "显示所有GPU",
    gpu: "GPU",
    state: "状态",
    memory: "显存",
    memory_of: Phrase("GPU {0}的显存用量"),
    utilisation: "利用率",
    utilisation_of: Phrase("GPU {0}的利用率"),
    temperature: "温度",
    power: "功耗",
    clocks: "频率",
    read: "读取时间",
    no_reading: "无读数",
    ecc: Phrase("ECC错误：{0}"),
    part_of: Phrase("{0}的一部分"),
    unified: "共享主机内存",
    free: "空闲",
    busy: "任务占用",
    quarantined: "已隔离",
    in_use: "被其他程序占用",
    not_connected: "未连接",
    withheld: count("", "{0}个GPU暂停分配"),
    withheld_hint: "代理程序不让任务使用某些GPU：GPU有故障，或者正被不属于任何任务的进程占用。工作节点页面会说明是哪些GPU以及原因。",
};
