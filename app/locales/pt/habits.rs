//! Brazilian Portuguese: search, keys, notifications, preferences.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::habits::{Habits, Preferences};

pub(super) const HABITS: Habits = Habits {
    preferences: "Preferências",
    search: "Buscar",
    search_hint: "Página, worker, trabalho ou ação",
    nothing_found: "Nada aqui tem esse nome.",
    palette_hint: "↑ ↓ para escolher, ↵ para abrir, Ctrl ↵ em outra aba",
    page: "Página",
    action: "Ação",
    verb: Phrase("{0} …"),
    choice: Phrase("{0}: {1}"),
    density: "Densidade",
    comfortable: "Confortável",
    compact: "Compacta",
    zone: "Fuso horário",
    utc: "UTC",
    local: "Horário local",
    keys: "Atalhos de uma só tecla",
    keys_on: "Ligados",
    keys_off: "Desligados",
    shortcuts: "Atalhos de teclado",
    go_to: Phrase("Ir para {0}"),
    k_palette: "Buscar qualquer coisa",
    k_help: "Mostrar estes atalhos",
    k_filter: "Filtrar o que está na página",
    k_next: "Próxima linha",
    k_previous: "Linha anterior",
    k_open: "Abrir a linha",
    k_select: "Selecionar a linha",
    k_create: "Criar ou enviar",
    k_drain: "Drenar ou retomar este worker",
    k_undo: "Ir para Desfazer",
    k_menu: "O que se pode fazer com a linha",
    k_close: "Fechar",
    keys_are_off: "As teclas simples estão desligadas nas preferências.",
    notes: "Notificações",
    notes_none: "Nada aconteceu nesta aba ainda.",
    undo: "Desfazer",
    close: "Fechar",
};

pub(super) const PREFERENCES: Preferences = Preferences {
    intro: "Como este navegador mostra suas páginas. Outros navegadores têm as próprias escolhas.",
    theme_hint: "“Como o sistema” segue o claro e o escuro do seu dispositivo.",
    density_hint: "A compacta mostra mais linhas de uma vez.",
    zone_hint: "O horário local é o do seu navegador; sem scripts, as páginas escrevem UTC.",
    keys_hint: "Como g j para os trabalhos e ? para a lista. Desligue para entrada por voz ou se teclas são pressionadas sem querer; Ctrl K continua.",
    save: "Salvar",
    search_intro: "Páginas, workers, trabalhos e configurações que você pode ver, e o que se pode fazer com eles.",
};
