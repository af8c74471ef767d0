//! Brazilian Portuguese: what is done to several at once.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::bulk::{Bulk, Picking};

pub(super) const PICKING: Picking = Picking {
    one: Phrase("Selecionar {0}"),
    all: "Selecionar tudo nesta página",
    picked: count("{0} selecionado", "{0} selecionados"),
    none: "Limpar seleção",
    delete: "Excluir offline",
    cancel: "Cancelar trabalhos",
};

pub(super) const BULK: Bulk = Bulk {
    drain: count("Drenar {0} worker", "Drenar {0} workers"),
    resume: count("Retomar {0} worker", "Retomar {0} workers"),
    delete: count("Excluir {0} worker", "Excluir {0} workers"),
    cancel: count("Cancelar {0} trabalho", "Cancelar {0} trabalhos"),
    retry: count("Executar {0} trabalho de novo", "Executar {0} trabalhos de novo"),
    drain_text: "Um worker drenado termina o que está executando e não aceita novos trabalhos até ser retomado.",
    delete_text: "O token de um worker excluído deixa de funcionar imediatamente. Os trabalhos anteriores, os logs e os arquivos permanecem.",
    cancel_text: "Um trabalho cancelado não começa de novo.",
    retry_text: "Cada um vira um novo trabalho com os mesmos requisitos e a mesma revisão da configuração: do zero se foi concluído; senão, do seu último checkpoint.",
    happens: "O que vai acontecer",
    nothing: "Nada a fazer",
    nothing_text: "Nada mudaria. Volte e selecione outros.",
    missing: count("{0} deles não existe mais.", "{0} deles não existem mais."),
    keep: "Voltar à lista",
    between: ", ",
    takes_nothing: "Não aceita nada novo.",
    finishes: Phrase("Termina {0} e não aceita nada novo."),
    leaves: "Não aceita nada novo e sai.",
    finishes_and_leaves: Phrase("Termina {0} e depois sai."),
    takes_nothing_later: "Está offline; não aceitará nada novo quando voltar.",
    drains_already: "Já está sendo drenado: fica como está.",
    takes_again: "Volta a aceitar trabalhos.",
    drains_not: "Não está sendo drenado: fica como está.",
    deleted: "É excluído.",
    deleted_with: count(
        "É excluído; o trabalho que ele tem volta para a fila.",
        "É excluído; os {0} trabalhos que ele tem voltam para a fila.",
    ),
    not_offline: "Não está offline: permanece.",
    leaves_queue: "Sai da fila.",
    stops: "O treinamento é interrompido e pode gravar um último checkpoint.",
    stops_already: "Já está sendo cancelado.",
    ended: "Já terminou: fica como está.",
    of_somebody_else: Phrase("Pertence a {0}: fica como está."),
    submitted_again: "É enviado de novo, como um novo trabalho.",
    not_ended: "Não terminou: fica como está.",
    drained: count("{0} worker não aceita novos trabalhos.", "{0} workers não aceitam novos trabalhos."),
    resumed: count("{0} worker volta a aceitar trabalhos.", "{0} workers voltam a aceitar trabalhos."),
    gone: count("{0} worker foi excluído.", "{0} workers foram excluídos."),
    cancelled: count("{0} trabalho está sendo cancelado.", "{0} trabalhos estão sendo cancelados."),
    retried: count("{0} trabalho foi enviado de novo.", "{0} trabalhos foram enviados de novo."),
    nothing_done: "Nada foi alterado.",
    unchanged: count("{0} já estava assim.", "{0} já estavam assim."),
    both: Phrase("{0} {1}"),
    refused: Phrase("Exceto {0}: {1}"),
};
