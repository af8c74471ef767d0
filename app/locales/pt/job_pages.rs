//! Portuguese (Brazil): the plain pages of a job.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::job_pages::JobPages;

pub(super) const JOB_PAGES: JobPages = JobPages {
    events_hint: "mais antigos primeiro",
    no_events_hint: "A auditoria não guarda mais registros sobre este trabalho.",
    details: "Detalhes",
    submitted: Phrase("Enviado: {0}, revisão {1}"),
    resubmitted: Phrase("Enviado de novo, após {0}"),
    prioritised: Phrase("Prioridade alterada de {0} para {1}"),
    offered: Phrase("Tentativa {0} oferecida a {1}"),
    offer_expired: Phrase("{1} não pegou a tentativa {0}; o trabalho volta à fila"),
    starting: Phrase("{1} pegou a tentativa {0} e prepara o treinamento"),
    running: Phrase("O treinamento da tentativa {0} roda em {1}"),
    kept_back: Phrase("Retido até {0}: um treinamento perdido pode ainda estar rodando"),
    requeued: Phrase("A tentativa {0} foi perdida e o trabalho volta à fila: {1}"),
    cancelling: Phrase("Cancelado; {0} recebeu o pedido de parar o treinamento"),
    cancelled: "Cancelado",
    completed: Phrase("A tentativa {0} foi concluída em {1}"),
    failed: Phrase("Falhou: {0}"),
    secrets_given: Phrase("A tentativa {0} recebeu segredos: {1}"),
    by_worker: Phrase("pelo worker {0}"),
    by_server: "pelo servidor",
    all_revisions: "Todas as revisões",
    stored: "Salva",
    in_short: "Em resumo",
    cancel_title: Phrase("Cancelar {0}?"),
};
