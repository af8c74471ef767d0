//! Brazilian Portuguese: the overview.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::overview::Overview;

pub(super) const OVERVIEW: Overview = Overview {
    title: "Visão geral",
    disk_full: "O disco do servidor está quase cheio. O que está em execução continua, mas nenhum novo trabalho é aceito até que um administrador libere espaço.",
    workers_online: "Workers online",
    workers_of: Phrase("de {0}"),
    gpus: "GPUs",
    gpus_busy: count("{0} em uso", "{0} em uso"),
    running: "Em execução",
    waiting: "Em espera",
    failed: "Com falha",
    ended_well: count("{0} concluído", "{0} concluídos"),
    now_running: "Em execução agora",
    nothing_running: "Nada em execução",
    nothing_running_hint: "Envie uma configuração e ela começa no próximo worker livre.",
    recent: "Trabalhos recentes",
    all_jobs: "Todos os trabalhos",
    fleet: "Frota",
    all_workers: "Todos os workers",
    start_title: "Três passos até o primeiro trabalho",
    start_intro: "Este servidor distribui trabalhos de treinamento para máquinas com GPUs. Nenhuma se conectou ainda.",
    step_worker: "Criar um worker",
    step_worker_text: "Fornece um token e o comando para a máquina com GPUs.",
    step_connect: "Iniciar o agente nela",
    step_connect_text: "Cole o comando na máquina com GPUs. O agente detecta as GPUs e entra em contato.",
    step_job: "Treinar na nuvem",
    step_job_text: "Escolha uma configuração e envie. O progresso, o log e os arquivos aparecem aqui.",
    done: "Feito",
};
