//! Spanish: the plain pages of a worker.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::worker_pages::WorkerPages;

pub(super) const WORKER_PAGES: WorkerPages = WorkerPages {
    newest_first: "primero los más recientes",
    attempts: "Intentos",
    of_late: count("en el último día", "en los últimos {0} días"),
    success: "Tasa de éxito",
    ended_so: Phrase("{0} completados, {1} fallidos, {2} perdidos"),
    fast_failures: "Fallos rápidos seguidos",
    fast_failures_hint: "en menos de un minuto desde el inicio, en las últimas 24 horas",
    no_attempts: "Aún no hay intentos",
    no_attempts_hint: "Aquí aparece lo que se ofrece a este worker y cómo terminó.",
    no_events: "Nada registrado",
    no_events_hint: "La auditoría ya no conserva entradas sobre este worker.",
    said_goodbye: "Se despidió.",
    fell_silent: "No dio señales de vida durante demasiado tiempo.",
    server_gone: "El servidor al que estaba conectado ya no está.",
    until: Phrase("hasta el {0}"),
    withheld: Phrase("Retenidas: {0}"),
    given_back: Phrase("Devueltas: {0}"),
    fit_again: "Vuelve a aceptar trabajos.",
    from_host: Phrase("Desde el host {0}"),
    edit_title: Phrase("Editar {0}"),
    reported: "Etiquetas que comunica su agente",
    reported_hint: "Vienen de la configuración del propio agente, y allí se cambian.",
    none_reported: "No comunica ninguna.",
    overridden: Phrase("no cuenta: la suya dice {0}"),
    not_counted: "no cuenta",
    ignore: "Ignorar lo que comunica su agente",
    ignore_hint: "Los trabajos lo eligen entonces solo por sus etiquetas. Para hosts cuyo operador no debe elegir sus trabajos.",
    older: "Rechazar agentes antiguos",
    older_hint: "Un agente del protocolo antiguo usa el token del worker para todo y recibe HF_TOKEN con la oferta de un trabajo.",
    older_agents: "Agentes antiguos",
    older_refused: "rechazados",
    ignored_everywhere: "Este servidor ignora lo que comunican los agentes, en todos los workers.",
    overtaken: "Entretanto, otra persona ha cambiado este worker. Lo que usted escribió sigue abajo; lo que está guardado ahora aparece al lado. Si guarda otra vez, lo suyo ocupa su lugar.",
    stored: "Guardado ahora",
};
