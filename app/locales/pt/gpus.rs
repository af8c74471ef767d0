//! Brazilian Portuguese: GPUs.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::gpus::Gpus;

pub(super) const GPUS: Gpus = Gpus {
    title: "GPUs",
    intro: "Todas as GPUs da frota, como estão agora.",
    view: "Mostrar como",
    as_tiles: "Blocos",
    as_table: "Tabelas",
    none_yet: "Nenhuma GPU ainda",
    none_yet_hint: "As GPUs aparecem aqui assim que um worker que as tenha se conectar.",
    none_match: "Nenhuma GPU neste estado",
    none_match_hint: "O filtro oculta GPUs em outros estados.",
    show_all: "Mostrar todas as GPUs",
    gpu: "GPU",
    state: "Status",
    memory: "Memória",
    memory_of: Phrase("Memória em uso na GPU {0}"),
    utilisation: "Uso",
    utilisation_of: Phrase("Uso da GPU {0}"),
    temperature: "Temperatura",
    power: "Consumo",
    clocks: "Frequências",
    read: "Leitura",
    no_reading: "sem leitura",
    ecc: Phrase("Erros de ECC: {0}"),
    part_of: Phrase("Parte de {0}"),
    unified: "Compartilha a memória do host",
    free: "Livre",
    busy: "Com um trabalho",
    quarantined: "Em quarentena",
    in_use: "Em uso por outros",
    not_connected: "Desconectada",
    withheld: count("{0} GPU retida", "{0} GPUs retidas"),
    withheld_hint: "O agente não cede algumas GPUs aos trabalhos: uma está com defeito ou é usada por um processo que não pertence a nenhum trabalho. A página do worker informa qual e por quê.",
};
