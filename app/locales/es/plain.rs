//! Spanish: pages that only the server renders.

use super::account::{FACTORS, NOTICES, PASSKEYS};
use super::bulk::BULK;
use super::configs::CONFIGS;
use super::count;
use super::desk::{AUDIT, REFUSED, SYSTEM, USAGE};
use super::job_pages::JOB_PAGES;
use super::train::TRAIN;
use super::worker_pages::WORKER_PAGES;
use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::plain::{Account, Confirm, Create, DeleteWorker, Login, People, Plain, Secrets};

pub(in crate::ui::locales) const PLAIN: Plain = Plain {
    preferences: super::habits::PREFERENCES,
    login: LOGIN,
    account: ACCOUNT,
    factors: FACTORS,
    passkeys: PASSKEYS,
    notices: NOTICES,
    people: PEOPLE,
    secrets: SECRETS,
    confirm: CONFIRM,
    train: TRAIN,
    job: JOB_PAGES,
    worker: WORKER_PAGES,
    configs: CONFIGS,
    create: CREATE,
    delete: DELETE,
    bulk: BULK,
    usage: USAGE,
    audit: AUDIT,
    system: SYSTEM,
    refused: REFUSED,
};

pub(super) const LOGIN: Login = Login {
    title: "Iniciar sesión",
    intro: "En el orquestador de su flota de entrenamiento.",
    name: "Nombre",
    password: "Contraseña",
    submit: "Iniciar sesión",
    with_token: "Con un token de API",
    with_token_text: "Deje el nombre vacío y pegue el token como contraseña.",
    lost: "¿Perdió la contraseña?",
    lost_text: "Un administrador puede darle una nueva.",
    setup_title: "Configuración inicial",
    setup_intro: "Nadie puede iniciar sesión todavía. Cree la primera cuenta de administrador.",
    code: "Código de configuración inicial",
    code_hint: "El servidor lo escribió en su registro al iniciarse. Funciona una sola vez.",
    name_hint: "Letras minúsculas, dígitos, «.», «_» y «-».",
    password_hint: "Mínimo 12 caracteres.",
    setup_submit: "Configurar e iniciar sesión",
};

pub(super) const ACCOUNT: Account = Account {
    intro: "Sus tokens de API, su contraseña y los navegadores en los que tiene la sesión iniciada.",
    tokens: "Tokens de API",
    api: "Qué puede hacer la API",
    no_tokens: "Aún no hay ninguno. Los scripts envían uno en el encabezado «Authorization: Bearer …».",
    everything: "Todos los permisos de la cuenta",
    used: "Último uso",
    never_used: "Nunca usado",
    ends: "expira el",
    never_ends: "no expira",
    revoke: "Revocar",
    revoke_text: "Quien lo envíe será rechazado desde ese momento. No se puede recuperar.",
    revoke_confirm: "Revocar este token",
    new_token: "Nuevo token de API",
    token_name: "Para qué es",
    token_name_hint: "Un nombre como «ci»: letras minúsculas, dígitos, «.», «_» y «-».",
    days: "Días hasta que expire",
    days_hint: "Vacío: el valor predeterminado del servidor, 90 días salvo que se configure otro.",
    never_expires: "Sin vencimiento",
    scopes: "Qué puede hacer",
    scopes_hint: "Si no se elige nada, todo lo que permite la cuenta.",
    make: "Crear token",
    made: Phrase("Su token «{0}»"),
    made_text: "Guárdelo ahora: solo se muestra esta vez.",
    secret: "Token de API",
    password: "Contraseña",
    old_password: "Contraseña actual",
    new_password: "Contraseña nueva",
    change: "Cambiar contraseña",
    sessions: "Sesiones iniciadas",
    session_lengths: Phrase("La sesión termina tras {0} sin uso y {1} después de iniciarla."),
    this_browser: "Este navegador",
    end: "Cerrar sesión",
    end_text: "Quien use ese navegador tendrá que iniciar sesión de nuevo.",
    end_confirm: "Cerrar la sesión de este navegador",
};

