//! Portuguese (Brazil): the words around a job: views, actions, timeline, samples.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::work::{Gallery, Lanes, Work};

pub(super) const WORK: Work = Work {
    views: "Visões do trabalho",
    events: "Eventos",
    clone: "Alterar e enviar",
    again_of: Phrase("repetição de {0}"),
    cancel_waiting: "Ainda não começou. Ele sai da fila, e um trabalho cancelado não começa de novo.",
    keep_waiting: "Deixar na fila",
    retry: "Executar de novo",
    retry_text: "Um novo trabalho com a mesma revisão da configuração e os mesmos requisitos. Ele continua do último checkpoint, se houver.",
    retry_confirm: "Executar este trabalho de novo",
    priority: "Prioridade",
    priority_text: "De 0 a 50; o mais urgente vai primeiro. Uma hora de espera pesa mais que um ponto.",
    set: "Aplicar",
    top: "Urgência máxima",
    raise: Phrase("Subir a prioridade para {0}"),
    memory_each: Phrase("{0} GB cada"),
    accelerator: "Acelerador",
    longest: "Duração máxima",
    exclusive: "Exclusivo",
    exclusive_text: "nunca dois treinamentos ao mesmo tempo",
    weights: "Pesos",
    no_weights: "Os pesos chegam no fim do treinamento.",
    all_files: "Todos os arquivos",
    checkpoints: "Checkpoints",
    resumes_here: "a próxima tentativa continua daqui",
    of_user: "Enviado por",
    with_label: "Rótulo, como team=nlp",
    narrow: "Filtrar",
    without: Phrase("Remover o filtro {0}"),
    waiting: "Em espera",
    waits_since: "Em espera desde o envio",
    asks_for: "Requer",
    anything: "qualquer worker",
    loss: Phrase("perda {0}"),
    left: Phrase("faltam {0}"),
    actions: "Ações",
    actions_of: Phrase("Ações de {0}"),
};

pub(super) const LANES: Lanes = Lanes {
    title: "Linha do tempo",
    label: "O que o trabalho fez e quando; o mesmo está na tabela abaixo",
    waiting: "Espera",
    back_off: "Esperando nova tentativa",
    checkpoint: Phrase("Checkpoint no passo {0}"),
};

pub(super) const GALLERY: Gallery = Gallery {
    all: "Todas as amostras",
    hint: "por passo",
    not_made: "Não gerada neste passo",
    over_steps: "Em todos os passos",
    sample: Phrase("Amostra {0} em todos os passos"),
    earlier: "Passo anterior",
    later: "Passo seguinte",
    before: "Amostra anterior",
    after: "Próxima amostra",
    compare: "Comparar com",
    nothing: "nada",
    show: "Mostrar",
    full: "Amostra em tamanho real",
    close: "Fechar",
};
