//! Spanish: what is done to several at once.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::bulk::{Bulk, Picking};

pub(super) const PICKING: Picking = Picking {
    one: Phrase("Seleccionar {0}"),
    all: "Seleccionar todo en esta página",
    picked: count("1 seleccionado", "{0} seleccionados"),
    none: "Quitar selección",
    delete: "Eliminar desconectados",
    cancel: "Cancelar trabajos",
};

pub(super) const BULK: Bulk = Bulk {
    drain: count("Drenar 1 worker", "Drenar {0} workers"),
    resume: count("Reanudar 1 worker", "Reanudar {0} workers"),
    delete: count("Eliminar 1 worker", "Eliminar {0} workers"),
    cancel: count("Cancelar 1 trabajo", "Cancelar {0} trabajos"),
    retry: count("Volver a ejecutar 1 trabajo", "Volver a ejecutar {0} trabajos"),
    drain_text: "Un worker drenado termina lo que está ejecutando y no acepta trabajos nuevos hasta que se reanude.",
    delete_text: "El token de un worker eliminado deja de funcionar de inmediato. Sus trabajos anteriores, sus registros y archivos se conservan.",
    cancel_text: "Un trabajo cancelado no vuelve a empezar.",
    retry_text: "De cada uno se crea un trabajo nuevo con los mismos requisitos y la misma revisión de la configuración: desde cero si se completó y, si no, desde su último checkpoint.",
    happens: "Qué ocurrirá",
    nothing: "Nada que hacer",
    nothing_text: "No cambiaría nada. Vuelva y seleccione otros.",
    missing: count("1 de ellos ya no existe.", "{0} de ellos ya no existen."),
    keep: "Volver a la lista",
    between: ", ",
    takes_nothing: "No aceptará nada nuevo.",
    finishes: Phrase("Termina {0} y no acepta nada nuevo."),
    leaves: "No acepta nada nuevo y se retira.",
    finishes_and_leaves: Phrase("Termina {0} y después se retira."),
    takes_nothing_later: "Está desconectado; no aceptará nada nuevo cuando vuelva.",
    drains_already: "Ya se está drenando: queda como está.",
    takes_again: "Vuelve a aceptar trabajos.",
    drains_not: "No se está drenando: queda como está.",
    deleted: "Se elimina.",
    deleted_with: count(
        "Se elimina; el trabajo que tiene vuelve a la cola.",
        "Se elimina; los {0} trabajos que tiene vuelven a la cola.",
    ),
    not_offline: "No está desconectado: se queda.",
    leaves_queue: "Sale de la cola.",
    stops: "Se detiene su entrenamiento; puede guardar un último checkpoint.",
    stops_already: "Ya se está cancelando.",
    ended: "Ha terminado: queda como está.",
    of_somebody_else: Phrase("Es de {0}: queda como está."),
    submitted_again: "Se envía de nuevo, como trabajo nuevo.",
    not_ended: "No ha terminado: queda como está.",
    drained: count("1 worker no acepta trabajos nuevos.", "{0} workers no aceptan trabajos nuevos."),
    resumed: count("1 worker vuelve a aceptar trabajos.", "{0} workers vuelven a aceptar trabajos."),
    gone: count("Se ha eliminado 1 worker.", "Se han eliminado {0} workers."),
    cancelled: count("Se está cancelando 1 trabajo.", "Se están cancelando {0} trabajos."),
    retried: count("Se ha enviado de nuevo 1 trabajo.", "Se han enviado de nuevo {0} trabajos."),
    nothing_done: "No se ha cambiado nada.",
    unchanged: count("1 ya estaba así.", "{0} ya estaban así."),
    both: Phrase("{0} {1}"),
    refused: Phrase("Excepto {0}: {1}"),
};
