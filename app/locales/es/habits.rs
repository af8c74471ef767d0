//! Spanish: search, keys, notifications, preferences.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::habits::{Habits, Preferences};

pub(super) const HABITS: Habits = Habits {
    preferences: "Preferencias",
    search: "Buscar",
    search_hint: "Página, worker, trabajo o acción",
    nothing_found: "Aquí no hay nada con ese nombre.",
    palette_hint: "↑ ↓ para elegir, ↵ para abrir, Ctrl ↵ en otra pestaña",
    page: "Página",
    action: "Acción",
    verb: Phrase("{0} …"),
    choice: Phrase("{0}: {1}"),
    density: "Densidad",
    comfortable: "Amplia",
    compact: "Compacta",
    zone: "Zona horaria",
    utc: "UTC",
    local: "Hora local",
    keys: "Atajos de una sola tecla",
    keys_on: "Activados",
    keys_off: "Desactivados",
    shortcuts: "Atajos de teclado",
    go_to: Phrase("Ir a {0}"),
    k_palette: "Buscar cualquier cosa",
    k_help: "Mostrar estos atajos",
    k_filter: "Filtrar lo que hay en la página",
    k_next: "Fila siguiente",
    k_previous: "Fila anterior",
    k_open: "Abrir la fila",
    k_select: "Seleccionar la fila",
    k_create: "Crear o enviar",
    k_drain: "Drenar o reanudar este worker",
    k_undo: "Ir a Deshacer",
    k_menu: "Qué se puede hacer con la fila",
    k_close: "Cerrar",
    keys_are_off: "Las teclas sueltas están desactivadas en las preferencias.",
    notes: "Notificaciones",
    notes_none: "Todavía no ha pasado nada en esta pestaña.",
    undo: "Deshacer",
    close: "Cerrar",
};

pub(super) const PREFERENCES: Preferences = Preferences {
    intro: "Cómo muestra este navegador sus páginas. Los demás navegadores tienen las suyas.",
    theme_hint: "«Como el sistema» sigue el modo claro u oscuro de su dispositivo.",
    density_hint: "La compacta muestra más filas a la vez.",
    zone_hint: "La hora local es la de su navegador; sin scripts, las páginas escriben UTC.",
    keys_hint: "Como g j para los trabajos y ? para la lista. Desactívelos con entrada de voz o si pulsa teclas sin querer; Ctrl K sigue funcionando.",
    save: "Guardar",
    search_intro: "Páginas, workers, trabajos y configuraciones que puede ver, y lo que se puede hacer con ellos.",
};
