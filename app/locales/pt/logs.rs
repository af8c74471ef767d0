//! Brazilian Portuguese: the page of a log.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::logs::Logs;

pub(super) const LOGS: Logs = Logs {
    title: Phrase("Log de {0}"),
    open: "Abrir o log",
    attempts: "Tentativas",
    search: "Pesquisar no log",
    search_hint: "Pesquisar",
    regex: "Expressão regular",
    case: "Diferenciar maiúsculas",
    previous: "Ocorrência anterior",
    next: "Próxima ocorrência",
    matches: count("{0} linha corresponde", "{0} linhas correspondem"),
    rank: Phrase("{0} de {1}"),
    so_far: Phrase("{0} até agora …"),
    none: "Nenhuma linha corresponde",
    errors: "Erros",
    errors_hint: "Encontrar as linhas que dizem o que deu errado",
    line: "Ir para a linha",
    go: "Ir",
    first: "Primeiras linhas",
    earlier: "Anteriores",
    later: "Seguintes",
    last: "Últimas linhas",
    shown: Phrase("Linhas {0} a {1} de {2}"),
    newer: count("{0} linha nova", "{0} linhas novas"),
    missing: "Algumas linhas não puderam ser obtidas. A página continua tentando.",
    copy_link: "Copiar link",
    copy_lines: "Copiar linhas",
    omitted: Phrase("Mais {0} desta linha estão no log completo"),
    gap: Phrase("Faltam {0} do log: o worker não conseguiu enviá-los e não tinha espaço para guardá-los"),
};
