//! Spanish: workers’ tokens.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::token::WorkerToken;

pub(super) const TOKEN: WorkerToken = WorkerToken {
    conflict: "Dos agentes, un token",
    conflict_hint: "Un segundo agente se presentó con el token de este worker y se rechazó. Si no lo inició usted, el token fue robado: rótelo. Si lo inició usted, dé a cada máquina su propio worker.",
    conflict_hint_on: Phrase(
        "Un segundo agente en {0} se presentó con el token de este worker y se rechazó. Si no lo inició usted, el token fue robado: rótelo. Si lo inició usted, dé a cada máquina su propio worker.",
    ),
    conflict_settle: "Fui yo",
    conflict_settled: "La alarma quedó resuelta.",
    access: "Token",
    token_made: "Creado",
    token_used: "Último uso",
    token_ends: "Expira",
    token_never_ends: "nunca",
    token_ends_unused: Phrase("{0}, si ningún agente se registra antes con él"),
    token_ends_at: "El token expira el",
    token_has_ended: "Token expirado",
    old_token_ends: "El anterior expira",
    networks: "Redes permitidas",
    any_network: "cualquiera",
    days: "Días hasta que expire",
    days_hint: "Vacío: nunca. A partir de entonces se rechaza al agente hasta que se rote el token.",
    rotate: "Rotar token",
    rotate_hint: "Crea un token nuevo y lo muestra una sola vez. Un agente que use el anterior se rechaza en cuanto este expira.",
    overlap: "El token anterior expira",
    overlap_hint: "Como muy tarde; expira antes si el agente se presenta con el nuevo.",
    overlap_none: "de inmediato",
    overlap_hour: "en una hora",
    overlap_day: "en un día",
    overlap_week: "en una semana",
};
