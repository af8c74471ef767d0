//! Hindi: pages that only the server renders.

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
    title: "साइन इन करें",
    intro: "अपनी ट्रेनिंग फ़्लीट के ऑर्केस्ट्रेटर में।",
    name: "नाम",
    password: "पासवर्ड",
    submit: "साइन इन करें",
    with_token: "API टोकन से",
    with_token_text: "नाम खाली छोड़ें और पासवर्ड की जगह टोकन पेस्ट करें।",
    lost: "पासवर्ड याद नहीं?",
    lost_text: "कोई एडमिन आपको नया पासवर्ड दे सकता है।",
    setup_title: "सेटअप करें",
    setup_intro: "अभी कोई साइन इन नहीं कर सकता। खुद को पहला एडमिन बनाएँ।",
    code: "सेटअप कोड",
    code_hint: "सर्वर ने शुरू होते समय इसे अपने लॉग में लिखा था। यह एक ही बार काम करता है।",
    name_hint: "छोटे अंग्रेज़ी अक्षर, अंक, “.”, “_” और “-”।",
    password_hint: "कम से कम 12 वर्ण।",
    setup_submit: "सेटअप करके साइन इन करें",
};

pub(super) const ACCOUNT: Account = Account {
    intro: "आपके API टोकन, आपका पासवर्ड और वे ब्राउज़र जिनमें आप साइन इन हैं।",
    tokens: "API टोकन",
    api: "API क्या-क्या कर सकता है",
    no_tokens: "अभी कोई नहीं है। स्क्रिप्ट टोकन को “Authorization: Bearer …” हेडर में भेजती हैं।",
    everything: "वह सब जो आप कर सकते हैं",
    used: "पिछला उपयोग:",
    never_used: "कभी उपयोग नहीं हुआ",
    ends: "समाप्ति:",
    never_ends: "कभी समाप्त नहीं होता",
    revoke: "निरस्त करें",
    revoke_text: "इसे भेजने वाले को तुरंत मना कर दिया जाएगा। इसे वापस नहीं लाया जा सकता।",
    revoke_confirm: "यह टोकन रद्द करें",
    new_token: "नया API टोकन",
    token_name: "यह किस काम के लिए है",
    token_name_hint: "“ci” जैसा कोई नाम: छोटे अंग्रेज़ी अक्षर, अंक, “.”, “_” और “-”।",
    days: "कितने दिन में समाप्त हो",
    days_hint: "खाली छोड़ने पर सर्वर का डिफ़ॉल्ट, 90 दिन (जब तक बदला न गया हो)।",
    never_expires: "कोई समाप्ति नहीं",
    scopes: "यह क्या कर सकता है",
    scopes_hint: "कुछ न चुनने पर टोकन वह सब कर सकता है जो आप कर सकते हैं।",
    make: "टोकन बनाएँ",
    made: Phrase("आपका टोकन “{0}”"),
    made_text: "इसे अभी सहेज लें: यह सिर्फ़ इसी बार दिखाया जा रहा है।",
    secret: "API टोकन",
    password: "पासवर्ड",
    old_password: "मौजूदा पासवर्ड",
    new_password: "नया पासवर्ड",
    change: "पासवर्ड बदलें",
    sessions: "साइन इन किए हुए ब्राउज़र",
    session_lengths: Phrase("बिना उपयोग के {0} बाद, और साइन इन के {1} बाद सत्र समाप्त होता है।"),
    this_browser: "यह ब्राउज़र",
    end: "साइन आउट करें",
    end_text: "उस ब्राउज़र का उपयोग करने वाले को फिर से साइन इन करना होगा।",
    end_confirm: "इस ब्राउज़र को साइन आउट करें",
};

pub(super) const PEOPLE: People = People {
    intro: "इस सर्वर का उपयोग कौन कर सकता है, और किस काम के लिए।",
    roles_title: "भूमिकाओं का अर्थ",
    viewer: "सभी जॉब और कॉन्फ़िगरेशन देखते हैं, कुछ नहीं बदलते",
    researcher: "जॉब सबमिट करते हैं, अपनी जॉब देखते और रद्द करते हैं, और कॉन्फ़िगरेशन में बदलाव करते हैं",
    lead: "सबकी जॉब भी देखते और रद्द करते हैं, और तय करते हैं कि क्या तुरंत होना चाहिए",
    admin: "सब कुछ करते हैं: वर्कर, लोग, सबके लिए सीक्रेट, ऑडिट ट्रेल",
    none: "कोई मेल नहीं खाता",
    none_hint: "बाकी लोग फ़िल्टर के कारण छिपे हैं।",
    added: "जोड़ा गया",
    shut_out: "प्रवेश बंद",
    add: "किसी को जोड़ें",
    role: "भूमिका",
    password_optional: "कम से कम 12 वर्ण। इसके बिना वे तब तक साइन इन नहीं कर सकते जब तक आप उन्हें पासवर्ड न दें।",
    add_submit: "जोड़ें",
    person_intro: "वे क्या कर सकते हैं, और उनके नाम से कहाँ-कहाँ साइन इन है।",
    access: "एक्सेस",
    shut: "प्रवेश रोकें",
    shut_text: "वे हर जगह तुरंत साइन आउट हो जाते हैं, और उनके API टोकन अस्वीकार होते हैं। उनकी जॉब चलती रहती हैं।",
    shut_confirm: "इस व्यक्ति का प्रवेश रोकें",
    let_in: "फिर से प्रवेश दें",
    save: "सहेजें",
    reset: "पासवर्ड सेट करें",
    reset_text: "वे हर जगह साइन आउट हो जाते हैं, उनके API टोकन निरस्त हो जाते हैं, और पुराना पासवर्ड काम नहीं करता।",
    reset_confirm: "यह पासवर्ड सेट करें",
    no_tokens: "कोई API टोकन नहीं।",
    no_sessions: "कहीं भी साइन इन नहीं।",
};

