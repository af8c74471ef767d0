//! Spanish: what is to be trained.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::train::Train;

pub(super) const TRAIN: Train = Train {
    title: "Entrenar en la nube",
    intro: "Envíe una configuración. El trabajo conserva los archivos tal como están ahora, cambie lo que cambie después.",
    configuration: "Configuración",
    target: "Destino",
    target_worker: "Solo en un worker remoto. Espera hasta que haya uno libre.",
    target_auto: "En un worker si hay uno adecuado; si no, en las GPU de este servidor.",
    target_local: "Solo en las GPU de este servidor.",
    gpu_count: "GPU",
    gpu_count_hint: "Si se deja vacío, las que pida la configuración.",
    labels: "Etiquetas del worker",
    labels_hint: "Una «clave=valor» por línea; el worker debe tenerlas todas. «*» equivale a cualquier cosa.",
    labels_example: "gpu_type=a100*",
    known_labels: "En la flota",
    advanced: "Reintentos y checkpoints",
    retries: "Reintentos tras perder un worker",
    retries_hint: "Número máximo, si la causa fue el worker o su host. Un fallo del propio entrenamiento es definitivo.",
    checkpoints: "Checkpoints que se envían aquí",
    checkpoints_hint: "A partir de ellos continúa otro worker si se pierde uno.",
    checkpoints_last: "El más reciente",
    checkpoints_all: "Todos",
    checkpoints_none: "Ninguno",
    exclusive: "Nunca dos veces a la vez",
    exclusive_text: "Un worker que pierde el contacto detiene el trabajo, y ningún otro lo empieza antes. Tras perder un worker, esto tarda más.",
    submit: "Enviar trabajo",
    files: count("1 archivo", "{0} archivos"),
    revision: Phrase("revisión {0}"),
    none: "Aún no hay configuraciones",
    none_hint: "Primero suba una al servidor, con la línea de comandos o la API:",
    fleet_now: "Flota ahora",
    fleet: Phrase("libres: {0}, ocupados: {1}, desconectados: {2}"),
    fleet_empty: "No se ha unido ningún worker. El trabajo esperará.",
};
