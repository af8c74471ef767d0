//! Hindi: the words around a job: views, actions, timeline, samples.

use crate::ui::locales::sentence::Phrase;
use crate::ui::locales::words::work::{Gallery, Lanes, Work};

pub(super) const WORK: Work = Work {
    views: "जॉब के दृश्य",
    events: "इवेंट",
    clone: "बदलकर सबमिट करें",
    again_of: Phrase("{0} के बाद दोबारा"),
    cancel_waiting: "यह अभी शुरू नहीं हुई है। यह कतार से हट जाएगी, और रद्द की गई जॉब फिर से शुरू नहीं होती।",
    keep_waiting: "कतार में रहने दें",
    retry: "फिर से चलाएँ",
    retry_text: "उसी कॉन्फ़िगरेशन रिविज़न और उन्हीं ज़रूरतों वाली एक नई जॉब बनेगी। चेकपॉइंट मौजूद हो, तो वह सबसे नए चेकपॉइंट से आगे बढ़ेगी।",
    retry_confirm: "यह जॉब फिर से चलाएँ",
    priority: "प्राथमिकता",
    priority_text: "0 से 50; ज़्यादा ज़रूरी जॉब पहले जाती है। एक घंटे का इंतज़ार एक अंक पर भारी पड़ता है।",
    set: "सेट करें",
    top: "सबसे ज़रूरी",
    raise: Phrase("प्राथमिकता {0} करें"),
    memory_each: Phrase("हर एक {0} GB"),
    accelerator: "एक्सेलेरेटर",
    longest: "अधिकतम समय",
    exclusive: "एकल",
    exclusive_text: "एक साथ दो ट्रेनर कभी नहीं",
    weights: "वेट",
    no_weights: "वेट ट्रेनिंग पूरी होने पर आएँगे।",
    all_files: "सभी फ़ाइलें",
    checkpoints: "चेकपॉइंट",
    resumes_here: "अगला प्रयास यहीं से आगे बढ़ेगा",
    of_user: "सबमिट करने वाला",
    with_label: "लेबल, जैसे team=nlp",
    narrow: "फ़िल्टर करें",
    without: Phrase("फ़िल्टर {0} हटाएँ"),
    waiting: "इंतज़ार में",
    waits_since: "सबमिट होने से इंतज़ार में",
    asks_for: "ज़रूरतें",
    anything: "कोई भी वर्कर",
    loss: Phrase("लॉस {0}"),
    left: Phrase("{0} बाकी"),
    actions: "क्रियाएँ",
    actions_of: Phrase("{0} के लिए क्रियाएँ"),
};

pub(super) const LANES: Lanes = Lanes {
    title: "टाइमलाइन",
    label: "जॉब ने कब क्या किया; यही नीचे की तालिका में है",
    waiting: "इंतज़ार",
    back_off: "दोबारा कोशिश का इंतज़ार",
    checkpoint: Phrase("स्टेप {0} पर चेकपॉइंट"),
};

pub(super) const GALLERY: Gallery = Gallery {
    all: "सभी सैंपल",
    hint: "स्टेप के अनुसार",
    not_made: "इस स्टेप पर नहीं बनी",
    over_steps: "सभी स्टेप में",
    sample: Phrase("सभी स्टेप में सैंपल {0}"),
    earlier: "पिछला स्टेप",
    later: "अगला स्टेप",
    before: "पिछला सैंपल",
    after: "अगला सैंपल",
    compare: "इससे तुलना करें",
    nothing: "कुछ नहीं",
    show: "दिखाएँ",
    full: "पूरे आकार में सैंपल",
    close: "बंद करें",
};