pub(super) const SECRETS: Secrets = Secrets {
    intro: "वे मान जो आपकी जॉब को उनके एनवायरनमेंट में मिलते हैं, जैसे किसी मॉडल हब का टोकन। इन्हें एन्क्रिप्ट करके रखा जाता है और फिर कभी नहीं दिखाया जाता।",
    own: "आपके",
    none: "अभी कोई नहीं है।",
    shared: "सबकी जॉब के लिए",
    shared_text: "इसी नाम का आपका अपना सीक्रेट हो, तो पहले वही चलेगा।",
    set: "सेट किया गया:",
    last_given: "जॉब को पिछली बार दिया गया:",
    never_given: "किसी जॉब को कभी नहीं दिया गया",
    remove: "हटाएँ",
    remove_text: "इसका मान हमेशा के लिए चला जाता है। उसके बाद शुरू होने वाले किसी प्रयास को यह नहीं मिलता।",
    remove_confirm: "यह सीक्रेट हटाएँ",
    keep_title: "सीक्रेट सहेजें",
    name: "नाम",
    name_hint: "वेरिएबल का नाम (जैसे HF_TOKEN या WANDB_API_KEY)। इस नाम का सीक्रेट पहले से हो, तो वह बदल जाएगा।",
    value: "मान",
    value_hint: "8 या उससे ज़्यादा वर्ण। लॉग में इसकी जगह तारे दिखते हैं।",
    share: "सबकी जॉब के लिए",
    share_hint: "यह हर जॉब को दिया जाता है, चाहे उसे किसी ने भी सबमिट किया हो।",
    keep: "सहेजें",
};

pub(super) const CONFIRM: Confirm = Confirm {
    title: "क्या यह आप ही हैं?",
    intro: "आप जो करना चाहते हैं, उसके लिए आपका पासवर्ड एक बार फिर चाहिए। अभी कुछ नहीं किया गया है; इसके बाद वही काम फिर से करें।",
    hint: "या API टोकन, अगर आपने उससे साइन इन किया था। यह पुष्टि 15 मिनट तक मान्य रहेगी।",
    submit: "पुष्टि करें",
};

pub(super) const CREATE: Create = Create {
    title: "वर्कर बनाएँ",
    intro: "इससे मशीन को एक नाम और उसका अपना टोकन मिलता है। अगले पेज पर टोकन एक बार दिखेगा, साथ में वहाँ चलाने की कमांड भी।",
    name: "नाम",
    name_hint: "जैसे gpu-worker-1: फ़्लीट में अनूठा, वही नाम जिससे आप मशीन को पुकारते हैं।",
    kind: "प्रकार",
    kind_hint: "जॉब समाप्त होने पर क्या होता है।",
    persistent: "बना रहता है और अगली जॉब लेता है। आपकी अपनी मशीनों के लिए।",
    ephemeral: "एक जॉब के बाद समाप्त हो जाता है। किराए की मशीनों के लिए।",
    labels: "लेबल",
    labels_hint: "हर फ़ील्ड में एक “key=value”। जॉब इन्हीं से वर्कर चुनती हैं।",
    advanced: "इसके टोकन की सीमाएँ",
    networks: "अनुमत नेटवर्क",
    networks_hint: "वे नेटवर्क या पते जहाँ से एजेंट आ सकता है (जैसे 10.0.0.0/8)। खाली हो, तो कहीं से भी।",
    submit: "वर्कर बनाएँ",
};

pub(super) const DELETE: DeleteWorker = DeleteWorker {
    title: Phrase("{0} को हटाएँ?"),
    text: "इसका टोकन तुरंत काम करना बंद कर देगा और वर्कर फ़्लीट से हट जाएगा। इसकी पिछली जॉब, उनके लॉग और फ़ाइलें बनी रहेंगी।",
    busy: count("अभी इसके पास एक जॉब है। वह वापस कतार में चली जाएगी।", "अभी इसके पास {0} जॉब हैं। वे वापस कतार में चली जाएँगी।"),
    confirm: "यह वर्कर हटाएँ",
    keep: "रहने दें",
};
