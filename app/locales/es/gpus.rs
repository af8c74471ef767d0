//! Spanish: GPUs.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::gpus::Gpus;

pub(super) const GPUS: Gpus = Gpus {
    title: "GPU",
    intro: "Todas las GPU de la flota, tal como están ahora.",
    view: "Mostrar como",
    as_tiles: "Mosaico",
    as_table: "Tablas",
    none_yet: "Aún no hay ninguna GPU",
    none_yet_hint: "Las GPU aparecen aquí en cuanto se conecta un worker que las tenga.",
    none_match: "Ninguna GPU está en este estado",
    none_match_hint: "El filtro oculta las GPU en otros estados.",
    show_all: "Mostrar todas las GPU",
    gpu: "GPU",
    state: "Estado",
    memory: "Memoria",
    memory_of: Phrase("Memoria en uso de la GPU {0}"),
    utilisation: "Uso",
    utilisation_of: Phrase("Uso de la GPU {0}"),
    temperature: "Temperatura",
    power: "Consumo",
    clocks: "Frecuencias",
    read: "Lectura",
    no_reading: "sin lectura",
    ecc: Phrase("Errores de ECC: {0}"),
    part_of: Phrase("Parte de {0}"),
    unified: "Comparte la memoria del host",
    free: "Libre",
    busy: "Con un trabajo",
    quarantined: "En cuarentena",
    in_use: "Usada por otros",
    not_connected: "Desconectada",
    withheld: count("1 GPU retenida", "{0} GPU retenidas"),
    withheld_hint: "Su agente no cede algunas GPU a los trabajos: una está averiada o la usa un proceso que no pertenece a ningún trabajo. La página del worker indica cuál y por qué.",
};
