//! Spanish: charts.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::charts::Charts;

pub(super) const CHARTS: Charts = Charts {
    metrics: "Métricas",
    over: "Eje horizontal",
    by_step: "Pasos",
    by_time: "Tiempo",
    scale: "Eje vertical",
    linear: "Lineal",
    log: "Log",
    no_points: "Las curvas empiezan con el primer paso que comunique el entrenamiento.",
    no_points_made: "El entrenamiento no comunicó ningún paso.",
    kept_every: Phrase(
        "De los pasos que comunicó el entrenamiento se conserva uno de cada {0}: son más de los que guarda el servidor.",
    ),
    throughput: "Pasos por segundo",
    at_step: Phrase("Paso {0}"),
    summary: Phrase("primero {0}, último {1}, mínimo {2}, máximo {3}"),
    numbers: "Valores",
    step: "Paso",
    time: "Hora",
    gpu: Phrase("GPU {0}"),
    gpus: "Las GPU en el tiempo",
    gpus_of_job: "Las GPU de este trabajo",
    no_readings: "En este periodo no llegó ninguna lectura de sus GPU.",
    range: "Periodo",
    hour: "Última hora",
    day: "Último día",
    fleet: "Uso de las GPU",
    all_gpus: "Todas las GPU",
    with_job: "Con un trabajo",
    busy_of: Phrase("{0} de {1} GPU con un trabajo"),
};
