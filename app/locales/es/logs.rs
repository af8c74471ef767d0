//! Spanish: the page of a log.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::logs::Logs;

pub(super) const LOGS: Logs = Logs {
    title: Phrase("Registro de {0}"),
    open: "Abrir el registro",
    attempts: "Intentos",
    search: "Buscar en el registro",
    search_hint: "Buscar",
    regex: "Expresión regular",
    case: "Distinguir mayúsculas",
    previous: "Coincidencia anterior",
    next: "Coincidencia siguiente",
    matches: count("1 línea coincide", "{0} líneas coinciden"),
    rank: Phrase("{0} de {1}"),
    so_far: Phrase("{0} hasta ahora …"),
    none: "Ninguna línea coincide",
    errors: "Errores",
    errors_hint: "Buscar las líneas que dicen qué ha fallado",
    line: "Ir a la línea",
    go: "Ir",
    first: "Primeras líneas",
    earlier: "Anteriores",
    later: "Siguientes",
    last: "Últimas líneas",
    shown: Phrase("Líneas {0} a {1} de {2}"),
    newer: count("1 línea nueva", "{0} líneas nuevas"),
    missing: "No se pudieron obtener algunas líneas. La página sigue intentándolo.",
    copy_link: "Copiar enlace",
    copy_lines: "Copiar líneas",
    omitted: Phrase("Otros {0} de esta línea están en el registro completo"),
    gap: Phrase("Faltan {0} del registro: el worker no pudo enviarlos y no tenía sitio para guardarlos"),
};
