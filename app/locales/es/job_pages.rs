//! Spanish: the plain pages of a job.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::job_pages::JobPages;

pub(super) const JOB_PAGES: JobPages = JobPages {
    events_hint: "primero los más antiguos",
    no_events_hint: "La auditoría ya no conserva entradas sobre este trabajo.",
    details: "Detalles",
    submitted: Phrase("Enviado: {0}, revisión {1}"),
    resubmitted: Phrase("Enviado de nuevo, tras {0}"),
    prioritised: Phrase("Prioridad cambiada de {0} a {1}"),
    offered: Phrase("Intento {0} ofrecido a {1}"),
    offer_expired: Phrase("{1} no tomó el intento {0}; el trabajo vuelve a la cola"),
    starting: Phrase("{1} tomó el intento {0} y prepara el entrenamiento"),
    running: Phrase("El entrenamiento del intento {0} se ejecuta en {1}"),
    kept_back: Phrase("Retenido hasta {0}: un entrenamiento perdido podría seguir en marcha"),
    requeued: Phrase("Se perdió el intento {0} y el trabajo vuelve a la cola: {1}"),
    cancelling: Phrase("Cancelado; se pidió a {0} que detenga el entrenamiento"),
    cancelled: "Cancelado",
    completed: Phrase("El intento {0} se completó en {1}"),
    failed: Phrase("Falló: {0}"),
    secrets_given: Phrase("El intento {0} recibió secretos: {1}"),
    by_worker: Phrase("por el worker {0}"),
    by_server: "por el servidor",
    all_revisions: "Todas las revisiones",
    stored: "Guardada",
    in_short: "En breve",
    cancel_title: Phrase("¿Cancelar {0}?"),
};
