//! Brazilian Portuguese: what is to be trained.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::train::Train;

pub(super) const TRAIN: Train = Train {
    title: "Treinar na nuvem",
    intro: "Envie uma configuração. O trabalho mantém os arquivos como estão agora, não importa o que mude depois.",
    configuration: "Configuração",
    target: "Destino",
    target_worker: "Somente em um worker remoto. Espera até que um esteja livre.",
    target_auto: "Em um worker, se algum servir; senão, nas GPUs deste servidor.",
    target_local: "Somente nas GPUs deste servidor.",
    gpu_count: "GPUs",
    gpu_count_hint: "Se ficar vazio, o que a configuração pedir.",
    labels: "Rótulos do worker",
    labels_hint: "Um “chave=valor” por linha; o worker precisa ter todos. “*” equivale a qualquer coisa.",
    labels_example: "gpu_type=a100*",
    known_labels: "Na frota",
    advanced: "Novas tentativas e checkpoints",
    retries: "Novas tentativas após perder um worker",
    retries_hint: "Número máximo, se a causa foi o worker ou o host dele. Uma falha do próprio treinamento é definitiva.",
    checkpoints: "Checkpoints a enviar para cá",
    checkpoints_hint: "A partir deles, outro worker continua se um for perdido.",
    checkpoints_last: "O mais recente",
    checkpoints_all: "Todos",
    checkpoints_none: "Nenhum",
    exclusive: "Nunca duas vezes ao mesmo tempo",
    exclusive_text: "Um worker que perde o contato interrompe o trabalho, e nenhum outro o começa antes disso. Após perder um worker, isto demora mais.",
    submit: "Enviar trabalho",
    files: count("{0} arquivo", "{0} arquivos"),
    revision: Phrase("revisão {0}"),
    none: "Nenhuma configuração ainda",
    none_hint: "Primeiro, envie uma ao servidor, pela linha de comando ou pela API:",
    fleet_now: "Frota agora",
    fleet: Phrase("livres: {0}, ocupados: {1}, offline: {2}"),
    fleet_empty: "Nenhum worker se conectou. O trabalho vai esperar.",
};
