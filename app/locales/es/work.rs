//! Spanish: the words around a job: views, actions, timeline, samples.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::work::{Gallery, Lanes, Work};

pub(super) const WORK: Work = Work {
    views: "Vistas del trabajo",
    events: "Eventos",
    clone: "Modificar y enviar",
    again_of: Phrase("repetición de {0}"),
    cancel_waiting: "Aún no ha empezado. Sale de la cola, y un trabajo cancelado no vuelve a empezar.",
    keep_waiting: "Dejarlo en la cola",
    retry: "Volver a ejecutar",
    retry_text: "Un trabajo nuevo con la misma revisión de la configuración y los mismos requisitos. Continúa desde el último checkpoint, si lo hay.",
    retry_confirm: "Volver a ejecutar este trabajo",
    priority: "Prioridad",
    priority_text: "De 0 a 50; el más urgente va primero. Una hora de espera pesa más que un punto.",
    set: "Aplicar",
    top: "Máxima urgencia",
    raise: Phrase("Subir la prioridad a {0}"),
    memory_each: Phrase("{0} GB cada una"),
    accelerator: "Acelerador",
    longest: "Duración máxima",
    exclusive: "Exclusivo",
    exclusive_text: "nunca dos entrenamientos a la vez",
    weights: "Pesos",
    no_weights: "Los pesos llegan al final del entrenamiento.",
    all_files: "Todos los archivos",
    checkpoints: "Checkpoints",
    resumes_here: "el próximo intento continúa desde aquí",
    of_user: "Enviado por",
    with_label: "Etiqueta, como team=nlp",
    narrow: "Filtrar",
    without: Phrase("Quitar el filtro {0}"),
    waiting: "En espera",
    waits_since: "En espera desde el envío",
    asks_for: "Requiere",
    anything: "cualquier worker",
    loss: Phrase("pérdida {0}"),
    left: Phrase("quedan {0}"),
    actions: "Acciones",
    actions_of: Phrase("Acciones de {0}"),
};

pub(super) const LANES: Lanes = Lanes {
    title: "Cronología",
    label: "Qué hizo el trabajo y cuándo; lo mismo está en la tabla de abajo",
    waiting: "En espera",
    back_off: "Esperando un reintento",
    checkpoint: Phrase("Checkpoint en el paso {0}"),
};

pub(super) const GALLERY: Gallery = Gallery {
    all: "Todas las muestras",
    hint: "por paso",
    not_made: "No se generó en este paso",
    over_steps: "En todos los pasos",
    sample: Phrase("Muestra {0} en todos los pasos"),
    earlier: "Paso anterior",
    later: "Paso siguiente",
    before: "Muestra anterior",
    after: "Muestra siguiente",
    compare: "Comparar con",
    nothing: "nada",
    show: "Mostrar",
    full: "Muestra a tamaño completo",
    close: "Cerrar",
};
