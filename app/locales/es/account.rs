//! Spanish: second factors and notices.

use super::count;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::account::{Factors, Notices};

pub(super) const FACTORS: Factors = Factors {
    title: "Segundo factor",
    none: "No configurado. Con un segundo factor, una contraseña robada no basta para iniciar sesión.",
    required: "Este servidor lo exige: lo configurará la próxima vez que inicie sesión.",
    set_up: "Configurar aplicación de autenticación",
    since: Phrase("Aplicación de autenticación, configurada el {0}"),
    codes_left: count("Queda {0} código de recuperación", "Quedan {0} códigos de recuperación"),
    renew: "Nuevos códigos de recuperación",
    renew_text: "Los códigos anteriores dejan de funcionar.",
    renew_confirm: "Crear códigos nuevos",
    remove: "Quitar",
    remove_text: "Después iniciará sesión solo con la contraseña.",
    remove_confirm: "Quitar el segundo factor",
    enrol_title: "Configurar aplicación de autenticación",
    enrol_intro: "Escanee el código QR con una aplicación de autenticación o escriba en ella la clave. Después introduzca el código que muestra.",
    qr: "Código QR para la aplicación de autenticación",
    key: "Clave",
    code: "Código",
    code_hint: "Seis dígitos de la aplicación.",
    turn_on: "Activar",
    codes_title: "Códigos de recuperación",
    codes_text: "Cada uno sirve una vez en lugar de la aplicación. Guárdelos en un lugar seguro: solo se muestran esta vez.",
    login_title: "Introducir código",
    login_intro: Phrase("Iniciando sesión como {0}."),
    login_hint: "Seis dígitos de su aplicación de autenticación o un código de recuperación.",
    start_over: "Empezar de nuevo",
    lost: "¿Perdió la aplicación y los códigos?",
    lost_text: "Un administrador puede quitar su segundo factor.",
    person_none: "No configurado.",
    person_remove_text: "Después inicia sesión solo con la contraseña, o configura uno nuevo si este servidor lo exige.",
};

pub(super) const NOTICES: Notices = Notices {
    title: "Actividad de la cuenta",
    intro: "Si no fue usted, cierre la sesión y cambie la contraseña.",
    new_browser: "Inicio de sesión con un navegador nuevo",
    new_network: "Inicio de sesión desde una red nueva",
    wrong_code: "Se introdujo su contraseña con un código incorrecto",
    password_changed: "Se cambió su contraseña",
    password_reset: "Un administrador asignó una contraseña nueva",
    factor_added: "Segundo factor configurado",
    factor_removed: "Segundo factor quitado",
    recovery_codes_renewed: "Nuevos códigos de recuperación creados",
    recovery_code_used: "Se usó un código de recuperación",
    by: Phrase("por {0}"),
    end: "No fui yo: cerrar la sesión",
    end_text: "Ese navegador se desconecta de inmediato. Después cambie la contraseña.",
    end_confirm: "Cerrar esta sesión",
    change: "Cambiar contraseña",
    read: "Marcar como leído",
};