pub(super) const PEOPLE: People = People {
    intro: "Quién puede usar este servidor, y para qué.",
    roles_title: "Qué significan los roles",
    viewer: "ve todos los trabajos y configuraciones, y no cambia nada",
    researcher: "envía trabajos, ve y cancela los propios, y edita configuraciones",
    lead: "además, ve y cancela los trabajos de todos y decide qué es urgente",
    admin: "lo hace todo: workers, personas, secretos para todos, registro de auditoría",
    none: "Nadie coincide",
    none_hint: "El filtro oculta a las demás personas.",
    added: "Añadido",
    shut_out: "sin acceso",
    add: "Añadir una persona",
    role: "Rol",
    password_optional: "Mínimo 12 caracteres. Sin contraseña, la persona no puede iniciar sesión hasta que se le asigne una.",
    add_submit: "Añadir",
    person_intro: "Qué puede hacer esta persona y qué sesiones y tokens tiene.",
    access: "Acceso",
    shut: "Bloquear el acceso",
    shut_text: "Se cierran de inmediato todas sus sesiones y sus tokens de API se rechazan. Sus trabajos continúan.",
    shut_confirm: "Bloquear a esta persona",
    let_in: "Permitir el acceso de nuevo",
    save: "Guardar",
    reset: "Establecer contraseña",
    reset_text: "Se cierran todas sus sesiones, se revocan sus tokens de API y la contraseña anterior deja de servir.",
    reset_confirm: "Establecer esta contraseña",
    no_tokens: "Sin tokens de API.",
    no_sessions: "Sin sesiones iniciadas.",
};

pub(super) const SECRETS: Secrets = Secrets {
    intro: "Valores que sus trabajos encuentran en su entorno, como el token de un repositorio de modelos. Se guardan cifrados y nunca vuelven a mostrarse.",
    own: "Sus secretos",
    none: "Aún no hay ninguno.",
    shared: "Para los trabajos de todos",
    shared_text: "Un secreto propio con el mismo nombre tiene prioridad.",
    set: "Definido",
    last_given: "entregado por última vez a un trabajo",
    never_given: "nunca entregado a un trabajo",
    remove: "Quitar",
    remove_text: "Su valor se pierde para siempre. Ningún intento que empiece después lo recibe.",
    remove_confirm: "Quitar este secreto",
    keep_title: "Guardar un secreto",
    name: "Nombre",
    name_hint: "El nombre de la variable, como HF_TOKEN o WANDB_API_KEY. Si ya existe, se reemplaza.",
    value: "Valor",
    value_hint: "8 caracteres o más. Los registros muestran asteriscos en su lugar.",
    share: "Para los trabajos de todos",
    share_hint: "Lo reciben todos los trabajos, sin importar quién los envíe.",
    keep: "Guardar",
};

pub(super) const CONFIRM: Confirm = Confirm {
    title: "Confirme su identidad",
    intro: "Esta acción requiere su contraseña una vez más. Aún no se ha hecho nada; repita la acción después.",
    hint: "O el token de API, si inició sesión con uno. Vale durante 15 minutos.",
    submit: "Confirmar",
};

pub(super) const CREATE: Create = Create {
    title: "Crear worker",
    intro: "Da a la máquina un nombre y un token propio. La página siguiente muestra el token una sola vez, junto con el comando que debe ejecutarse en ella.",
    name: "Nombre",
    name_hint: "Único en la flota, el que se le dé a la máquina: gpu-worker-1.",
    kind: "Tipo",
    kind_hint: "Qué ocurre cuando termina un trabajo.",
    persistent: "Permanece y acepta el siguiente trabajo. Para máquinas propias.",
    ephemeral: "Termina tras un trabajo. Para máquinas alquiladas.",
    labels: "Etiquetas",
    labels_hint: "Una «clave=valor» por campo. Los trabajos eligen los workers por ellas.",
    advanced: "Límites de su token",
    networks: "Redes permitidas",
    networks_hint: "Redes o direcciones desde las que puede conectarse el agente, como 10.0.0.0/8. Vacío: cualquiera.",
    submit: "Crear worker",
};

pub(super) const DELETE: DeleteWorker = DeleteWorker {
    title: Phrase("¿Eliminar {0}?"),
    text: "Su token deja de funcionar de inmediato y el worker desaparece de la flota. Sus trabajos anteriores se conservan, con sus registros y archivos.",
    busy: count(
        "Ahora tiene un trabajo. Ese trabajo vuelve a la cola.",
        "Ahora tiene {0} trabajos. Esos trabajos vuelven a la cola.",
    ),
    confirm: "Eliminar este worker",
    keep: "Conservarlo",
};
