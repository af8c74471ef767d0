//! Brazilian Portuguese: pages that only the server renders.

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
    title: "Entrar",
    intro: "No orquestrador da sua frota de treinamento.",
    name: "Nome",
    password: "Senha",
    submit: "Entrar",
    with_token: "Com um token de API",
    with_token_text: "Deixe o nome vazio e cole o token como senha.",
    lost: "Perdeu a senha?",
    lost_text: "Um administrador pode fornecer uma nova.",
    setup_title: "Configuração inicial",
    setup_intro: "Ninguém pode entrar ainda. Crie a primeira conta de administrador.",
    code: "Código de configuração inicial",
    code_hint: "O servidor o escreveu no log ao iniciar. Funciona uma única vez.",
    name_hint: "Letras minúsculas, dígitos, “.”, “_” e “-”.",
    password_hint: "No mínimo 12 caracteres.",
    setup_submit: "Configurar e entrar",
};

pub(super) const ACCOUNT: Account = Account {
    intro: "Seus tokens de API, sua senha e os navegadores em que você tem uma sessão aberta.",
    tokens: "Tokens de API",
    api: "O que a API pode fazer",
    no_tokens: "Nenhum ainda. Os scripts enviam um no cabeçalho “Authorization: Bearer …”.",
    everything: "Todas as permissões da conta",
    used: "Último uso",
    never_used: "Nunca usado",
    ends: "expira em",
    never_ends: "não expira",
    revoke: "Revogar",
    revoke_text: "Quem o enviar será recusado a partir de então. Não há como recuperá-lo.",
    revoke_confirm: "Revogar este token",
    new_token: "Novo token de API",
    token_name: "Para que serve",
    token_name_hint: "Um nome como “ci”: letras minúsculas, dígitos, “.”, “_” e “-”.",
    days: "Dias até expirar",
    days_hint: "Vazio: o padrão do servidor, 90 dias, salvo configuração diferente.",
    never_expires: "Sem expiração",
    scopes: "O que pode fazer",
    scopes_hint: "Se nada for escolhido, tudo o que a conta permite.",
    make: "Criar token",
    made: Phrase("Seu token “{0}”"),
    made_text: "Guarde-o agora: ele é exibido só desta vez.",
    secret: "Token de API",
    password: "Senha",
    old_password: "Senha atual",
    new_password: "Nova senha",
    change: "Alterar senha",
    sessions: "Sessões abertas",
    session_lengths: Phrase("A sessão termina após {0} sem uso e {1} depois de entrar."),
    this_browser: "Este navegador",
    end: "Encerrar sessão",
    end_text: "Quem usa esse navegador terá de entrar de novo.",
    end_confirm: "Encerrar a sessão deste navegador",
};

pub(super) const PEOPLE: People = People {
    intro: "Quem pode usar este servidor, e para quê.",
    roles_title: "O que cada papel pode fazer",
    viewer: "vê todos os trabalhos e configurações, e não altera nada",
    researcher: "envia trabalhos, vê e cancela os próprios, e edita configurações",
    lead: "também vê e cancela os trabalhos de todos e decide o que é urgente",
    admin: "faz tudo: workers, pessoas, segredos para todos, trilha de auditoria",
    none: "Ninguém corresponde",
    none_hint: "As outras pessoas estão ocultas pelo filtro.",
    added: "Adicionado",
    shut_out: "sem acesso",
    add: "Adicionar uma pessoa",
    role: "Papel",
    password_optional: "No mínimo 12 caracteres. Sem senha, a pessoa não pode entrar até que você defina uma.",
    add_submit: "Adicionar",
    person_intro: "O que esta pessoa pode fazer e quais sessões e tokens ela tem.",
    access: "Acesso",
    shut: "Bloquear o acesso",
    shut_text: "Todas as sessões são encerradas de imediato e os tokens de API são recusados. Os trabalhos continuam.",
    shut_confirm: "Bloquear esta pessoa",
    let_in: "Permitir o acesso de novo",
    save: "Salvar",
    reset: "Definir senha",
    reset_text: "Todas as sessões são encerradas, os tokens de API são revogados e a senha anterior deixa de valer.",
    reset_confirm: "Definir esta senha",
    no_tokens: "Nenhum token de API.",
    no_sessions: "Nenhuma sessão aberta.",
};

pub(super) const SECRETS: Secrets = Secrets {
    intro: "Valores que seus trabalhos encontram no ambiente, como o token de um repositório de modelos. São guardados criptografados e nunca mais exibidos.",
    own: "Seus segredos",
    none: "Nenhum ainda.",
    shared: "Para os trabalhos de todos",
    shared_text: "Um segredo seu com o mesmo nome tem prioridade.",
    set: "Definido",
    last_given: "entregue pela última vez a um trabalho",
    never_given: "nunca entregue a um trabalho",
    remove: "Remover",
    remove_text: "O valor se perde para sempre. Nenhuma tentativa que começar depois o recebe.",
    remove_confirm: "Remover este segredo",
    keep_title: "Guardar um segredo",
    name: "Nome",
    name_hint: "O nome da variável, como HF_TOKEN ou WANDB_API_KEY. Se já existir, será substituída.",
    value: "Valor",
    value_hint: "8 caracteres ou mais. Os logs mostram asteriscos no lugar.",
    share: "Para os trabalhos de todos",
    share_hint: "Todos os trabalhos o recebem, não importa quem os envie.",
    keep: "Guardar",
};

pub(super) const CONFIRM: Confirm = Confirm {
    title: "Confirme sua identidade",
    intro: "Esta ação exige sua senha mais uma vez. Nada foi feito ainda; repita a ação depois.",
    hint: "Ou o token de API, se você entrou com um. Vale por 15 minutos.",
    submit: "Confirmar",
};

pub(super) const CREATE: Create = Create {
    title: "Criar worker",
    intro: "Dá à máquina um nome e um token próprios. A próxima página mostra o token uma única vez, com o comando a executar nela.",
    name: "Nome",
    name_hint: "Único na frota, o nome que você dá à máquina: gpu-worker-1.",
    kind: "Tipo",
    kind_hint: "O que acontece quando um trabalho termina.",
    persistent: "Permanece e aceita o próximo trabalho. Para máquinas próprias.",
    ephemeral: "Termina após um trabalho. Para máquinas alugadas.",
    labels: "Rótulos",
    labels_hint: "Um “chave=valor” por campo. Os trabalhos escolhem os workers por eles.",
    advanced: "Limites do token",
    networks: "Redes permitidas",
    networks_hint: "Redes ou endereços de onde o agente pode se conectar, como 10.0.0.0/8. Vazio: qualquer um.",
    submit: "Criar worker",
};

pub(super) const DELETE: DeleteWorker = DeleteWorker {
    title: Phrase("Excluir {0}?"),
    text: "O token dele deixa de funcionar imediatamente e o worker desaparece da frota. Seus trabalhos anteriores permanecem, com logs e arquivos.",
    busy: count(
        "Ele tem um trabalho agora. Esse trabalho volta para a fila.",
        "Ele tem {0} trabalhos agora. Esses trabalhos voltam para a fila.",
    ),
    confirm: "Excluir este worker",
    keep: "Manter",
};
