//! Portuguese (Brazil): the plain pages of a worker.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::worker_pages::WorkerPages;

pub(super) const WORKER_PAGES: WorkerPages = WorkerPages {
    newest_first: "mais recentes primeiro",
    attempts: "Tentativas",
    of_late: count("no último dia", "nos últimos {0} dias"),
    success: "Taxa de sucesso",
    ended_so: Phrase("{0} concluídas, {1} com falha, {2} perdidas"),
    fast_failures: "Falhas rápidas seguidas",
    fast_failures_hint: "em menos de um minuto após o início, nas últimas 24 horas",
    no_attempts: "Nenhuma tentativa ainda",
    no_attempts_hint: "O que é oferecido a este worker aparece aqui, com o resultado.",
    no_events: "Nada registrado",
    no_events_hint: "A auditoria não guarda mais registros sobre este worker.",
    said_goodbye: "Ele se despediu.",
    fell_silent: "Ficou tempo demais sem dar sinal de vida.",
    server_gone: "O servidor ao qual estava conectado não existe mais.",
    until: Phrase("até {0}"),
    withheld: Phrase("Retidas: {0}"),
    given_back: Phrase("Devolvidas: {0}"),
    fit_again: "Voltou a aceitar trabalhos.",
    from_host: Phrase("Do host {0}"),
    edit_title: Phrase("Editar {0}"),
    reported: "Rótulos informados pelo agente",
    reported_hint: "Vêm das configurações do próprio agente e são alterados lá.",
    none_reported: "Ele não informa nenhum.",
    overridden: Phrase("não conta: o seu diz {0}"),
    not_counted: "não conta",
    ignore: "Ignorar o que o agente informa",
    ignore_hint: "Os trabalhos passam a escolhê-lo só pelos seus rótulos. Para hosts cujo operador não deve escolher os trabalhos.",
    older: "Recusar agentes antigos",
    older_hint: "Um agente do protocolo antigo usa o token do worker para tudo e recebe HF_TOKEN com a oferta de um trabalho.",
    older_agents: "Agentes antigos",
    older_refused: "recusados",
    ignored_everywhere: "Este servidor ignora o que os agentes informam, em todos os workers.",
    overtaken: "Enquanto isso, outra pessoa alterou este worker. O que você digitou continua abaixo; o que está salvo agora aparece junto. Salvar de novo coloca o seu no lugar.",
    stored: "Salvo agora",
};
