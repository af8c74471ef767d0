//! Brazilian Portuguese: second factors and notices.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::account::{Factors, Notices};

pub(super) const FACTORS: Factors = Factors {
    title: "Segundo fator",
    none: "Não configurado. Com um segundo fator, uma senha roubada não basta para entrar.",
    required: "Este servidor exige um: você o configura na próxima vez que entrar.",
    set_up: "Configurar aplicativo autenticador",
    since: Phrase("Aplicativo autenticador, configurado em {0}"),
    codes_left: count("Resta {0} código de recuperação", "Restam {0} códigos de recuperação"),
    renew: "Novos códigos de recuperação",
    renew_text: "Os códigos anteriores deixam de funcionar.",
    renew_confirm: "Criar novos códigos",
    remove: "Remover",
    remove_text: "Depois você entra só com a senha.",
    remove_confirm: "Remover o segundo fator",
    enrol_title: "Configurar aplicativo autenticador",
    enrol_intro: "Leia o código QR com um aplicativo autenticador ou digite a chave nele. Depois informe o código que o aplicativo mostra.",
    qr: "Código QR para o aplicativo autenticador",
    key: "Chave",
    code: "Código",
    code_hint: "Seis dígitos do aplicativo.",
    turn_on: "Ativar",
    codes_title: "Códigos de recuperação",
    codes_text: "Cada um funciona uma vez no lugar do aplicativo. Guarde-os em local seguro: são exibidos só desta vez.",
    login_title: "Informar código",
    login_intro: Phrase("Entrando como {0}."),
    login_hint: "Seis dígitos do seu aplicativo autenticador ou um código de recuperação.",
    start_over: "Começar de novo",
    lost: "Perdeu o aplicativo e os códigos?",
    lost_text: "Um administrador pode remover o seu segundo fator.",
    person_none: "Não configurado.",
    person_remove_text: "Depois a pessoa entra só com a senha, ou configura um novo se este servidor exigir.",
};

pub(super) const NOTICES: Notices = Notices {
    title: "Atividade da conta",
    intro: "Se não foi você, encerre a sessão e altere a senha.",
    new_browser: "Entrada com um navegador novo",
    new_network: "Entrada a partir de uma rede nova",
    wrong_code: "Sua senha foi informada com um código errado",
    password_changed: "Sua senha foi alterada",
    password_reset: "Um administrador definiu uma nova senha",
    factor_added: "Segundo fator configurado",
    factor_removed: "Segundo fator removido",
    recovery_codes_renewed: "Novos códigos de recuperação criados",
    recovery_code_used: "Um código de recuperação foi usado",
    by: Phrase("por {0}"),
    end: "Não fui eu: encerrar sessão",
    end_text: "Esse navegador é desconectado de imediato. Depois altere a senha.",
    end_confirm: "Encerrar esta sessão",
    change: "Alterar senha",
    read: "Marcar como lido",
};
