//! Brazilian Portuguese: workers’ tokens.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::token::WorkerToken;

pub(super) const TOKEN: WorkerToken = WorkerToken {
    conflict: "Dois agentes, um token",
    conflict_hint: "Um segundo agente se apresentou com o token deste worker e foi recusado. Se você não o iniciou, o token foi roubado: rotacione-o. Se você o iniciou, dê a cada máquina um worker próprio.",
    conflict_hint_on: Phrase(
        "Um segundo agente em {0} se apresentou com o token deste worker e foi recusado. Se você não o iniciou, o token foi roubado: rotacione-o. Se você o iniciou, dê a cada máquina um worker próprio.",
    ),
    conflict_settle: "Fui eu",
    conflict_settled: "O alarme foi resolvido.",
    access: "Token",
    token_made: "Criado",
    token_used: "Último uso",
    token_ends: "Expira",
    token_never_ends: "nunca",
    token_ends_unused: Phrase("{0}, se nenhum agente se registrar com ele antes"),
    token_ends_at: "O token expira em",
    token_has_ended: "Token expirado",
    old_token_ends: "O anterior expira",
    networks: "Redes permitidas",
    any_network: "qualquer uma",
    days: "Dias até expirar",
    days_hint: "Vazio: nunca. A partir daí o agente é recusado, até que o token seja rotacionado.",
    rotate: "Rotacionar token",
    rotate_hint: "Cria um novo token e o exibe uma única vez. Um agente que usa o antigo é recusado assim que este expira.",
    overlap: "O token antigo expira",
    overlap_hint: "No mais tardar; expira antes se o agente se apresentar com o novo.",
    overlap_none: "imediatamente",
    overlap_hour: "em uma hora",
    overlap_day: "em um dia",
    overlap_week: "em uma semana",
};
