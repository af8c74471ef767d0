//! Brazilian Portuguese: charts.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::charts::Charts;

pub(super) const CHARTS: Charts = Charts {
    metrics: "Métricas",
    over: "Eixo horizontal",
    by_step: "Passos",
    by_time: "Tempo",
    scale: "Eixo vertical",
    linear: "Linear",
    log: "Log",
    no_points: "As curvas começam com o primeiro passo que o treinamento informar.",
    no_points_made: "O treinamento não informou nenhum passo.",
    kept_every: Phrase(
        "Dos passos que o treinamento informou, um em cada {0} é mantido: são mais do que o servidor guarda.",
    ),
    throughput: "Passos por segundo",
    at_step: Phrase("Passo {0}"),
    summary: Phrase("primeiro {0}, último {1}, mínimo {2}, máximo {3}"),
    numbers: "Números",
    step: "Passo",
    time: "Hora",
    gpu: Phrase("GPU {0}"),
    gpus: "GPUs ao longo do tempo",
    gpus_of_job: "GPUs deste trabalho",
    no_readings: "Nenhuma leitura das GPUs chegou neste período.",
    range: "Período",
    hour: "Última hora",
    day: "Último dia",
    fleet: "Uso das GPUs",
    all_gpus: "Todas as GPUs",
    with_job: "Com um trabalho",
    busy_of: Phrase("{0} de {1} GPUs com um trabalho"),
};
